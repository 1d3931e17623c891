"""The CSI driver without a cluster: what its calls make of requests, references, and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pybernetes.csi import v1
from pybernetes.csi.errors import CSIError
from pybernetes.objectfs.csi import manifests
from pybernetes.objectfs.csi.driver import ControllerDriver, NodeDriver
from pybernetes.objectfs.csi.mounts import ProcessMounts
from pybernetes.objectfs.csi.publisher import Publisher
from pybernetes.objectfs.csi.request import Volume, pod_name, safe_name, volume
from pybernetes.objectfs.csi.state import States
from pybernetes.objectfs.fuse import mount_point
from tools import PYTHON

SECRET_URL = "postgres://u:s3cr3t@host/db"


def capability(mode: str = "MULTI_NODE_MULTI_WRITER") -> object:
    return v1.VolumeCapability(mount={}, access_mode={"mode": getattr(v1.AccessMode, mode)})


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, str]:
    return {"name": "shared", "metaurl": f"sqlite://{tmp_path}/meta.db", "bucket": str(tmp_path / "bucket")}


def write_and_read(writable: str, read_only: str) -> None:
    Path(writable, "file").write_text("hello")
    assert Path(read_only, "file").read_text() == "hello"
    with pytest.raises(OSError, match="Read-only"):
        Path(read_only, "more").touch()


async def test_a_process_for_each_volume_serves_all_its_targets_and_ends_with_the_last(mounts, tmp_path, secrets):
    states = States(tmp_path / "state")
    process = ProcessMounts(tmp_path)
    driver = NodeDriver("node-1", Publisher(process, states))
    targets = [str(tmp_path / "pods" / each) for each in ("a", "b")]

    def request(target: str, readonly: bool = False) -> object:
        context = {"folder": "team", "mount-options": "metrics=none,cache-size=10"}
        return v1.NodePublishVolumeRequest(
            volume_id="pv-1", target_path=target, volume_capability=capability(), secrets=secrets,
            volume_context=context, readonly=readonly,
        )  # fmt: skip

    try:
        for each in targets:
            await driver.node_publish_volume(request(each, readonly=each == targets[1]))
        await driver.node_publish_volume(request(targets[0]))  # again: nothing happens
        alone = request(str(tmp_path / "pods" / "c"))
        alone.volume_capability.access_mode.mode = v1.AccessMode.SINGLE_NODE_SINGLE_WRITER
        with pytest.raises(CSIError, match="volume pv-1 is for one pod, and published at"):
            await driver.node_publish_volume(alone)
        assert states.get("pv-1").references == targets
        write_and_read(*targets)
        assert os.listdir(process.place("pv-1")) == ["team"]
        usage = await driver.node_get_volume_stats(
            v1.NodeGetVolumeStatsRequest(volume_id="pv-1", volume_path=targets[0])
        )
        assert usage.usage[1].used == 3
        await driver.node_unpublish_volume(v1.NodeUnpublishVolumeRequest(volume_id="pv-1", target_path=targets[0]))
        assert sorted(os.listdir(tmp_path / "pods")) == ["b"]
        assert os.listdir(targets[1]) == ["file"]
    finally:
        for each in targets:
            await driver.node_unpublish_volume(v1.NodeUnpublishVolumeRequest(volume_id="pv-1", target_path=each))
    assert mount_point.mounted(str(process.place("pv-1"))) is None
    assert states.all() == []


async def test_dynamic_volumes_are_folders_with_quotas_and_clones_of_each_other(mounts, secrets):
    mounts.meta = secrets["metaurl"]
    driver = ControllerDriver()

    async def create(name: str, size: int, **more: object) -> object:
        return await driver.create_volume(
            v1.CreateVolumeRequest(
                name=name, capacity_range={"required_bytes": size}, volume_capabilities=[capability()],
                secrets=secrets, parameters={"mount-options": "noatime"}, **more,
            )
        )  # fmt: skip

    nothing = v1.DeleteVolumeRequest(volume_id="pvc-0", secrets=secrets)
    await driver.delete_volume(nothing)  # not even the file system is there
    made = await create("pvc-1", 1 << 20)
    assert made.volume.volume_id == "pvc-1"
    assert dict(made.volume.volume_context) == {"folder": "pvc-1", "mount-options": "noatime"}
    assert await create("pvc-1", 1 << 20) == made
    with pytest.raises(CSIError, match="exists with 1048576 bytes"):
        await create("pvc-1", 2 << 20)
    place = mounts.mount("one")
    assert os.statvfs(place / "pvc-1").f_blocks * 4096 == 1 << 20, "df shows the claim's size"
    (place / "pvc-1" / "file").write_bytes(b"x" * 500_000)
    with pytest.raises(OSError, match="quota"):
        (place / "pvc-1" / "more").write_bytes(b"x" * 800_000)
    grown = v1.ControllerExpandVolumeRequest(
        volume_id="pvc-1", capacity_range={"required_bytes": 4 << 20}, secrets=secrets
    )
    assert not (await driver.controller_expand_volume(grown)).node_expansion_required
    (place / "pvc-1" / "more").write_bytes(b"x" * 800_000)
    snapshot = v1.CreateSnapshotRequest(name="snap-1", source_volume_id="pvc-1", secrets=secrets)
    first = (await driver.create_snapshot(snapshot)).snapshot
    assert first.ready_to_use
    (place / "pvc-1" / "file").write_text("changed")
    assert (await driver.create_snapshot(snapshot)).snapshot == first
    await create("other", 1 << 20)
    with pytest.raises(CSIError, match="snapshot snap-1 exists, of another volume"):
        await driver.create_snapshot(v1.CreateSnapshotRequest(name="snap-1", source_volume_id="other", secrets=secrets))
    for id, there in (("other", True), ("none", False)):
        asked = v1.ValidateVolumeCapabilitiesRequest(volume_id=id, volume_capabilities=[capability()], secrets=secrets)
        if there:
            assert (await driver.validate_volume_capabilities(asked)).confirmed.volume_capabilities
        else:
            with pytest.raises(CSIError, match="volume none is not in shared"):
                await driver.validate_volume_capabilities(asked)
    content = {"snapshot": {"snapshot_id": first.snapshot_id}}
    await create("pvc-2", 8 << 20, volume_content_source=content)
    assert (place / "pvc-2" / "file").read_bytes() == b"x" * 500_000
    await create("pvc-3", 8 << 20, volume_content_source={"volume": {"volume_id": "pvc-1"}})
    assert (place / "pvc-3" / "file").read_text() == "changed"
    for id in ("pvc-1", "pvc-1", "pvc-3", "other", "none"):
        await driver.delete_volume(v1.DeleteVolumeRequest(volume_id=id, secrets=secrets))
    await driver.delete_snapshot(v1.DeleteSnapshotRequest(snapshot_id=first.snapshot_id, secrets=secrets))
    assert sorted(each for each in os.listdir(place) if each != ".snapshots") == ["pvc-2"]
    mounts.umount(place)
    assert mounts.pyb("fsck", mounts.meta, check=False).returncode == 0


async def test_a_volume_that_cannot_be_formatted_says_why_without_its_secrets(tmp_path):
    driver = ControllerDriver()
    for change, said in (
        ({"name": "Bad!"}, "volume name 'Bad!'"),
        ({"storage": "tape"}, "object store 'tape'"),
        ({"metaurl": "redis://:s3cr3t@127.0.0.1:1/x"}, "redis://"),
        ({"metaurl": ""}, "no 'metaurl'"),
    ):
        secrets = {"name": "shared", "metaurl": f"sqlite://{tmp_path}/m.db", "bucket": str(tmp_path / "b")} | change
        with pytest.raises(CSIError, match=said) as caught:
            await driver.create_volume(
                v1.CreateVolumeRequest(name="p", volume_capabilities=[capability()], secrets=secrets)
            )
        assert "s3cr3t" not in str(caught.value)


def test_no_secret_is_in_the_mount_pod_or_on_the_disk_of_the_node():
    found = volume("pv-1", {"folder": "a/b"}, {"name": "shared", "metaurl": SECRET_URL, "secret-key": "k3y"})
    pod = json.dumps(manifests.mount_pod(found, "node-1", "system", "image", []))
    kept = json.dumps(found.to_state())
    for secret in ("s3cr3t", "k3y"):
        assert secret not in pod + kept + repr(found)
    assert Volume.from_state(json.loads(kept)).folder == "a/b"
    assert pod_name("node-1", "pv-1") == "objectfs-node-1-pv-1"
    assert manifests.secret(found, "node-1", "system")["metadata"]["name"] == "objectfs-node-1-pv-1-secret"


def test_names_are_safe_and_different():
    assert safe_name("pvc-123") == "pvc-123"
    names = {safe_name(each) for each in ("a/b", "a-b", "A-b", "../a-b", "x" * 100, "x" * 101)}
    assert len(names) == 6
    assert all("/" not in each and len(each) <= 63 for each in names)
    for folder in ("/abs", "../up", "a//b"):
        with pytest.raises(CSIError, match="folder"):
            volume("id", {"folder": folder}, {"name": "n", "metaurl": "sqlite:///x"})


def test_a_changed_image_or_option_is_noticed_and_a_folder_is_not_a_change():
    base = {"name": "shared", "metaurl": "sqlite:///x"}
    one = volume("pv", {"mount-options": "cache-size=1"}, base)
    assert one.fingerprint("i") != one.fingerprint("j")
    assert one.fingerprint("i") != volume("pv", {"mount-options": "cache-size=2"}, base).fingerprint("i")
    assert one.fingerprint("i") == volume("pv", {"mount-options": "cache-size=1", "folder": "f"}, base).fingerprint("i")


def test_one_command_prints_everything_that_a_cluster_needs(tmp_path):
    import subprocess

    import yaml

    text = subprocess.run([*PYTHON, "objectfs", "csi", "manifest"], check=True, capture_output=True, text=True).stdout
    kinds = [each["kind"] for each in yaml.safe_load_all(text)]
    assert kinds[:2] == ["Namespace", "ServiceAccount"]
    assert {"CSIDriver", "DaemonSet", "Deployment", "ClusterRole"} <= set(kinds)
