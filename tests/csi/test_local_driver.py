"""The driver of local volumes, called over its socket: names are volumes, crashes leave nothing, errors are said."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pybernetes.csi import v1
from pybernetes.csi.client import CSIClient
from pybernetes.csi.driver import serving
from pybernetes.csi.drivers.local import driver as local_driver
from pybernetes.csi.drivers.local.driver import NAME, TOPOLOGY, LocalDriver
from pybernetes.csi.errors import CSIError

MOUNT = {"mount": {}, "access_mode": {"mode": 1}}
BLOCK = {"block": {}, "access_mode": {"mode": 1}}
MI = 1 << 20


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pyb-") as made:
        yield Path(made)


@asynccontextmanager
async def _driver(folder: Path) -> AsyncIterator[CSIClient]:
    driver = LocalDriver("node-1", "host-1", folder / "state")
    async with serving(driver, folder / "csi.sock") as address, CSIClient(address) as client:
        yield client


async def _create(client: CSIClient, name: str, size: int = 10 * MI, **more: Any) -> Any:
    fields = {"volume_capabilities": [MOUNT], "capacity_range": {"required_bytes": size}, **more}
    return (await client.call("CreateVolume", name=name, **fields)).volume


async def _code(client: CSIClient, name: str, /, **fields: Any) -> str:
    with pytest.raises(CSIError) as caught:
        await client.call(name, **fields)
    return caught.value.code


async def test_a_name_is_a_volume_however_often_it_is_asked_for(folder: Path) -> None:
    async with _driver(folder) as client:
        assert await client.driver_name() == NAME
        volume = await _create(client, "pvc-1")
        assert (volume.volume_id, volume.capacity_bytes) == ("pvc-1", 10 * MI)
        assert dict(volume.accessible_topology[0].segments) == {TOPOLOGY: "host-1"}
        assert (await _create(client, "pvc-1")).volume_id == "pvc-1"
        assert (await _create(client, "pvc-1", 0)).capacity_bytes == 10 * MI
        bigger = {"required_bytes": 20 * MI}
        asked = {"name": "pvc-1", "volume_capabilities": [MOUNT], "capacity_range": bigger}
        assert await _code(client, "CreateVolume", **asked) == "AlreadyExists"
        for _ in range(2):
            await client.call("DeleteVolume", volume_id="pvc-1")
        assert os.listdir(folder / "state" / "volumes") == []


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"parameters": {"capacity": "much"}}, "InvalidArgument", "capacity is 'much'"),
        ({"parameters": {"colour": "blue"}}, "InvalidArgument", "colour not known"),
        ({"mutable_parameters": {"iops": "3"}}, "InvalidArgument", "no mutable parameters"),
        ({"volume_capabilities": [MOUNT, BLOCK]}, "InvalidArgument", "either a file system or a device"),
        ({"volume_capabilities": [{"mount": {}, "access_mode": {"mode": 5}}]}, "InvalidArgument", "ReadWriteMany"),
        (
            {"volume_capabilities": [{"mount": {"fs_type": "zfs"}, "access_mode": {"mode": 1}}]},
            "InvalidArgument",
            "zfs",
        ),
        ({"capacity_range": {"required_bytes": 5, "limit_bytes": 4}}, "OutOfRange", "required 5, limit 4"),
        ({"capacity_range": {"required_bytes": -5}}, "OutOfRange", "required -5"),
        (
            {"capacity_range": {"required_bytes": 1 << 60}, "parameters": {"capacity": "enforced"}},
            "ResourceExhausted",
            "bytes left",
        ),
        ({"accessibility_requirements": {"requisite": [{"segments": {TOPOLOGY: "b"}}]}}, "ResourceExhausted", "node-1"),
        ({"volume_content_source": {"snapshot": {"snapshot_id": "none"}}}, "NotFound", "snapshot none"),
        ({"volume_content_source": {"volume": {"volume_id": "../.."}}}, "NotFound", "volume ../.."),
    ],
)
async def test_a_volume_that_cannot_be_is_refused_with_the_field(
    folder: Path, fields: dict[str, Any], code: str, text: str
) -> None:
    async with _driver(folder) as client:
        with pytest.raises(CSIError) as caught:
            await _create(client, "pvc-1", **fields)
        assert caught.value.code == code
        assert text in caught.value.message
        assert os.listdir(folder / "state" / "volumes") == []


@pytest.mark.parametrize("name", ["../../etc", ".hidden", "a/b", "x" * 300, "ünï"])
async def test_any_name_becomes_a_folder_below_the_drivers_own(folder: Path, name: str) -> None:
    async with _driver(folder) as client:
        volume = await _create(client, name)
        assert os.listdir(folder / "state" / "volumes") == [volume.volume_id]
        assert (await _create(client, name)).volume_id == volume.volume_id


async def test_snapshots_and_clones_have_what_the_volume_had(folder: Path) -> None:
    async with _driver(folder) as client:
        await _create(client, "one")
        data = folder / "state/volumes/one/data"
        (data / "file").write_text("before")
        (data / "link").symlink_to("/etc/passwd")
        asked = {"source_volume_id": "one", "name": "s"}
        snapshot = (await client.call("CreateSnapshot", **asked)).snapshot
        assert (snapshot.ready_to_use, snapshot.source_volume_id, snapshot.size_bytes) == (True, "one", 10 * MI)
        (data / "file").write_text("after")
        assert (await client.call("CreateSnapshot", **asked)).snapshot.creation_time == snapshot.creation_time
        await _create(client, "two")
        assert await _code(client, "CreateSnapshot", source_volume_id="two", name="s") == "AlreadyExists"
        assert await _code(client, "CreateSnapshot", source_volume_id="none", name="t") == "NotFound"
        source = {"snapshot": {"snapshot_id": snapshot.snapshot_id}}
        await _create(client, "restored", volume_content_source=source)
        restored = folder / "state/volumes/restored/data"
        assert (restored / "file").read_text() == "before"
        assert os.readlink(restored / "link") == "/etc/passwd"
        await _create(client, "clone", volume_content_source={"volume": {"volume_id": "one"}})
        assert (folder / "state/volumes/clone/data/file").read_text() == "after"
        with pytest.raises(CSIError, match="code = OutOfRange"):
            await _create(client, "small", MI, volume_content_source=source)
        listed = await client.call("ListSnapshots", source_volume_id="one")
        assert [each.snapshot.snapshot_id for each in listed.entries] == [snapshot.snapshot_id]
        for _ in range(2):
            await client.call("DeleteSnapshot", snapshot_id=snapshot.snapshot_id)
        assert not (await client.call("ListSnapshots")).entries


async def test_what_a_crash_cut_off_is_removed_at_the_next_start(folder: Path) -> None:
    async with _driver(folder) as client:
        await _create(client, "kept")
    volumes = folder / "state" / "volumes"
    (volumes / ".making-half-1" / "data").mkdir(parents=True)
    (volumes / ".removing-old-1" / "data").mkdir(parents=True)
    async with _driver(folder) as client:
        assert os.listdir(volumes) == ["kept"]
        (volumes / "kept" / "volume.json").write_text("{")
        assert (
            await _code(client, "ControllerExpandVolume", volume_id="kept", capacity_range={"required_bytes": MI})
            == "NotFound"
        )
        assert (volumes / "kept" / "data").is_dir()


async def test_a_volume_grows_and_never_shrinks_and_lists_have_pages(folder: Path) -> None:
    async with _driver(folder) as client:
        for name in "abc":
            await _create(client, name)
        for size, has in ((20 * MI, 20 * MI), (5 * MI, 20 * MI)):
            fields = {"volume_id": "a", "capacity_range": {"required_bytes": size}}
            response = await client.call("ControllerExpandVolume", **fields)
            assert (response.capacity_bytes, response.node_expansion_required) == (has, False)
        assert json.loads((folder / "state/volumes/a/volume.json").read_text())["size"] == 20 * MI
        first = await client.call("ListVolumes", max_entries=2)
        second = await client.call("ListVolumes", max_entries=2, starting_token=first.next_token)
        assert [each.volume.volume_id for each in (*first.entries, *second.entries)] == ["a", "b", "c"]
        assert not second.next_token
        assert await _code(client, "ListVolumes", starting_token="nowhere") == "Aborted"
        there = await client.call("GetCapacity", accessible_topology={"segments": {TOPOLOGY: "other"}})
        assert there.available_capacity == 0
        assert (await client.call("GetCapacity")).available_capacity > 0


async def test_capabilities_are_confirmed_or_refused_with_a_reason(folder: Path) -> None:
    async with _driver(folder) as client:
        await _create(client, "a")
        response = await client.call("ValidateVolumeCapabilities", volume_id="a", volume_capabilities=[MOUNT])
        assert response.HasField("confirmed")
        response = await client.call("ValidateVolumeCapabilities", volume_id="a", volume_capabilities=[BLOCK])
        assert not response.HasField("confirmed")
        assert "cannot be used" in response.message
        assert v1.ControllerRPC.CLONE_VOLUME in await client.controller_capabilities()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
async def test_a_volume_is_published_and_unpublished_any_number_of_times(folder: Path) -> None:
    async with _driver(folder) as client:
        await _create(client, "a")
        target = folder / "target"
        publish = {"volume_id": "a", "target_path": str(target), "volume_capability": MOUNT}
        for _ in range(2):
            await client.call("NodePublishVolume", **publish)
        (target / "file").write_text("x")
        assert (folder / "state/volumes/a/data/file").read_text() == "x"
        stats = await client.call("NodeGetVolumeStats", volume_id="a", volume_path=str(target))
        assert stats.usage[0].total > 0
        assert not stats.volume_condition.abnormal
        for _ in range(2):
            await client.call("NodeUnpublishVolume", volume_id="a", target_path=str(target))
        assert not target.exists()
        assert await _code(client, "NodeGetVolumeStats", volume_id="a", volume_path=str(target)) == "NotFound"
        assert await _code(client, "NodePublishVolume", **{**publish, "volume_id": "none"}) == "NotFound"


async def test_who_may_not_mount_has_folders_only_and_links_to_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(local_driver, "may_mount", lambda: False)
    monkeypatch.setattr(local_driver, "unmount", refused)
    async with _driver(folder) as client:
        for more in ({"parameters": {"capacity": "enforced"}}, {"volume_capabilities": [BLOCK]}):
            with pytest.raises(CSIError, match=r"code = InvalidArgument .* needs loop devices, which node node-1"):
                await _create(client, "pvc-1", **more)
        await _create(client, "pvc-1")
        target = folder / "target"
        call = {"volume_id": "pvc-1", "target_path": str(target), "volume_capability": MOUNT}
        for _ in range(2):
            await client.call("NodePublishVolume", **call)
        (target / "file").write_text("x")
        for _ in range(2):
            await client.call("NodeUnpublishVolume", volume_id="pvc-1", target_path=str(target))
            await client.call("NodeUnstageVolume", volume_id="pvc-1", staging_target_path=str(folder / "staging"))
        assert not target.is_symlink()
        assert (folder / "state/volumes/pvc-1/data/file").read_text() == "x"
