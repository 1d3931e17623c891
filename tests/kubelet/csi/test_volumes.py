"""CSI volumes of pods: a real API server, a real driver at a real socket, the kubelet's volume manager between them."""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from csi.mock_driver import MockDriver, NodeDriver
from kubelet.conftest import Connect
from waiting import wait_for

from pybernetes.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret, ServiceAccount
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.quantity import parse
from pybernetes.api.storage.v1 import CSIDriver, VolumeAttachment
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.csi import v1
from pybernetes.csi.driver import serving
from pybernetes.csi.errors import CSIError
from pybernetes.kubelet.csi import attachments, expansion, stats
from pybernetes.kubelet.csi.attachments import Attachments
from pybernetes.kubelet.csi.drivers import Drivers
from pybernetes.kubelet.csi.volumes import CSIVolumes
from pybernetes.kubelet.node.facts import NodeFacts
from pybernetes.kubelet.stats.claims import claims_of
from pybernetes.kubelet.stats.disk import PodDisk
from pybernetes.kubelet.volumes.base import VolumeError
from pybernetes.kubelet.volumes.manager import VolumeManager

NODE = "node-1"
SHA = "54f50aff0c05f509a804604b776c85a23969272c57b2f3054b6e05c7fc6e543f"  # of the handle h-1


class NoCSINode:
    async def install(self, driver: str, node_id: str, max_volumes: int, topology: dict[str, str]) -> None: ...

    async def uninstall(self, driver: str) -> None: ...


class _Node:
    """A kubelet's volumes; `restart` is a new one on the same disk."""

    def __init__(self, client: Client, namespace: str, root: Path) -> None:
        self.client, self.namespace, self.root = client, namespace, root
        self.events: list[tuple[str, str]] = []
        self.node = Node(metadata=ObjectMeta(name=NODE))
        self.drivers = Drivers(NoCSINode(), lambda _: None)
        self.stack = AsyncExitStack()
        self.restart()

    def restart(self) -> None:
        self.reports = 0
        self.attachments = Attachments(self.client, NODE, lambda: self.node, self._reported, managed=True)
        self.manager = VolumeManager(
            self.client,
            self.root,
            NodeFacts(NODE, ["192.0.2.1"], {"cpu": parse("4")}, {}),
            SystemClock(),
            objects=None,
            changed=lambda _: None,
            event=lambda pod, type, reason, message: self.events.append((reason, message)),
            csi=self._csi,
        )
        assert self.manager.csi is not None
        self.csi = self.manager.csi

    def _csi(self, tokens: Any) -> CSIVolumes:
        event = lambda pod, type, reason, message: self.events.append((reason, message))  # noqa: E731
        return CSIVolumes(self.drivers, self.attachments, self.root, self.client, tokens, event)

    def _reported(self) -> None:
        self.reports += 1

    async def serve(self, driver: NodeDriver, **spec: Any) -> NodeDriver:
        """Start and register a driver; `spec` is that of its CSIDriver, without attaching unless it says so."""
        socket = self.root / "plugins" / driver.name / "csi.sock"
        await self.stack.enter_async_context(serving(driver, socket))
        await self.drivers.register(driver.name, str(socket), ["1.0.0"])
        found = {"metadata": {"name": driver.name}, "spec": {"attachRequired": False, **spec}}
        await self.client.create(msgspec.convert(found, CSIDriver))
        return driver

    async def claim(self, name: str, handle: str = "h-1", *, has: str = "1Gi", **more: Any) -> None:
        """A claim that is bound to a volume of the mock driver called `pv-NAMESPACE-NAME`."""
        modes = more.pop("accessModes", ["ReadWriteOnce"])
        mode = more.pop("volumeMode", "Filesystem")
        source = {"driver": "mock.example.com", "volumeHandle": handle, **more.pop("csi", {})}
        size = {"storage": more.get("capacity", {}).get("storage", "1Gi")}
        claim = msgspec.convert(
            {
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {
                    "accessModes": modes,
                    "volumeMode": mode,
                    "volumeName": self.volume(name),
                    "resources": {"requests": size},
                },
            },
            PersistentVolumeClaim,
        )
        made = await self.client.create(claim)
        assert made.metadata is not None
        status = {"phase": "Bound", "accessModes": modes, "capacity": {"storage": has}}
        await self.client.patch(PersistentVolumeClaim, name, {"status": status}, self.namespace, subresource="status")
        reference = {"namespace": self.namespace, "name": name, "uid": made.metadata.uid}
        spec = {"capacity": size, "accessModes": modes, "volumeMode": mode, "claimRef": reference, "csi": source}
        volume = {"metadata": {"name": self.volume(name)}, "spec": {**spec, **more}}
        await self.client.create(msgspec.convert(volume, PersistentVolume))

    def volume(self, claim: str) -> str:
        return f"pv-{self.namespace}-{claim}"

    def pod(self, uid: str = "u1", *, claim: str = "data", device: bool = False, **more: Any) -> Pod:
        volume = more.pop("volume", {"persistentVolumeClaim": {"claimName": claim}})
        use = "volumeDevices" if device else "volumeMounts"
        path = "devicePath" if device else "mountPath"
        container = {"name": "main", "image": "busybox", use: [{"name": "data", path: "/data"}]}
        spec = {"containers": [container], "volumes": [{"name": "data", **volume}], **more}
        metadata = {"name": f"web-{uid}", "namespace": self.namespace, "uid": uid}
        return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)

    async def refused(self, pod: Pod) -> str:
        with pytest.raises(VolumeError) as caught:
            await self.manager.ensure(pod)
        return caught.value.message

    def published(self, uid: str = "u1", claim: str = "data") -> Path:
        return self.root / "pods" / uid / "volumes" / "kubernetes.io~csi" / self.volume(claim) / "mount"

    def staging(self) -> Path:
        return self.root / "plugins/kubernetes.io/csi/mock.example.com" / SHA / "globalmount"


@pytest.fixture
def start(connect: Connect) -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="pyb-") as made:

        @asynccontextmanager
        async def started() -> AsyncIterator[_Node]:
            async with connect() as (client, namespace):
                node = _Node(client, namespace, Path(made) / "kubelet")
                try:
                    yield node
                finally:
                    await node.drivers.close()
                    await node.stack.aclose()
                    for each in (await client.list(CSIDriver)).items:
                        await client.delete(CSIDriver, each.metadata.name or "")

        yield started


async def test_a_volume_is_staged_once_published_for_each_pod_and_undone_after_the_last(start: Any) -> None:
    async with start() as node:
        driver = await node.serve(MockDriver(), podInfoOnMount=True)
        await node.claim("data", mountOptions=["noatime"], csi={"fsType": "xfs", "volumeAttributes": {"color": "blue"}})
        (mounted,) = (await node.manager.ensure(node.pod("u1"))).values()
        assert mounted.path == node.published()
        assert (mounted.path / "color").read_text() == "blue"
        assert driver.names() == ["NodeStageVolume", "NodePublishVolume"]
        stage, publish = driver.last("NodeStageVolume"), driver.last("NodePublishVolume")
        assert stage.staging_target_path == str(node.staging())
        assert publish.staging_target_path == str(node.staging())
        assert publish.target_path == str(node.published())
        assert (publish.volume_id, publish.readonly) == ("h-1", False)
        for request in (stage, publish):
            assert request.volume_capability.mount.fs_type == "xfs"
            assert list(request.volume_capability.mount.mount_flags) == ["noatime"]
            assert request.volume_capability.access_mode.mode == v1.AccessMode.SINGLE_NODE_MULTI_WRITER
        assert dict(stage.volume_context) == {"color": "blue"}
        assert dict(publish.volume_context) == {
            "color": "blue",
            "csi.storage.k8s.io/pod.name": "web-u1",
            "csi.storage.k8s.io/pod.namespace": node.namespace,
            "csi.storage.k8s.io/pod.uid": "u1",
            "csi.storage.k8s.io/serviceAccount.name": "",
            "csi.storage.k8s.io/ephemeral": "false",
        }
        data = json.loads((node.published().parent / "vol_data.json").read_text())
        assert data == {
            "specVolID": node.volume("data"),
            "volumeHandle": "h-1",
            "driverName": "mock.example.com",
            "nodeName": NODE,
            "attachmentID": node.attachments.attachment_name(_Handle("mock.example.com", "h-1")),
            "volumeLifecycleMode": "Persistent",
        }
        assert json.loads((node.staging().parent / "vol_data.json").read_text()) == {
            "driverName": "mock.example.com",
            "volumeHandle": "h-1",
        }
        await node.manager.ensure(node.pod("u1"))
        await node.manager.ensure(node.pod("u2"))
        assert driver.names() == ["NodeStageVolume", "NodePublishVolume", "NodePublishVolume"]
        await node.manager.teardown("u1")
        assert driver.names()[3:] == ["NodeUnpublishVolume"]
        assert not node.manager.has_volumes("u1")
        await node.manager.teardown("u2")
        assert driver.names()[4:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]
        assert not node.staging().parent.exists()
        await node.manager.teardown("u2")
        assert len(driver.calls) == 6


async def test_a_volume_waits_until_the_node_says_that_it_is_in_use_and_the_controller_that_it_is_attached(
    start: Any,
) -> None:
    async with start() as node:
        driver = await node.serve(MockDriver(), attachRequired=True)
        await node.claim("data")
        name = "kubernetes.io/csi/mock.example.com^h-1"
        task = asyncio.create_task(node.manager.ensure(node.pod()))
        await wait_for(lambda: node.attachments.in_use() == [name], "the volume is reported to be in use")
        assert node.reports == 1
        attachment = node.attachments.attachment_name(_Handle("mock.example.com", "h-1"))
        spec = {
            "metadata": {"name": attachment},
            "spec": {
                "attacher": "mock.example.com",
                "nodeName": NODE,
                "source": {"persistentVolumeName": node.volume("data")},
            },
        }
        await node.client.create(msgspec.convert(spec, VolumeAttachment))
        status = {"attached": True, "attachmentMetadata": {"device": "/dev/sdx"}}
        await node.client.patch(VolumeAttachment, attachment, {"status": status}, subresource="status")
        for in_use, attached in (([name], []), ([], [{"name": name, "devicePath": ""}])):
            node.node = _node(in_use, attached)
            node.attachments.node_changed()
            await asyncio.sleep(0.02)
            assert driver.calls == []
        node.node = _node([name], [{"name": name, "devicePath": ""}])
        node.attachments.node_changed()
        await task
        assert dict(driver.last("NodeStageVolume").publish_context) == {"device": "/dev/sdx"}
        assert dict(driver.last("NodePublishVolume").publish_context) == {"device": "/dev/sdx"}
        node.restart()
        assert node.attachments.in_use() == [name]  # from the disk, before any pod was looked at
        await node.manager.teardown("u1")
        assert node.attachments.in_use() == []
        await node.client.delete(VolumeAttachment, attachment)


class _Handle:
    def __init__(self, driver: str, handle: str) -> None:
        self.driver, self.handle = driver, handle


def _node(in_use: list[str], attached: list[dict[str, str]]) -> Node:
    return msgspec.convert(
        {"metadata": {"name": NODE}, "status": {"volumesInUse": in_use, "volumesAttached": attached}}, Node
    )


async def test_a_volume_that_is_never_attached_is_an_error_of_its_pod(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "WAIT_SECONDS", 0.05)
    async with start() as node:
        driver = await node.serve(MockDriver(), attachRequired=True)
        await node.claim("data")
        assert "volume has not been added to the list of VolumesInUse" in await node.refused(node.pod())
        node.node = _node(["kubernetes.io/csi/mock.example.com^h-1"], [])
        assert "volume not attached according to node status" in await node.refused(node.pod())
        await node.manager.teardown("u1")
        assert (driver.calls, node.attachments.in_use()) == ([], [])


async def test_a_restarted_kubelet_takes_down_from_the_disk_alone_what_a_dead_one_had_begun(start: Any) -> None:
    async with start() as node:
        driver = await node.serve(MockDriver())
        await node.claim("data")
        driver.hanging["NodePublishVolume"] = asyncio.Event()
        task = asyncio.create_task(node.manager.ensure(node.pod()))
        await wait_for(lambda: "NodePublishVolume" in driver.names(), "the volume is staged, and being published")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        driver.hanging["NodePublishVolume"].set()
        node.restart()
        assert node.manager.orphans([]) == ["u1"]
        await node.manager.remove("u1")
        assert driver.names()[2:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]
        assert not (node.root / "pods" / "u1").exists()
        assert not node.staging().parent.exists()


async def test_a_driver_that_died_leaves_its_pod_and_a_staging_that_failed_is_undone_later(start: Any) -> None:
    async with start() as node:
        driver = await node.serve(MockDriver())
        await node.claim("data")
        await node.manager.ensure(node.pod())
        driver.failing["NodeUnpublishVolume"] = [CSIError("Internal", "busy")]
        driver.failing["NodeUnstageVolume"] = [CSIError("Internal", "busy too")]
        with pytest.raises(
            VolumeError, match=r"UnmountVolume.TearDown failed for volume .* code = Internal desc = busy"
        ):
            await node.manager.teardown("u1")
        assert node.manager.has_volumes("u1")
        await node.manager.teardown("u1")
        assert node.staging().exists()
        await node.csi.unstage_unused()
        assert not node.staging().exists()
        assert driver.names().count("NodeUnstageVolume") == 2


async def test_what_a_driver_refused_finally_is_not_undone_and_what_may_have_happened_is(start: Any) -> None:
    async with start() as node:
        driver = await node.serve(MockDriver())
        await node.claim("data")
        driver.failing["NodeStageVolume"] = [CSIError("InvalidArgument", "no such disk")]
        message = await node.refused(node.pod())
        assert message.startswith('MountVolume.MountDevice failed for volume "')
        assert message.endswith("rpc error: code = InvalidArgument desc = no such disk")
        await node.manager.teardown("u1")
        assert "NodeUnstageVolume" not in driver.names()
        driver.calls.clear()
        driver.failing["NodeStageVolume"] = [CSIError("DeadlineExceeded", "slow disk")]
        await node.refused(node.pod())
        await node.manager.teardown("u1")
        assert driver.names()[-1] == "NodeUnstageVolume"
        assert not node.staging().parent.exists()


async def test_a_hanging_driver_costs_only_its_own_pods(start: Any) -> None:
    class Stuck(MockDriver):
        name = "stuck.example.com"

    async with start() as node:
        stuck, driver = await node.serve(Stuck()), await node.serve(MockDriver())
        free = stuck.hanging["NodeStageVolume"] = asyncio.Event()
        await node.claim("data")
        await node.claim("lost", "h-2", csi={"driver": "stuck.example.com"})
        waiting = asyncio.create_task(node.manager.ensure(node.pod("u2", claim="lost")))
        await wait_for(lambda: stuck.calls, "one pod waits for the driver that hangs")
        await node.manager.ensure(node.pod("u1"))
        assert driver.names() == ["NodeStageVolume", "NodePublishVolume"]
        free.set()
        await waiting


async def test_an_unregistered_driver_is_named_and_its_pod_can_be_deleted(start: Any) -> None:
    async with start() as node:
        await node.claim("data")
        message = await node.refused(node.pod())
        assert "driver name mock.example.com not found in the list of registered CSI drivers" in message
        await node.manager.teardown("u1")
        driver = await node.serve(NodeDriver())
        await node.manager.ensure(node.pod())
        assert driver.names() == ["NodePublishVolume"]
        assert driver.last("NodePublishVolume").staging_target_path == ""


async def test_access_modes_read_only_and_secrets(start: Any) -> None:
    async with start() as node:
        driver = await node.serve(MockDriver())
        for name, text in (("stage", b"one"), ("publish", b"two")):
            data = {"key": base64.b64encode(text).decode()}
            await node.client.create(Secret(metadata=ObjectMeta(name=name, namespace=node.namespace), data=data))
        secrets = {
            f"node{each.title()}SecretRef": {"namespace": node.namespace, "name": each} for each in ("stage", "publish")
        }
        await node.claim("data", accessModes=["ReadOnlyMany"], csi=secrets)
        use = {"persistentVolumeClaim": {"claimName": "data", "readOnly": True}}
        (mounted,) = (await node.manager.ensure(node.pod(volume=use))).values()
        assert mounted.read_only
        publish = driver.last("NodePublishVolume")
        assert publish.readonly
        assert publish.volume_capability.access_mode.mode == v1.AccessMode.MULTI_NODE_READER_ONLY
        assert dict(driver.last("NodeStageVolume").secrets) == {"key": "one"}
        assert dict(publish.secrets) == {"key": "two"}
        await node.claim("gone", "h-2", csi={"nodeStageSecretRef": {"namespace": node.namespace, "name": "nope"}})
        message = await node.refused(node.pod("u2", claim="gone"))
        assert f"failed to get secret {node.namespace}/nope" in message


async def test_a_volume_for_one_pod_waits_until_the_other_has_left_it(start: Any) -> None:
    async with start() as node:
        driver = await node.serve(MockDriver())
        await node.claim("data", accessModes=["ReadWriteOncePod"])
        await node.manager.ensure(node.pod("u1"))
        node.restart()
        assert await node.refused(node.pod("u2")) == (
            f'MountVolume.SetUp failed for volume "{node.volume("data")}" : '
            "volume uses the ReadWriteOncePod access mode and is already in use by another pod"
        )
        await node.manager.ensure(node.pod("u1"))
        await node.manager.teardown("u1")
        await node.manager.ensure(node.pod("u2"))
        assert driver.last("NodePublishVolume").target_path == str(node.published("u2"))
        await node.manager.teardown("u2")
        assert driver.names()[-1] == "NodeUnstageVolume"


async def test_a_pod_goes_on_when_its_volume_cannot_be_published_again(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start() as node:
        driver = await node.serve(MockDriver(), requiresRepublish=True)
        await node.claim("data")
        await node.manager.ensure(node.pod())
        get = node.client.get

        async def away(kind: Any, *names: Any, **more: Any) -> Any:
            if kind is CSIDriver:
                raise ConnectionRefusedError("the API server is away")
            return await get(kind, *names, **more)

        monkeypatch.setattr(node.client, "get", away)
        (mounted,) = (await node.manager.ensure(node.pod())).values()
        assert mounted.path == node.published()
        assert [reason for reason, _ in node.events] == ["FailedMount"]
        assert "the API server is away" in node.events[0][1]
        monkeypatch.undo()
        await node.manager.ensure(node.pod())
        assert driver.names() == ["NodeStageVolume", *["NodePublishVolume"] * 2]


async def test_an_inline_volume_needs_a_driver_that_says_so(start: Any) -> None:
    async with start() as node:
        inline = {"csi": {"driver": "mock.example.com", "volumeAttributes": {"size": "3"}}}
        driver = await node.serve(MockDriver())
        message = await node.refused(node.pod(volume=inline))
        assert (
            'volume mode "Ephemeral" not supported by driver mock.example.com (only supports ["Persistent"])' in message
        )
        await node.client.delete(CSIDriver, "mock.example.com")
        message = await node.refused(node.pod(volume=inline))
        assert 'volume mode "Ephemeral" not supported by driver mock.example.com (no CSIDriver object)' in message
        modes = {"attachRequired": False, "podInfoOnMount": True, "volumeLifecycleModes": ["Ephemeral"]}
        await node.client.create(msgspec.convert({"metadata": {"name": "mock.example.com"}, "spec": modes}, CSIDriver))
        (mounted,) = (await node.manager.ensure(node.pod(volume=inline))).values()
        assert mounted.path == node.root / "pods/u1/volumes/kubernetes.io~csi/data/mount"
        publish = driver.last("NodePublishVolume")
        assert publish.volume_id.startswith("csi-")
        assert publish.volume_context["csi.storage.k8s.io/ephemeral"] == "true"
        assert publish.volume_context["size"] == "3"
        await node.manager.teardown("u1")
        assert driver.names() == ["NodePublishVolume", "NodeUnpublishVolume"]


async def test_a_block_volume_is_a_device_at_the_published_path(start: Any) -> None:
    async with start() as node:
        driver = await node.serve(MockDriver())
        await node.claim("data", volumeMode="Block")
        (mounted,) = (await node.manager.ensure(node.pod(device=True))).values()
        name = node.volume("data")
        devices = node.root / "plugins/kubernetes.io/csi/volumeDevices"
        assert (mounted.device, mounted.path) == (True, devices / "publish" / name / "u1")
        assert driver.last("NodePublishVolume").volume_capability.HasField("block")
        assert driver.last("NodeStageVolume").staging_target_path == str(devices / "staging" / name)
        link = node.root / "pods/u1/volumeDevices/kubernetes.io~csi" / name
        assert link.readlink() == mounted.path
        node.restart()
        await node.manager.teardown("u1")
        assert driver.names()[2:] == ["NodeUnpublishVolume", "NodeUnstageVolume"]
        assert not link.is_symlink()
        assert not mounted.path.exists()


async def test_tokens_are_given_and_renewed_where_the_driver_asks_for_republication(start: Any) -> None:
    async with start() as node:
        account = ServiceAccount(metadata=ObjectMeta(name="app", namespace=node.namespace))
        await node.client.create(account)
        driver = await node.serve(MockDriver(), tokenRequests=[{"audience": "vault"}], requiresRepublish=True)
        await node.claim("data")
        pod = node.pod(serviceAccountName="app")
        made = await node.client.create(
            msgspec.convert(
                {
                    "metadata": {"name": "web-u1", "namespace": node.namespace},
                    "spec": {"serviceAccountName": "app", "containers": [{"name": "main", "image": "busybox"}]},
                },
                Pod,
            )
        )
        assert made.metadata is not None
        assert pod.metadata is not None
        pod.metadata.uid = made.metadata.uid
        for _ in range(3):
            await node.manager.ensure(pod)
        assert driver.names() == ["NodeStageVolume", *["NodePublishVolume"] * 3]
        tokens = json.loads(driver.last("NodePublishVolume").volume_context["csi.storage.k8s.io/serviceAccount.tokens"])
        assert tokens["vault"]["token"].count(".") == 2
        assert tokens["vault"]["expirationTimestamp"].endswith("Z")


async def test_a_larger_volume_is_expanded_on_the_node_and_its_claim_says_so(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "LOOK_EVERY", 0.0)
    async with start() as node:
        driver = await node.serve(MockDriver())
        await node.claim("data", capacity={"storage": "2Gi"})
        await node.manager.ensure(node.pod())
        expand = driver.last("NodeExpandVolume")
        assert (expand.volume_path, expand.capacity_range.required_bytes) == (str(node.published()), 2 << 30)
        assert expand.staging_target_path == str(node.staging())
        assert await _capacity(node) == "2Gi"
        assert [reason for reason, _ in node.events] == ["FileSystemResizeSuccessful"]
        more = {"spec": {"capacity": {"storage": "3Gi"}}}
        await node.client.patch(PersistentVolume, node.volume("data"), more)
        # The API lets only claims of an expandable class grow; that the claim wants more is said here.
        monkeypatch.setattr(expansion, "_needs_more", lambda claim, size: size is None or str(size) == "3Gi")
        await node.manager.ensure(node.pod())
        assert driver.last("NodeExpandVolume").capacity_range.required_bytes == 3 << 30
        assert await _capacity(node) == "3Gi"


async def test_the_driver_says_how_full_a_volume_is_and_its_claim_is_named(start: Any) -> None:
    async with start() as node:
        driver = await node.serve(MockDriver())
        await node.claim("data")
        pod = node.pod()
        await node.manager.ensure(pod)
        (found,) = await stats.volumes_of(node.csi, "u1")
        assert (found.name, found.on.capacity, found.on.used, found.on.inodes_used) == ("data", 1000, 250, 3)
        measured = claims_of({"u1": PodDisk(volumes=[found])}, {"u1": pod}.get)
        assert list(measured) == [((node.namespace, "data"), found)]
        driver.sick = "a disk is missing"
        (found,) = await stats.volumes_of(node.csi, "u1", pod)
        assert found.abnormal
        assert ("VolumeConditionAbnormal", "Volume data: a disk is missing") in node.events
        driver.failing["NodeGetVolumeStats"] = [CSIError("Internal", "cannot")]
        assert await stats.volumes_of(node.csi, "u1") == []


async def _capacity(node: _Node) -> str:
    found = await node.client.get(PersistentVolumeClaim, "data", node.namespace)
    assert found.status is not None
    return str((found.status.capacity or {})["storage"])


@pytest.mark.parametrize(
    ("policy", "fs_type", "modes", "group"),
    [
        (None, "ext4", ["ReadWriteOnce"], True),
        (None, "", ["ReadWriteOnce"], False),
        (None, "ext4", ["ReadWriteMany"], False),
        ("File", "", ["ReadWriteMany"], True),
        ("None", "ext4", ["ReadWriteOnce"], False),
    ],
)
async def test_the_pods_group_gets_the_volume_where_the_drivers_policy_says_so(
    start: Any, policy: str | None, fs_type: str, modes: list[str], group: bool
) -> None:
    async with start() as node:
        await node.serve(MockDriver(), **({"fsGroupPolicy": policy} if policy else {}))
        await node.claim("data", accessModes=modes, csi={"fsType": fs_type, "volumeAttributes": {"file": "x"}})
        await node.manager.ensure(node.pod(securityContext={"fsGroup": 4711}))
        assert ((node.published() / "file").stat().st_gid == 4711) is group
