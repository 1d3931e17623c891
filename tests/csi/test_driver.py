"""A driver written on our base, called over its socket: capabilities, required fields, errors, one call a volume."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from csi.mock_driver import MockDriver, NodeDriver
from waiting import wait_for

from pybernetes.csi import v1
from pybernetes.csi.client import CSIClient
from pybernetes.csi.driver import Driver, serving
from pybernetes.csi.errors import CSIError

MOUNT = {"mount": {}, "access_mode": {"mode": 1}}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, because the path of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="pyb-") as made:
        yield Path(made)


class Disk(MockDriver):
    clones = True
    topology_keys = ("topology.mock.example.com/node",)

    async def create_volume(self, request: Any) -> Any:
        await self.noted("CreateVolume", request)
        return v1.CreateVolumeResponse(volume={"volume_id": request.name, "capacity_bytes": 5})

    async def controller_expand_volume(self, request: Any) -> Any:
        raise RuntimeError("the array is on fire")


async def test_capabilities_follow_from_the_methods_that_a_driver_has(folder: Path) -> None:
    async with serving(Disk(), folder / "csi.sock") as address, CSIClient(address) as client:
        assert await client.driver_name() == "mock.example.com"
        assert await client.plugin_capabilities() == {
            v1.PluginService.CONTROLLER_SERVICE,
            v1.PluginService.VOLUME_ACCESSIBILITY_CONSTRAINTS,
        }
        kinds = v1.ControllerRPC
        assert await client.controller_capabilities() == {
            kinds.CREATE_DELETE_VOLUME,
            kinds.EXPAND_VOLUME,
            kinds.CLONE_VOLUME,
            kinds.SINGLE_NODE_MULTI_WRITER,
        }
        assert v1.NodeRPC.STAGE_UNSTAGE_VOLUME in await client.node_capabilities()
        assert (await client.call("Probe")).ready.value is True
    async with serving(NodeDriver(), folder / "csi.sock") as address, CSIClient(address) as client:
        assert await client.plugin_capabilities() == set()
        assert await client.node_capabilities() == {v1.NodeRPC.SINGLE_NODE_MULTI_WRITER}
        with pytest.raises(CSIError, match="code = Unimplemented"):
            await client.call("CreateVolume", name="a", volume_capabilities=[MOUNT])


async def test_a_request_without_a_required_field_does_not_reach_the_driver(folder: Path) -> None:
    driver = Disk()
    async with serving(driver, folder / "csi.sock") as address, CSIClient(address) as client:
        for name, fields, missing in (
            ("CreateVolume", {"volume_capabilities": [MOUNT]}, "name"),
            ("CreateVolume", {"name": "a"}, "volume_capabilities"),
            ("NodeStageVolume", {"volume_id": "a", "staging_target_path": "/x"}, "volume_capability"),
            ("NodePublishVolume", {"volume_id": "a", "volume_capability": MOUNT}, "target_path"),
            ("CreateVolume", {"name": "a", "volume_capabilities": [{"mount": {}}]}, "volume_capability.access_mode"),
        ):
            with pytest.raises(CSIError) as caught:
                await client.call(name, **fields)
            assert caught.value.code == "InvalidArgument"
            assert f"{name}: {missing} missing in request" in caught.value.message
        assert driver.calls == []


async def test_a_second_call_for_a_volume_is_aborted_while_the_first_is_under_way(folder: Path) -> None:
    driver = Disk()
    free = driver.hanging["CreateVolume"] = asyncio.Event()
    async with serving(driver, folder / "csi.sock") as address, CSIClient(address) as client:
        first = asyncio.create_task(client.call("CreateVolume", name="a", volume_capabilities=[MOUNT]))
        await wait_for(lambda: driver.calls, "the first call is under way")
        with pytest.raises(CSIError) as caught:
            await client.call("CreateVolume", name="a", volume_capabilities=[MOUNT])
        assert caught.value.code == "Aborted"
        assert not caught.value.final
        free.set()
        assert (await first).volume.volume_id == "a"
        assert (await client.call("CreateVolume", name="a", volume_capabilities=[MOUNT])).volume.volume_id == "a"


async def test_an_error_of_the_driver_is_internal_and_the_driver_goes_on(folder: Path) -> None:
    async with serving(Disk(), folder / "csi.sock") as address, CSIClient(address) as client:
        with pytest.raises(CSIError, match="code = Internal desc = RuntimeError: the array is on fire"):
            await client.call("ControllerExpandVolume", volume_id="a", capacity_range={"required_bytes": 1})
        assert await client.driver_name() == "mock.example.com"


async def test_a_driver_replaces_an_old_socket_and_nothing_else(folder: Path) -> None:
    socket = folder / "csi.sock"
    async with serving(NodeDriver(), socket):
        assert oct(os.stat(socket).st_mode & 0o777) == "0o600"
        os.link(socket, folder / "left.sock")  # as after a kill: a socket that nothing listens at any more
    async with serving(NodeDriver(), folder / "left.sock") as address, CSIClient(address) as client:
        assert await client.driver_name() == "mock.example.com"
    socket.symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="is a symbolic link"):
        async with serving(NodeDriver(), socket):
            pass
    assert socket.is_symlink()


async def test_a_driver_that_is_away_is_unavailable_and_found_again_when_it_is_back(folder: Path) -> None:
    socket = folder / "csi.sock"
    async with CSIClient(socket) as client:
        with pytest.raises(CSIError) as caught:
            await client.call("Probe")
        assert caught.value.code == "Unavailable"
        async with serving(Driver1(), socket):
            assert (await client.call("GetPluginInfo", wait=True)).name == "bare.example.com"


async def test_the_folder_of_a_socket_may_be_deep(folder: Path) -> None:
    deep = folder / ("deep-" * 20) / "deeper"
    async with serving(NodeDriver(), deep / "csi.sock") as address, CSIClient(address) as client:
        assert await client.driver_name() == "mock.example.com"
    assert os.listdir(deep) == []
    with pytest.raises(OSError, match="has too many bytes"):
        async with serving(NodeDriver(), deep / ("name-" * 25)):
            pass
    async with CSIClient(deep / "gone" / "csi.sock") as client:
        with pytest.raises(CSIError, match=r"code = Unavailable desc = .*/gone/csi.sock: No such file or directory"):
            await client.call("Probe")


class Driver1(Driver):
    name = "bare.example.com"
