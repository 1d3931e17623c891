"""Nodes get ranges of pod addresses."""

from __future__ import annotations

from controllers.cluster_nodes import Nodes, nodes_of
from controllers.conftest import Harness, MakeHarness

from pybernetes.api.core.v1 import Event, Node
from pybernetes.controllers.options import Options

NAME = "node-ipam-controller"


def flags(cluster_cidr: str = "10.10.0.0/22", **more: object) -> Options:
    return Options(allocate_node_cidrs=True, cluster_cidr=cluster_cidr, **more)  # type: ignore[arg-type]


async def ranges(nodes: Nodes, name: str) -> list[str]:
    spec = (await nodes.get(name)).spec
    assert spec
    found = list(spec.pod_cidrs or ())
    assert spec.pod_cidr == (found[0] if found else None)
    return found


async def given(h: Harness, nodes: Nodes, name: str) -> list[str]:
    return await h.until(lambda: ranges(nodes, name), f"{name} has ranges")


async def test_each_node_gets_a_range_of_its_own(harness: MakeHarness) -> None:
    async with harness(NAME, options=flags(), kubelet=False) as h, nodes_of(h) as nodes:
        names = [await nodes.add() for _ in range(4)]
        found = [(await given(h, nodes, name))[0] for name in names]
        assert sorted(found) == [f"10.10.{number}.0/24" for number in range(4)]
        for name in names:  # heartbeats change nothing
            await nodes.report(name)
        await h.settled()
        assert [(await ranges(nodes, name))[0] for name in names] == found


async def test_two_families(harness: MakeHarness) -> None:
    options = flags("10.10.0.0/22,fd00:10::/56", node_cidr_mask_size_ipv4=26, node_cidr_mask_size_ipv6=60)
    async with harness(NAME, options=options, kubelet=False) as h, nodes_of(h) as nodes:
        assert await given(h, nodes, await nodes.add()) == ["10.10.0.0/26", "fd00:10::/60"]


async def test_the_service_range_is_left_out(harness: MakeHarness) -> None:
    options = flags(service_cluster_ip_range="10.10.0.0/23")
    async with harness(NAME, options=options, kubelet=False) as h, nodes_of(h) as nodes:
        assert await given(h, nodes, await nodes.add()) == ["10.10.2.0/24"]


async def test_a_restart_gives_nothing_twice(harness: MakeHarness) -> None:
    async with harness(kubelet=False) as h, nodes_of(h) as nodes:
        first = await nodes.add()
        async with harness(NAME, options=flags(), kubelet=False):
            assert await given(h, nodes, first) == ["10.10.0.0/24"]
        second = await nodes.add()
        async with harness(NAME, options=flags(), kubelet=False):
            assert await given(h, nodes, second) == ["10.10.1.0/24"]
        assert await ranges(nodes, first) == ["10.10.0.0/24"]


async def test_a_range_that_the_node_has_from_others_is_respected(harness: MakeHarness) -> None:
    async with harness(NAME, options=flags(), kubelet=False) as h, nodes_of(h) as nodes:
        name = f"own-{h.namespace}"
        nodes.names.append(name)
        body = {"metadata": {"name": name}, "spec": {"podCIDR": "10.10.0.0/24", "podCIDRs": ["10.10.0.0/24"]}}
        await h.client.call("POST", "/api/v1/nodes", body)
        await h.settled()
        assert await given(h, nodes, await nodes.add()) == ["10.10.1.0/24"]
        assert await ranges(nodes, name) == ["10.10.0.0/24"]


async def test_a_node_without_range_gets_an_event_and_then_the_range_of_a_deleted_node(harness: MakeHarness) -> None:
    async with harness(NAME, options=flags("10.10.0.0/24"), kubelet=False) as h, nodes_of(h) as nodes:
        first = await nodes.add()
        assert await given(h, nodes, first) == ["10.10.0.0/24"]
        second = await nodes.add()

        async def told() -> list[Event]:
            await h.manager.context.events.flush()
            found = await h.client.list(Event, "default", field_selector=f"involvedObject.name={second}")
            return [each for each in found.items or () if each.reason == "CIDRNotAvailable"]

        (event, *_) = await h.until(told)
        assert event.message == f"Node {second} status is now: CIDRNotAvailable"
        assert await ranges(nodes, second) == []
        await h.client.delete(Node, first)
        assert await given(h, nodes, second) == ["10.10.0.0/24"]


async def test_without_the_flag_nothing_happens(harness: MakeHarness) -> None:
    async with harness(NAME, kubelet=False) as h, nodes_of(h) as nodes:
        name = await nodes.add()
        await h.settled()
        assert await ranges(nodes, name) == []


async def test_nodes_with_ranges_that_are_not_the_clusters_get_an_event_and_the_others_their_ranges(
    harness: MakeHarness,
) -> None:
    async with harness(kubelet=False) as h, nodes_of(h) as nodes:
        strange = {}
        for index, cidr in enumerate(("192.168.0.0/24", "0.0.0.0/0", "10.0.0.0/8", "fd00::/64")):
            name = f"strange-{index}-{h.namespace}"
            nodes.names.append(name)
            strange[name] = cidr
            body = {"metadata": {"name": name}, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]}}
            await h.client.call("POST", "/api/v1/nodes", body)
        async with harness(NAME, options=flags(), kubelet=False) as running:
            assert await given(h, nodes, await nodes.add()) == ["10.10.0.0/24"]

            async def told() -> bool:
                await running.manager.context.events.flush()
                found = await h.client.list(Event, "default", field_selector="reason=InvalidPodCIDR")
                return strange.keys() <= {(each.involved_object and each.involved_object.name) for each in found.items}

            await h.until(told, "there is an event on each of them")
            assert not running.manager.tasks.failed
