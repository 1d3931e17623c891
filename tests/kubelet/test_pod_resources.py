"""The pod-resources socket, asked by a client of its own protocol, with a real device plugin and a real checkpoint."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
import msgspec
import pytest
from kubelet.devices.sample_plugin import SamplePlugin
from kubelet.pods import container, pod

from pybernetes.api.core.v1 import Pod
from pybernetes.client.clock import FakeClock, SystemClock
from pybernetes.client.metrics import Registry
from pybernetes.kubelet.cpumanager.manager import CPUManager
from pybernetes.kubelet.cpumanager.topology import CPU, Topology
from pybernetes.kubelet.devices.manager import DeviceManager
from pybernetes.kubelet.dra import checkpoint
from pybernetes.kubelet.dra.manager import DRAManager
from pybernetes.kubelet.podresources.describing import Managers, proto
from pybernetes.kubelet.podresources.server import PodResourcesServer

GPU = "example.com/gpu"


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pyb-") as name:  # paths of sockets are short
        yield Path(name)


class Node:
    """Managers, pods, and a client of the socket."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock, self.registry = folder, FakeClock(), Registry()
        device = checkpoint.Device("pool", "gpu-7", cdi_device_ids=["example.com/gpu=7"], request_names=["r"])
        states = {"gpu.example.com": checkpoint.DriverState([device])}
        checkpoint.save(folder, [checkpoint.Claim("claim-uid", "claim", "ns", {"a": {}}, states)])
        self.managers = Managers(
            DeviceManager(folder / "device-plugins", SystemClock(), lambda: None),
            CPUManager("static", folder, topology=Topology({n: CPU(n) for n in range(4)}), reserved_milli=500),
            DRAManager(cast(Any, None), folder, "node", SystemClock(), changed=lambda _: None),
        )
        self.pods: list[Pod] = []
        self._calls: dict[str, Callable[..., Any]] = {}

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Node]:
        await self.managers.devices.start()
        socket = self.folder / "pod-resources"
        server = PodResourcesServer(socket, self.managers, lambda: self.pods, self.clock, self.registry)
        running = asyncio.create_task(server.run())
        channel = grpc.aio.insecure_channel(f"unix://{socket}/kubelet.sock", [("grpc.enable_http_proxy", 0)])
        for method in proto().methods:
            self._calls[method.name] = channel.unary_unary(
                method.path, method.request.SerializeToString, method.response.FromString
            )
        try:
            await asyncio.wait_for(channel.channel_ready(), 30)
            yield self
        finally:
            await channel.close()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await self.managers.devices.stop()

    async def ask(self, method: str, request: str = "", **fields: str) -> Any:
        message = proto().names[request or f"{method}Request"](**fields)
        return await self._calls[method](message, timeout=30)

    async def has_devices(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len((await self.allocatable()).devices) != count:
                self.clock.advance(1.0)
                await asyncio.sleep(0.01)

    async def allocatable(self) -> Any:
        return await self.ask("GetAllocatableResources", "AllocatableResourcesRequest")


def _using_claim(uid: str) -> Pod:
    return msgspec.convert(
        {
            "metadata": {"name": uid, "namespace": "ns", "uid": uid},
            "spec": {
                "resourceClaims": [{"name": "claim", "resourceClaimName": "claim"}],
                "containers": [{"name": "c", "resources": {"claims": [{"name": "claim"}]}}],
            },
        },
        Pod,
    )


async def test_devices_cpus_and_claims_of_containers_are_listed(folder: Path) -> None:
    async with Node(folder).served() as node, SamplePlugin(folder / "device-plugins", GPU, "g0", "g1"):
        await node.has_devices(2)
        gpu = pod("u1", container("gpu", limits={GPU: "1"}), container("plain"), name="gpu")
        cpu = pod("u2", container("c", "=2", "=1Gi"), name="cpu")
        await node.managers.devices.admit(gpu, {"u1"})
        node.managers.cpus.admit(cpu)
        node.pods = [gpu, cpu, _using_claim("a")]
        listed = (await node.ask("List", "ListPodResourcesRequest")).pod_resources
        assert [each.name for each in listed] == ["gpu", "cpu", "a"]
        first, plain = listed[0].containers
        assert [(each.resource_name, list(each.device_ids)) for each in first.devices] == [(GPU, ["g0"])]
        assert not first.devices[0].HasField("topology")
        assert (plain.name, len(plain.devices), len(plain.cpu_ids)) == ("plain", 0, 0)
        assert len(listed[1].containers[0].cpu_ids) == 2
        (claimed,) = listed[2].containers[0].dynamic_resources
        (resource,) = claimed.claim_resources
        assert (claimed.claim_namespace, claimed.claim_name) == ("ns", "claim")
        assert (resource.driver_name, resource.pool_name, resource.device_name) == ("gpu.example.com", "pool", "gpu-7")
        assert [each.name for each in resource.cdi_devices] == ["example.com/gpu=7"]
        node.clock.advance(1.0)
        one = await node.ask("Get", "GetPodResourcesRequest", pod_name="cpu", pod_namespace="ns")
        assert one.pod_resources == listed[1]
        everything = await node.allocatable()
        assert [each.device_ids[0] for each in everything.devices] == ["g0", "g1"]  # taken ones too
        assert len(everything.cpu_ids) == 3  # one of four is reserved


async def test_init_containers_that_end_are_not_listed(folder: Path) -> None:
    async with Node(folder).served() as node:
        inits = [container("once"), container("sidecar", restart_policy="Always")]
        node.pods = [pod("u1", container("main"), init_containers=inits)]
        (listed,) = (await node.ask("List", "ListPodResourcesRequest")).pod_resources
        assert [each.name for each in listed.containers] == ["sidecar", "main"]


async def test_an_unknown_pod_and_a_flood_are_refused_and_counted(folder: Path) -> None:
    async with Node(folder).served() as node:
        with pytest.raises(grpc.aio.AioRpcError, match="pod no in namespace ns not found"):
            await node.ask("Get", "GetPodResourcesRequest", pod_name="no", pod_namespace="ns")
        for _ in range(9):
            await node.allocatable()
        with pytest.raises(grpc.aio.AioRpcError, match="rejected by rate limit") as refused:
            await node.allocatable()
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        node.clock.advance(0.02)  # two at a hundred a second
        await node.allocatable()
        await node.allocatable()
        lines = node.registry.render().decode().splitlines()
        assert 'kubelet_pod_resources_endpoint_requests_total{server_api_version="v1"} 12' in lines
        assert 'kubelet_pod_resources_endpoint_errors_get{server_api_version="v1"} 1' in lines
        assert 'kubelet_pod_resources_endpoint_requests_get_allocatable{server_api_version="v1"} 11' in lines
