"""Sidecar mode: what the webhook makes of pods, and the client that runs beside them."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509

from pybernetes.api import errors
from pybernetes.api.core.v1 import Namespace, PersistentVolume, PersistentVolumeClaim, Secret
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.csi.errors import CSIError
from pybernetes.objectfs.csi import injection, sidecar
from pybernetes.objectfs.csi.binding import bind, unbind
from pybernetes.objectfs.csi.request import NAME, volume
from pybernetes.objectfs.csi.webhook import Certificate, Injector
from pybernetes.objectfs.fuse import mount_point
from tools import ApiServer, wait_until

HOW = injection.Client("image:1", "/usr/bin/python3", "/local")
PASSWORD = "s3cr3t-pa55"
CONTAINER = {"name": "app", "image": "busybox", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}


def pod(claim: str, **more: Any) -> dict[str, Any]:
    source = {"name": "data", "persistentVolumeClaim": {"claimName": claim, **more}}
    return {"metadata": {"name": "web"}, "spec": {"containers": [CONTAINER], "volumes": [source]}}


def apply(pod: dict[str, Any], patch: list[dict[str, Any]]) -> dict[str, Any]:
    """The patch has only whole fields of metadata and spec."""
    made: dict[str, Any] = {key: dict(value) for key, value in pod.items()}
    for each in patch:
        assert each["op"] == "add"
        _, part, field = each["path"].split("/")
        made[part][field] = each["value"]
    return made


async def make_volume(client: Client, name: str, bound: bool = True) -> None:
    label = {"metadata": {"labels": {"objectfs.pybernetes.io/inject": "enabled"}}}
    await client.patch(Namespace, "default", label)
    values = {"name": "shared", "metaurl": f"redis://u:{PASSWORD}@host/0", "secret-key": PASSWORD}
    secret = {"metadata": {"name": name, "namespace": "kube-system"}, "stringData": values}
    await client.create(msgspec.convert(secret, Secret))
    csi = {
        "driver": NAME,
        "volumeHandle": name,
        "volumeAttributes": {"folder": "team", "mount-options": "enable-xattr"},
    }
    csi["nodePublishSecretRef"] = {"name": name, "namespace": "kube-system"}
    size = {"storage": "1Gi"}
    spec = {"capacity": size, "accessModes": ["ReadWriteMany"], "csi": csi, "storageClassName": ""}
    await client.create(msgspec.convert({"metadata": {"name": name}, "spec": spec}, PersistentVolume))
    wanted = {"accessModes": ["ReadWriteMany"], "resources": {"requests": size}, "storageClassName": ""}
    claim = {"metadata": {"name": name, "namespace": "default"}, "spec": {**wanted, "volumeName": name}}
    await client.create(msgspec.convert(claim, PersistentVolumeClaim))
    if bound:
        status = {"status": {"phase": "Bound", "capacity": size, "accessModes": ["ReadWriteMany"]}}
        await client.patch(PersistentVolumeClaim, name, status, "default", subresource="status")


async def review(client: Client, pod: dict[str, Any], **more: Any) -> dict[str, Any]:
    request = {"uid": "1", "namespace": "default", "object": pod, **more}
    found = await Injector(client, HOW).review({"request": request})
    answer: dict[str, Any] = found["response"]
    assert answer["uid"] == "1"
    return answer


async def test_a_pod_gets_a_client_beside_it_and_no_credentials_in_it(cluster: ApiServer) -> None:
    async with Client(config.load(cluster.kubeconfig)) as client:
        await make_volume(client, "sidecar")
        asked = pod("sidecar", readOnly=True)
        answer = await review(client, asked, dryRun=True)
        assert answer["allowed"]
        with pytest.raises(errors.NotFound):
            await client.get(Secret, "objectfs-sidecar-secret", "default")
        answer = await review(client, asked)
        text = base64.b64decode(answer["patch"]).decode()
        assert PASSWORD not in text
        assert "privileged sidecar" in answer["warnings"][0]
        made = apply(asked, json.loads(text))
        [sidecar], [app] = made["spec"]["initContainers"], made["spec"]["containers"]
        assert (sidecar["name"], sidecar["image"], sidecar["restartPolicy"]) == (
            "objectfs-sidecar",
            "image:1",
            "Always",
        )
        assert app["volumeMounts"] == [
            {"name": "data", "mountPath": "/data", "mountPropagation": "HostToContainer", "readOnly": True}
        ]
        # The pod's folder is where the sidecar mounts the volume, and the probe waits for it.
        [path] = [each["hostPath"]["path"] for each in made["spec"]["volumes"] if each["name"] == "data"]
        target = sidecar["args"][-1]
        assert path.replace(injection.FOLDER, "/jfs") == target
        assert sidecar["startupProbe"]["exec"]["command"][-1] == target
        state = json.loads(sidecar["env"][0]["value"])
        assert (state["folder"], state["options"]) == ("team", ["enable-xattr", "ro"])
        # The credentials are in a Secret that goes with the claim.
        secret = await client.get(Secret, sidecar["envFrom"][0]["secretRef"]["name"], "default")
        assert base64.b64decode(secret.data["SECRET_KEY"]).decode() == PASSWORD
        assert [each.name for each in secret.metadata.owner_references] == ["sidecar"]
        # Without the label no client gets anything.
        await client.delete(Secret, secret.metadata.name, "default")
        await client.patch(Namespace, "default", {"metadata": {"labels": {"objectfs.pybernetes.io/inject": None}}})
        assert "patch" not in await review(client, asked)
        with pytest.raises(errors.NotFound):
            await client.get(Secret, secret.metadata.name, "default")
        await client.patch(Namespace, "default", {"metadata": {"labels": {"objectfs.pybernetes.io/inject": "enabled"}}})
        # Another pod has a mount of its own.
        other = apply(asked, json.loads(base64.b64decode((await review(client, asked))["patch"])))
        assert other["spec"]["initContainers"][0]["args"][-1] != target


async def test_pods_without_a_volume_of_ours_stay_as_they_are_and_what_cannot_be_is_refused(cluster: ApiServer) -> None:
    async with Client(config.load(cluster.kubeconfig)) as client:
        assert "patch" not in await review(client, {"metadata": {}, "spec": {"containers": [CONTAINER]}})
        await make_volume(client, "unbound", bound=False)
        refused = await review(client, pod("missing"))
        assert not refused["allowed"]
        assert "persistentvolumeclaim 'missing' not found" in refused["status"]["message"]
        refused = await review(client, pod("unbound"))
        assert "persistentvolumeclaim 'unbound' is not bound yet" in refused["status"]["message"]
        await client.patch(
            PersistentVolumeClaim, "unbound", {"status": {"phase": "Bound"}}, "default", subresource="status"
        )
        device = pod("unbound")
        device["spec"]["containers"] = [
            {"name": "app", "image": "busybox", "volumeDevices": [{"name": "data", "devicePath": "/dev/x"}]}
        ]
        refused = await review(client, device)
        assert refused["status"]["message"] == "container app: volumeDevices data: a file system is no device"


async def test_the_api_server_trusts_the_webhooks_certificate_also_after_a_restart(
    cluster: ApiServer, tmp_path: Path
) -> None:
    async with Client(config.load(cluster.kubeconfig)) as client:
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        service = {"name": "objectfs-csi-webhook", "namespace": "default"}
        hook = {"name": "inject.objectfs.pybernetes.io", "clientConfig": {"service": service}, "sideEffects": "None"}
        hook |= {"admissionReviewVersions": ["v1"], "namespaceSelector": {"matchLabels": {"no": "such"}}}
        await client.call("POST", path, {"metadata": {"name": "objectfs-csi-webhook"}, "webhooks": [hook]})
        bundles, certificates = [], []
        for each in ("one", "two"):
            (tmp_path / each).mkdir()
            certificate = Certificate(client, "default", tmp_path / each)
            await certificate.ensure()
            found = await client.call("GET", f"{path}/objectfs-csi-webhook")
            bundles.append(found["webhooks"][0]["clientConfig"]["caBundle"])
            certificates.append(certificate.certificate.read_bytes())
            assert (certificate.key.stat().st_mode & 0o777) == 0o600
        shown = x509.load_pem_x509_certificate(certificates[0])
        trusted = x509.load_pem_x509_certificate(base64.b64decode(bundles[0]))
        shown.verify_directly_issued_by(trusted)
        assert shown.issuer != shown.subject, "it does not pass for self-signed"
        assert bundles[0] == bundles[1]
        assert certificates[0] == certificates[1]


@pytest.fixture
def shared(mounts: Any, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a sidecar, and no mount left of it."""
    values = {"name": "shared", "metaurl": f"sqlite://{tmp_path}/meta.db", "bucket": str(tmp_path / "bucket")}
    options = {"folder": "team", "mount-options": f"metrics=none,cache-dir={tmp_path}/cache"}
    found = volume("pv-1", options, values)
    yield {**os.environ, "VOLUME": json.dumps(found.to_state()), "META_URL": found.metaurl}
    for each in (tmp_path / "jfs").iterdir() if (tmp_path / "jfs").exists() else ():
        unbind(str(each))


def test_a_sidecar_mounts_a_folder_survives_its_own_death_and_leaves_nothing(
    shared: dict[str, str], tmp_path: Path
) -> None:
    target = tmp_path / "jfs" / "pod-1"
    command = [sys.executable, "-P", "-m", "pybernetes", "objectfs", "csi", "sidecar", "--target", str(target)]

    target.mkdir(parents=True)  # the kubelet's part

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=shared, start_new_session=True)

    def answers() -> bool:
        return mount_point.mounted(str(target)) is not None and os.path.ismount(target)

    first = start()
    wait_until(answers, "the folder is mounted")
    (target / "file").write_text("hello")
    # A container of the pod has a mount that is bound to the target, and gets what is mounted over that.
    container = tmp_path / "container"
    container.mkdir()
    for words in (["--make-shared", target], ["--rbind", target, container], ["--make-slave", container]):
        subprocess.run(["mount", *words], check=True)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    wait_until(lambda: _is_dead(container), "there is no answer")
    second = start()
    try:
        wait_until(lambda: not _is_dead(container), "another answers")
        assert (container / "file").read_text() == "hello"
    finally:
        unbind(str(container))
        second.terminate()
    assert second.wait(60) == 0
    assert list((tmp_path / "jfs").iterdir()) == []


def _is_dead(place: Path) -> bool:
    try:
        os.statvfs(place)
    except OSError:
        return True
    return False


def test_a_dead_mount_is_removed_when_its_pod_has_had_the_time_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidecar, "_is_abandoned", lambda place: place.name == "dead")
    monkeypatch.setattr(mount_point, "mounted", lambda place: ("x", "fuse") if os.path.isdir(place) else None)
    monkeypatch.setattr(sidecar, "unbind", os.rmdir)
    for name in ("dead", "alive"):
        (tmp_path / name).mkdir()
    for _ in range(2):
        sidecar.sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".dead-dead", "alive", "dead"]
    os.utime(tmp_path / ".dead-dead", (0, 0))
    sidecar.sweep(tmp_path)
    assert os.listdir(tmp_path) == ["alive"]


def test_a_link_in_a_volume_does_not_lead_to_the_node(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    source, target = tmp_path / "volume", tmp_path / "target"
    source.mkdir()
    (source / "team").symlink_to("/etc")
    for folder in ("team", "team/sub"):
        with pytest.raises(CSIError, match="'team' in the volume is a link or a file"):
            bind(source, folder, str(target), read_only=False)
    assert not target.exists() or mount_point.mounted(str(target)) is None
    # A process that was killed between the bind and its restriction to reading is made good by the next.
    bind(source, "other/deep", str(target), read_only=False)
    try:
        (target / "file").write_text("x")
        bind(source, "other/deep", str(target), read_only=True)
        with pytest.raises(OSError, match="Read-only"):
            (target / "more").touch()
    finally:
        unbind(str(target))
    assert (source / "other/deep/file").read_text() == "x"
