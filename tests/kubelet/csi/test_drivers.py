"""Registration of CSI drivers with a real API server: CSINode, labels and annotation of the Node, refusals."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from csi.mock_driver import NodeDriver
from waiting import wait_for

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.storage.v1 import CSINode
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.csi.driver import serving
from pybernetes.csi.errors import CSIError
from pybernetes.csi.node.registrar import registered
from pybernetes.kubelet.csi.csi_node import CSINodeKeeper
from pybernetes.kubelet.csi.drivers import Drivers, NotRegistered
from pybernetes.kubelet.plugins.registry import PluginRegistry
from tools import ApiServer

ZONE = "topology.mock.example.com/zone"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, because the path of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="pyb-") as made:
        yield Path(made)


class Kubelet:
    def __init__(self, client: Client, folder: Path, node: str) -> None:
        self.client, self.node, self.registry = client, node, folder / "plugins_registry"
        registered = asyncio.Event()
        registered.set()
        self.came: list[str] = []
        self.keeper = CSINodeKeeper(client, node, registered)
        self.drivers = Drivers(self.keeper, self.came.append)
        self.plugins = PluginRegistry(self.registry, {"CSIPlugin": self.drivers})

    async def entries(self) -> dict[str, Any]:
        found = await self.client.get(CSINode, self.node)
        assert found.spec is not None
        return {each.name or "": each for each in found.spec.drivers or ()}


@asynccontextmanager
async def _kubelet(cluster: ApiServer, folder: Path) -> AsyncIterator[Kubelet]:
    async with Client(config.load(cluster.kubeconfig)) as client:
        name = f"node-{folder.name.lower().replace('_', '-').rstrip('-')}0"
        await client.create(Node(api_version="v1", kind="Node", metadata=ObjectMeta(name=name)))
        kubelet = Kubelet(client, folder, name)
        tasks = [asyncio.create_task(each) for each in (kubelet.plugins.run(), kubelet.keeper.run())]
        try:
            yield kubelet
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await kubelet.drivers.close()
            with contextlib.suppress(errors.NotFound):  # a short test may end before it is made
                await client.delete(CSINode, name)
            await client.delete(Node, name)


async def test_a_driver_that_registers_is_in_csinode_and_on_the_node_until_it_goes(
    cluster: ApiServer, folder: Path
) -> None:
    async with _kubelet(cluster, folder) as kubelet:
        with pytest.raises(
            NotRegistered, match=r"driver name mock.example.com not found in the list of registered CSI drivers"
        ):
            kubelet.drivers.get("mock.example.com")
        driver = NodeDriver("id-1", topology={ZONE: "east"}, max_volumes=7)
        async with serving(driver, folder / "plugins" / "mock" / "csi.sock", kubelet.registry):
            await wait_for(lambda: kubelet.came == ["mock.example.com"], "the driver is registered")
            assert await kubelet.drivers.get("mock.example.com").driver_name() == "mock.example.com"
            entry = (await kubelet.entries())["mock.example.com"]
            assert (entry.node_id, entry.topology_keys, entry.allocatable.count) == ("id-1", [ZONE], 7)
            node = await kubelet.client.get(Node, kubelet.node)
            assert node.metadata is not None
            assert (node.metadata.labels or {})[ZONE] == "east"
            assert json.loads((node.metadata.annotations or {})["csi.volume.kubernetes.io/nodeid"]) == {
                "mock.example.com": "id-1"
            }
            owner = ((await kubelet.client.get(CSINode, kubelet.node)).metadata or ObjectMeta()).owner_references
            assert owner is not None
            assert owner[0].uid == node.metadata.uid
            assert kubelet.drivers.names() == {"mock.example.com"}
        await wait_for(lambda: not kubelet.drivers.names(), "the driver has gone")
        # It restarts, and has another id for this node.
        async with serving(NodeDriver("id-2"), folder / "plugins" / "mock" / "csi.sock", kubelet.registry):
            await wait_for(lambda: len(kubelet.came) == 2, "the driver is registered again")
            assert (await kubelet.entries())["mock.example.com"].node_id == "id-2"
        await wait_for(lambda: not kubelet.drivers.names(), "the driver has gone")
        await asyncio.gather(*kubelet.drivers._tasks)
        assert await kubelet.entries() == {}


async def test_a_driver_registers_in_folders_whose_sockets_have_long_paths(cluster: ApiServer, folder: Path) -> None:
    deep = folder / f"{'deep-' * 20}{folder.name[4:]}"
    async with (
        _kubelet(cluster, deep) as kubelet,
        serving(NodeDriver("id-1"), deep / "plugins" / "mock" / "csi.sock", kubelet.registry),
    ):
        await wait_for(lambda: kubelet.came == ["mock.example.com"], "the driver is registered")
        assert await kubelet.drivers.get("mock.example.com").driver_name() == "mock.example.com"


async def test_an_entry_that_a_dead_kubelet_left_is_replaced(cluster: ApiServer, folder: Path) -> None:
    async with _kubelet(cluster, folder) as kubelet:
        await kubelet.keeper.install("mock.example.com", "old", 3, {})
        await kubelet.keeper.install("mock.example.com", "old", 3, {})
        await kubelet.keeper.install("mock.example.com", "new", 0, {})
        entry = (await kubelet.entries())["mock.example.com"]
        assert (entry.node_id, entry.allocatable) == ("new", None)


@pytest.mark.parametrize(
    ("endpoint", "versions", "node_id", "problem"),
    [
        ("real", ("0.3.0",), "n", "none of the supported versions (0.3.0) is known here"),
        ("real", (), "n", "has no supported versions"),
        ("real", ("1.0.0",), "", "driverNodeID must not be empty"),
        ("real", ("1.0.0",), "n" * 257, "node_id has more than 256 bytes"),
        ("link", ("1.0.0",), "n", "is a symbolic link: name the socket itself"),
        ("file", ("1.0.0",), "n", "is not a socket"),
        ("gone", ("1.0.0",), "n", "No such file or directory"),
    ],
)
async def test_an_unusable_driver_is_refused_with_the_reason(
    cluster: ApiServer, folder: Path, endpoint: str, versions: tuple[str, ...], node_id: str, problem: str
) -> None:
    (folder / "file").touch()
    (folder / "link").symlink_to(folder / "real")
    async with (
        _kubelet(cluster, folder) as kubelet,
        serving(NodeDriver(node_id), folder / "real"),
        registered("mock.example.com", folder / endpoint, kubelet.registry, versions) as registration,
    ):
        await wait_for(lambda: registration.problem, "the driver gets the error")
        assert problem in registration.problem
        assert "mock.example.com" in registration.problem
        assert kubelet.drivers.names() == set()


async def test_a_topology_that_contradicts_the_nodes_labels_is_refused(cluster: ApiServer, folder: Path) -> None:
    async with _kubelet(cluster, folder) as kubelet:
        await kubelet.client.patch(Node, kubelet.node, {"metadata": {"labels": {ZONE: "west"}}})
        with pytest.raises(ValueError, match="detected topology value collision"):
            await kubelet.keeper.install("mock.example.com", "n", 0, {ZONE: "east"})


async def test_a_driver_whose_info_fails_is_asked_again_and_the_others_do_not_wait(
    cluster: ApiServer, folder: Path
) -> None:
    class Shy(NodeDriver):
        name = "shy.example.com"

        async def node_get_info(self, request: Any) -> Any:
            await self.noted("NodeGetInfo", request)
            return await super().node_get_info(request)

    shy = Shy()
    shy.failing["NodeGetInfo"] = [CSIError("Unavailable", "still starting")]
    async with (
        _kubelet(cluster, folder) as kubelet,
        serving(shy, folder / "shy.sock", kubelet.registry),
        serving(NodeDriver(), folder / "mock.sock", kubelet.registry),
    ):
        await wait_for(lambda: sorted(kubelet.came) == ["mock.example.com", "shy.example.com"], "both are there")
        assert shy.names() == ["NodeGetInfo", "NodeGetInfo"]
