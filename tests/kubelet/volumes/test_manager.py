"""The volumes of pods, with a real API server and real mounts."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hung_mount import hung_mount
from kubelet.conftest import Connect

from pybernetes.api.core.v1 import (
    ConfigMap,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    Container,
    CSIVolumeSource,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    EmptyDirVolumeSource,
    HostPathVolumeSource,
    ImageVolumeSource,
    KeyToPath,
    LocalVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectFieldSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    Pod,
    PodSecurityContext,
    PodSpec,
    ProjectedVolumeSource,
    RBDVolumeSource,
    ResourceFieldSelector,
    Secret,
    SecretProjection,
    SecretVolumeSource,
    ServiceAccount,
    ServiceAccountTokenProjection,
    Volume,
    VolumeMount,
    VolumeNodeAffinity,
    VolumeProjection,
    VolumeResourceRequirements,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.quantity import parse
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.cri.mounting import mount, mounts, unmount
from pybernetes.kubelet.node.facts import NodeFacts
from pybernetes.kubelet.volumes.base import VolumeError
from pybernetes.kubelet.volumes.manager import VolumeManager
from pybernetes.kubelet.watched_objects import WatchedObjects

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")

FACTS = NodeFacts(
    "node-1", ["192.0.2.1"], {"cpu": parse("4"), "memory": parse("8Gi")}, {"kubernetes.io/hostname": "node-1"}
)


class _Node:
    """A volume manager with its inputs and its events."""

    def __init__(self, client: Client, namespace: str, root: Path) -> None:
        self.client, self.namespace, self.root = client, namespace, root
        self.changed: list[str] = []
        self.events: list[tuple[str, str]] = []
        self.objects = WatchedObjects(client, SystemClock(), self.changed.append)
        self.manager = VolumeManager(
            client,
            root,
            FACTS,
            SystemClock(),
            objects=self.objects,
            changed=self.changed.append,
            event=lambda pod, type, reason, message: self.events.append((reason, message)),
        )

    def pod(self, *volumes: Volume, uid: str = "u1", group: int | None = None, **spec: Any) -> Pod:
        used = [VolumeMount(name=each.name, mount_path=f"/{each.name}") for each in volumes]
        spec.setdefault("containers", [Container(name="main", image="busybox", volume_mounts=used)])
        metadata = ObjectMeta(name="web", namespace=self.namespace, uid=uid, labels={"a": "b"})
        context = PodSecurityContext(fs_group=group)
        return Pod(metadata=metadata, spec=PodSpec(volumes=list(volumes), security_context=context, **spec))

    async def refused(self, *volumes: Volume, **more: Any) -> str:
        with pytest.raises(VolumeError) as caught:
            await self.manager.ensure(self.pod(*volumes, **more))
        assert caught.value.reason == "FailedMount"
        return caught.value.message

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.005)


@pytest.fixture
def start(connect: Connect, tmp_path: Path) -> Any:
    @asynccontextmanager
    async def started() -> AsyncIterator[_Node]:
        async with connect() as (client, namespace):
            node = _Node(client, namespace, tmp_path / "kubelet")
            try:
                yield node
            finally:
                await node.objects.close()
                left = mounts(tmp_path)
                for each in reversed(left):
                    unmount(each.path)

    return started


def _read(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        name: ((folder / name).read_bytes(), stat.S_IMODE((folder / name).stat().st_mode))
        for name in os.listdir(folder)
        if not name.startswith("..")
    }


async def _map(node: _Node, name: str, **data: str) -> None:
    await node.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=node.namespace), data=data))


async def _secret(node: _Node, name: str, **data: bytes) -> None:
    coded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    await node.client.create(Secret(metadata=ObjectMeta(name=name, namespace=node.namespace), data=coded))


async def test_config_maps_become_files_and_follow(start: Any) -> None:
    async with start() as node:
        await node.client.create(
            ConfigMap(
                metadata=ObjectMeta(name="m", namespace=node.namespace),
                data={"a": "ä"},
                binary_data={"b": base64.b64encode(b"\x00\xff").decode()},
            )
        )
        items = [KeyToPath(key="a", path="d/x", mode=0o400), KeyToPath(key="a", path="y")]
        pod = node.pod(
            Volume(name="all", config_map=ConfigMapVolumeSource(name="m", default_mode=0o644)),
            Volume(name="some", config_map=ConfigMapVolumeSource(name="m", default_mode=0o440, items=items)),
        )
        found = await node.manager.ensure(pod)
        assert found["all"].path == node.root / "pods/u1/volumes/kubernetes.io~configmap/all"
        assert found["all"].read_only
        assert _read(found["all"].path) == {"a": ("ä".encode(), 0o644), "b": (b"\x00\xff", 0o644)}
        assert _read(found["some"].path / "d") == {"x": ("ä".encode(), 0o400)}
        assert stat.S_IMODE(os.stat(found["some"].path / "y").st_mode) == 0o440
        await node.client.patch(ConfigMap, "m", {"data": {"a": "new", "c": "3"}, "binaryData": None}, node.namespace)
        await node.until(lambda: "u1" in node.changed)
        found = await node.manager.ensure(pod)
        assert _read(found["all"].path) == {"a": (b"new", 0o644), "c": (b"3", 0o644)}
        await node.manager.teardown("u1")
        assert not node.manager.has_volumes("u1")


async def test_secrets_are_in_memory_and_belong_to_the_group(start: Any) -> None:
    async with start() as node:
        await _secret(node, "s", key=b"\xff")
        volume = Volume(name="keys", secret=SecretVolumeSource(secret_name="s", default_mode=0o400))
        path = (await node.manager.ensure(node.pod(volume, group=4711)))["keys"].path
        assert mounts(path)[0].type == "tmpfs"
        assert _read(path) == {"key": (b"\xff", 0o440)}
        assert os.stat(path / "key").st_gid == 4711
        await node.manager.teardown("u1")
        assert not mounts(node.root)
        assert not node.manager.has_volumes("u1")


async def test_what_is_missing_is_said_and_comes_later(start: Any) -> None:
    async with start() as node:
        volume = Volume(name="v", config_map=ConfigMapVolumeSource(name="m", default_mode=0o644))
        assert await node.refused(volume) == 'MountVolume.SetUp failed for volume "v" : configmap "m" not found'
        secret = Volume(name="v", secret=SecretVolumeSource(secret_name="s", default_mode=0o644))
        assert await node.refused(secret, uid="u2") == 'MountVolume.SetUp failed for volume "v" : secret "s" not found'
        await _map(node, "m", a="1")
        await node.until(lambda: "u1" in node.changed)
        assert "v" in await node.manager.ensure(node.pod(volume))
        no_key = ConfigMapVolumeSource(name="m", default_mode=0o644, items=[KeyToPath(key="no", path="x")])
        assert await node.refused(Volume(name="v", config_map=no_key), uid="u3") == (
            'MountVolume.SetUp failed for volume "v" : configmap references non-existent config key: no'
        )


async def test_a_volume_that_was_ready_stays_when_its_source_goes(start: Any) -> None:
    async with start() as node:
        await _map(node, "m", a="1")
        pod = node.pod(
            Volume(name="v", config_map=ConfigMapVolumeSource(name="m", default_mode=0o644)),
            Volume(name="e", empty_dir=EmptyDirVolumeSource()),
        )
        found = await node.manager.ensure(pod)
        await node.client.delete(ConfigMap, "m", node.namespace)
        await node.until(lambda: "u1" in node.changed)
        assert await node.manager.ensure(pod) == found
        assert _read(found["v"].path) == {"a": (b"1", 0o644)}
        message = 'MountVolume.SetUp failed for volume "v" : configmap "m" not found'
        assert node.events == [("FailedMount", message)]
        node.changed.clear()
        await node.until(lambda: "u1" in node.changed)  # told to try again
        await _map(node, "m", a="2")
        await node.manager.ensure(pod)
        assert _read(found["v"].path) == {"a": (b"2", 0o644)}
        assert len(node.events) == 1


async def test_every_volume_that_fails_is_reported(start: Any) -> None:
    async with start() as node:
        names = ("x", "y")
        volumes = [Volume(name=each, secret=SecretVolumeSource(secret_name=each, default_mode=0o644)) for each in names]
        assert await node.refused(*volumes) == 'MountVolume.SetUp failed for volume "x" : secret "x" not found'
        assert node.events == [("FailedMount", 'MountVolume.SetUp failed for volume "y" : secret "y" not found')]


async def test_retries_come_later_and_later(start: Any) -> None:
    async with start() as node:
        volume = Volume(name="v", config_map=ConfigMapVolumeSource(name="m", default_mode=0o644))
        waits = []
        for _ in range(10):
            with pytest.raises(VolumeError) as caught:
                await node.manager.ensure(node.pod(volume))
            waits.append(caught.value.retry_after)
        assert waits == [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122]


async def test_optional_sources_may_come_and_go(start: Any) -> None:
    async with start() as node:
        source = ConfigMapVolumeSource(name="m", default_mode=0o644, optional=True)
        pod = node.pod(Volume(name="v", config_map=source))
        path = (await node.manager.ensure(pod))["v"].path
        assert _read(path) == {}
        await _map(node, "m", a="1")
        await node.until(lambda: "u1" in node.changed)
        await node.manager.ensure(pod)
        assert _read(path) == {"a": (b"1", 0o644)}
        node.changed.clear()
        await node.client.delete(ConfigMap, "m", node.namespace)
        await node.until(lambda: "u1" in node.changed)
        await node.manager.ensure(pod)
        assert _read(path) == {}


async def test_what_a_pod_knows_about_itself(start: Any) -> None:
    async with start() as node:
        items = [
            DownwardAPIVolumeFile(path="labels", field_ref=ObjectFieldSelector(field_path="metadata.labels")),
            DownwardAPIVolumeFile(path="name", field_ref=ObjectFieldSelector(field_path="metadata.name"), mode=0o400),
            DownwardAPIVolumeFile(
                path="cpu", resource_field_ref=ResourceFieldSelector(container_name="main", resource="limits.cpu")
            ),
        ]
        volume = Volume(name="v", downward_api=DownwardAPIVolumeSource(items=items, default_mode=0o644))
        pod = node.pod(volume)
        path = (await node.manager.ensure(pod))["v"].path
        assert _read(path) == {"labels": (b'a="b"', 0o644), "name": (b"web", 0o400), "cpu": (b"4", 0o644)}
        pod.metadata.labels = {"a": "c", "d": "e"}
        await node.manager.ensure(pod)
        assert _read(path)["labels"] == (b'a="c"\nd="e"', 0o644)


async def test_several_sources_in_one_folder(start: Any) -> None:
    async with start() as node:
        await _map(node, "m", a="1")
        await _secret(node, "s", b=b"2")
        account = ServiceAccount(metadata=ObjectMeta(name="default", namespace=node.namespace))
        await node.client.create(account)
        token = ServiceAccountTokenProjection(path="token", expiration_seconds=3607)
        sources = [
            VolumeProjection(config_map=ConfigMapProjection(name="m")),
            VolumeProjection(secret=SecretProjection(name="s", items=[KeyToPath(key="b", path="c")])),
            VolumeProjection(service_account_token=token),
        ]
        volume = Volume(name="v", projected=ProjectedVolumeSource(sources=sources, default_mode=0o644))
        pod = node.pod(volume, service_account_name="default", uid="")
        pod.metadata.uid = None
        pod = await node.client.create(pod)
        path = (await node.manager.ensure(pod))["v"].path
        found = _read(path)
        assert (found["a"], found["c"]) == ((b"1", 0o644), (b"2", 0o644))
        assert found["token"][1] == 0o644
        assert found["token"][0].count(b".") == 2
        await node.manager.ensure(pod)
        assert _read(path) == found
        missing = [
            *sources,
            VolumeProjection(secret=SecretProjection(name="x")),
            VolumeProjection(secret=SecretProjection(name="y")),
        ]
        wrong = Volume(name="v", projected=ProjectedVolumeSource(sources=missing[3:], default_mode=0o644))
        assert await node.refused(wrong) == (
            'MountVolume.SetUp failed for volume "v" : [secret "x" not found, secret "y" not found]'
        )


async def test_a_token_is_its_users_own(start: Any) -> None:
    async with start() as node:
        await node.client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=node.namespace)))
        source = VolumeProjection(service_account_token=ServiceAccountTokenProjection(path="token"))
        volume = Volume(name="v", projected=ProjectedVolumeSource(sources=[source], default_mode=0o644))
        pod = node.pod(volume, service_account_name="default")
        pod.metadata.uid = None
        pod.spec.security_context = PodSecurityContext(run_as_user=1234)
        pod = await node.client.create(pod)
        found = os.stat((await node.manager.ensure(pod))["v"].path / "token")
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (1234, 0o600)


async def test_volumes_that_no_container_uses_are_not_waited_for(start: Any) -> None:
    async with start() as node:
        pod = node.pod(Volume(name="v", empty_dir=EmptyDirVolumeSource()))
        pod.spec.volumes.append(
            Volume(name="unused", config_map=ConfigMapVolumeSource(name="none", default_mode=0o644))
        )
        assert set(await node.manager.ensure(pod)) == {"v"}


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        (
            Volume(name="v", csi=CSIVolumeSource(driver="csi.example.com")),
            'MountVolume.NewMounter initialization failed for volume "v" : driver name csi.example.com not found in the'
            " list of registered CSI drivers",
        ),
        (
            Volume(name="v", rbd=RBDVolumeSource(monitors=["a"], image="b")),
            'MountVolume.FindPluginBySpec failed for volume "v" : no volume plugin matched (rbd); use the CSI driver'
            " rbd.csi.ceph.com",
        ),
        (
            Volume(name="v", image=ImageVolumeSource(reference="busybox")),
            'MountVolume.SetUp failed for volume "v" : the container runtime cannot mount images as volumes',
        ),
        (
            Volume(name="v", host_path=HostPathVolumeSource(path="/nope", type="Directory")),
            'MountVolume.SetUp failed for volume "v" : hostPath type check failed: /nope is not a directory',
        ),
    ],
)
async def test_what_is_not_supported_says_so(start: Any, volume: Volume, message: str) -> None:
    async with start() as node:
        assert await node.refused(volume) == message


class _Claims:
    """Claims and volumes, bound without a controller."""

    def __init__(self, node: _Node) -> None:
        self.node = node

    async def make(self, claim: str, *, bound: bool = True, **source: Any) -> Volume:
        name = f"{self.node.namespace}-{claim}"
        made = await self.node.client.create(
            PersistentVolumeClaim(
                metadata=ObjectMeta(name=claim, namespace=self.node.namespace),
                spec=PersistentVolumeClaimSpec(
                    volume_name=name,
                    storage_class_name="",
                    access_modes=["ReadWriteOnce"],
                    resources=VolumeResourceRequirements(requests={"storage": "1Gi"}),
                ),
            )
        )
        if bound:
            made.status = PersistentVolumeClaimStatus(phase="Bound")
            made = await self.node.client.update_status(made)
        reference = {"kind": "PersistentVolumeClaim", "name": claim, "namespace": self.node.namespace}
        source.setdefault("access_modes", ["ReadWriteOnce"])
        await self.node.client.call(
            "POST",
            "/api/v1/persistentvolumes",
            PersistentVolume(
                kind="PersistentVolume",
                api_version="v1",
                metadata=ObjectMeta(name=name),
                spec=PersistentVolumeSpec(capacity={"storage": "1Gi"}, **source),
            ),
        )
        reference["uid"] = made.metadata.uid if made.metadata and made.metadata.uid else ""
        await self.node.client.patch(PersistentVolume, name, {"spec": {"claimRef": reference}})
        return Volume(name="v", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))


def _on(node: str) -> VolumeNodeAffinity:
    requirement = NodeSelectorRequirement(key="kubernetes.io/hostname", operator="In", values=[node])
    return VolumeNodeAffinity(
        required=NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[requirement])])
    )


async def test_claims_of_folders_of_the_node(start: Any, tmp_path: Path) -> None:
    async with start() as node:
        data = tmp_path / "data"
        os.mkdir(data)
        claims = _Claims(node)
        volume = await claims.make("host", host_path=HostPathVolumeSource(path=str(data)))
        found = (await node.manager.ensure(node.pod(volume)))["v"]
        assert (found.path, found.read_only) == (data, False)
        volume = await claims.make("local", local=LocalVolumeSource(path=str(data)), node_affinity=_on("node-1"))
        found = (await node.manager.ensure(node.pod(volume, uid="u2", group=4711)))["v"]
        assert found.path == node.root / f"pods/u2/volumes/kubernetes.io~local-volume/{node.namespace}-local"
        _write(found.path / "file")
        assert os.listdir(data) == ["file"]
        assert os.stat(data).st_gid == 4711
        await node.manager.ensure(node.pod(volume, uid="u2", group=4711))
        assert len(mounts(node.root)) == 1
        assert volume.persistent_volume_claim is not None
        volume.persistent_volume_claim.read_only = True
        only_read = (await node.manager.ensure(node.pod(volume, uid="u3")))["v"]
        assert only_read.read_only
        with pytest.raises(OSError, match="Read-only"):
            _write(only_read.path / "other")
        for uid in ("u2", "u3"):
            await node.manager.remove(uid)
        assert os.listdir(data) == ["file"]
        assert not mounts(node.root)
        assert node.manager.orphans([]) == []


async def test_claims_that_cannot_be_used(start: Any, tmp_path: Path) -> None:
    async with start() as node:
        claims = _Claims(node)
        start_of = (
            "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[],"
            " failed to process volumes=[v]: "
        )
        none = Volume(name="v", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="none"))
        assert await node.refused(none) == (
            f"{start_of}error processing PVC {node.namespace}/none: failed to fetch PVC from API server:"
            ' persistentvolumeclaims "none" not found'
        )
        waiting = await claims.make("waiting", bound=False, host_path=HostPathVolumeSource(path="/data"))
        assert await node.refused(waiting) == (
            f"{start_of}error processing PVC {node.namespace}/waiting: PVC is not bound"
        )
        elsewhere = await claims.make("away", local=LocalVolumeSource(path=str(tmp_path)), node_affinity=_on("node-2"))
        assert await node.refused(elsewhere) == (
            f'MountVolume.NodeAffinity check failed for volume "{node.namespace}-away" : no matching NodeSelectorTerms'
        )
        gone = await claims.make("gone", local=LocalVolumeSource(path="/nope"), node_affinity=_on("node-1"))
        assert await node.refused(gone) == (
            f'MountVolume.SetUp failed for volume "{node.namespace}-gone" : path "/nope" does not exist'
        )
        block = await claims.make(
            "block", local=LocalVolumeSource(path="/dev/x"), node_affinity=_on("node-1"), volume_mode="Block"
        )
        assert await node.refused(block) == f"{start_of}volume v has volumeMode Block, but is specified in volumeMounts"


async def test_teardown_unmounts_everything_and_removes_nothing_through_a_mount(start: Any, tmp_path: Path) -> None:
    async with start() as node:
        precious = tmp_path / "precious"
        os.mkdir(precious)
        _write(precious / "file")
        pod = node.pod(
            Volume(name="disk", empty_dir=EmptyDirVolumeSource()),
            Volume(name="memory", empty_dir=EmptyDirVolumeSource(medium="Memory")),
        )
        found = await node.manager.ensure(pod)
        inside = found["disk"].path / "mounted"
        os.mkdir(inside)
        mount(str(precious), inside, flags=4096)
        holder = os.open(inside, os.O_RDONLY)
        with pytest.raises(VolumeError, match="busy"):
            await node.manager.teardown("u1")
        assert os.listdir(precious) == ["file"]
        os.close(holder)
        await node.manager.teardown("u1")
        assert os.listdir(precious) == ["file"]
        assert not mounts(node.root)
        assert not node.manager.has_volumes("u1")
        assert node.manager.orphans(["u1"]) == []
        assert node.manager.orphans([]) == ["u1"]
        await node.manager.remove("u1")
        await node.manager.remove("u1")
        assert node.manager.orphans([]) == []


async def test_a_pod_with_folders_nested_deeper_than_a_path_may_be_long_is_removed(start: Any) -> None:
    async with start() as node:
        found = await node.manager.ensure(node.pod(Volume(name="disk", empty_dir=EmptyDirVolumeSource())))
        folder = os.open(found["disk"].path, os.O_RDONLY)
        for _ in range(3000):
            os.mkdir("d", dir_fd=folder)
            deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = deeper
        os.close(folder)
        await node.manager.teardown("u1")
        assert not node.manager.has_volumes("u1")
        await node.manager.remove("u1")
        assert node.manager.orphans([]) == []


async def test_a_volume_on_a_mount_that_does_not_answer_fails_its_own_pod_only(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pybernetes.kubelet.volumes.host.LOOK_WITHIN", 0.1)
    async with start() as node:
        hung = tmp_path / "hung"
        with hung_mount(hung) as mount:
            pod = node.pod(Volume(name="v", host_path=HostPathVolumeSource(path=str(hung), type="Directory")))
            expected = f'MountVolume.SetUp failed for volume "v" : {hung} did not answer within 0.1 s'
            for _ in range(6):  # more often than threads may be left behind
                with pytest.raises(VolumeError, match=re.escape(expected)):
                    await node.manager.ensure(pod)
            monkeypatch.setattr("pybernetes.kubelet.volumes.host.LOOK_WITHIN", 30.0)
            other = node.pod(Volume(name="d", empty_dir=EmptyDirVolumeSource()))
            other.metadata.uid = "u2"
            await node.manager.ensure(other)
            await node.manager.remove("u2")
            await node.manager.remove("u1")
            mount.release()
        hung.rmdir()
        hung.mkdir()
        await node.manager.ensure(pod)
        await node.manager.remove("u1")


async def test_a_mount_in_a_volume_that_does_not_answer_goes_with_its_pod(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pybernetes.kubelet.volumes.host.LOOK_WITHIN", 0.1)
    async with start() as node:
        pod = node.pod(Volume(name="disk", empty_dir=EmptyDirVolumeSource()))
        found = await node.manager.ensure(pod)
        with hung_mount(found["disk"].path):  # as a driver's pod does whose mounts reach the node
            again = _Node(node.client, node.namespace, node.root)
            with pytest.raises(VolumeError, match="did not answer within"):
                await again.manager.ensure(pod)
        await again.manager.remove("u1")
        assert not mounts(node.root)
        assert again.manager.orphans([]) == []
        await again.objects.close()


async def test_a_kubelet_that_starts_again_finds_everything_as_it_was(start: Any) -> None:
    async with start() as node:
        await _map(node, "m", a="1")
        await _secret(node, "s", b=b"2")
        pod = node.pod(
            Volume(name="disk", empty_dir=EmptyDirVolumeSource()),
            Volume(name="memory", empty_dir=EmptyDirVolumeSource(medium="Memory")),
            Volume(name="m", config_map=ConfigMapVolumeSource(name="m", default_mode=0o644)),
            Volume(name="s", secret=SecretVolumeSource(secret_name="s", default_mode=0o644)),
        )
        found = await node.manager.ensure(pod)
        for name in ("disk", "memory"):
            _write(found[name].path / "file")
        data = os.readlink(found["m"].path / "..data")
        count = len(mounts(node.root))
        again = _Node(node.client, node.namespace, node.root)
        assert await again.manager.ensure(pod) == found
        assert os.listdir(found["disk"].path) == os.listdir(found["memory"].path) == ["file"]
        assert os.readlink(found["m"].path / "..data") == data
        assert len(mounts(node.root)) == count
        await again.manager.teardown("u1")
        await again.objects.close()


def _write(path: Path) -> None:
    path.write_text("x")
