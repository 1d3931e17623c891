"""Services of type LoadBalancer get addresses, keep them, and give them back."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from controllers.conftest import Harness, MakeHarness

from pybernetes.api.core.v1 import Service, ServicePort, ServiceSpec
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.controllers.options import Options
from pybernetes.controllers.servicelb.controller import FINALIZER

NAME = "service-lb-controller"


@contextlib.asynccontextmanager
async def running(harness: MakeHarness, *pool: str) -> AsyncIterator[Harness]:
    """The controller with a pool of its own. Its Services are gone at the end: the next test's would take addresses."""
    async with harness(NAME, options=Options(load_balancer_pool=pool), kubelet=False) as h:
        try:
            yield h
        finally:
            h.faults.stop()
            for service in await h.list(Service):
                await h.client.delete(Service, service.metadata.name, h.namespace)

            async def gone() -> bool:
                return not await h.list(Service)

            await h.until(gone, "all Services are gone")


async def create(h: Harness, name: str, **spec: Any) -> Service:
    made = ServiceSpec(**{"type": "LoadBalancer", "ports": [ServicePort(port=80)], **spec})
    return await h.client.create(Service(metadata=ObjectMeta(name=name, namespace=h.namespace), spec=made))


async def addresses(h: Harness, name: str) -> list[str]:
    service = await h.client.get(Service, name, h.namespace)
    balancer = service.status.load_balancer if service.status else None
    return [f"{each.ip}/{each.ip_mode}" for each in (balancer.ingress if balancer else None) or ()]


async def has(h: Harness, name: str, *want: str) -> None:
    async def so() -> bool:
        return await addresses(h, name) == [f"{each}/VIP" for each in want]

    await h.until(so, f"{name} has {want}")


async def reasons(h: Harness, name: str) -> list[str]:
    return [event.reason or "" for event in await h.events() if event.involved_object.name == name]


async def refused(h: Harness, name: str) -> str:
    async def message() -> str:
        found = [event.message for event in await h.events("SyncLoadBalancerFailed")]
        return next((each or "" for each in found), "")

    return await h.until(message, f"an event of {name}")


async def test_a_load_balancer_gets_an_address_a_finalizer_and_upstreams_events(harness: MakeHarness) -> None:
    async with running(harness, "192.0.2.0/28") as h:
        await create(h, "web")
        await has(h, "web", "192.0.2.1")
        service = await h.client.get(Service, "web", h.namespace)
        assert service.metadata.finalizers == [FINALIZER]
        assert await reasons(h, "web") == ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]
        assert {event.source.component for event in await h.events()} == {"service-controller"}
        await h.client.delete(Service, "web", h.namespace)

        async def gone() -> bool:
            return await h.get(Service, "web") is None

        await h.until(gone, "the Service is gone")
        assert (await reasons(h, "web"))[2:] == ["DeletingLoadBalancer", "DeletedLoadBalancer"]
        await create(h, "next")
        await has(h, "next", "192.0.2.1")


async def test_addresses_survive_a_restart_and_no_service_gets_a_second_one(harness: MakeHarness) -> None:
    async with running(harness, "192.0.2.0/28") as h:
        for name in ("one", "two", "three"):
            await create(h, name)
        for name in ("one", "two", "three"):
            await h.until(lambda name=name: addresses(h, name), "an address")
        before = [await addresses(h, name) for name in ("one", "two", "three")]
        await h.client.delete(Service, "one", h.namespace)
        await h.restart()
        await h.settled()
        assert [await addresses(h, name) for name in ("two", "three")] == before[1:]
        await create(h, "four")
        await h.until(lambda: addresses(h, "four"), "an address")
        assert await addresses(h, "four") not in before[1:]


async def test_a_service_that_changes_its_type_gives_its_address_back(harness: MakeHarness) -> None:
    async with running(harness, "192.0.2.9") as h:
        await create(h, "web")
        await has(h, "web", "192.0.2.9")
        await create(h, "waits")
        assert "the load balancer pool has no free IPv4 address" in await refused(h, "waits")
        await h.client.patch(Service, "web", {"spec": {"type": "ClusterIP"}}, h.namespace)
        await has(h, "waits", "192.0.2.9")
        await has(h, "web")

        async def free() -> bool:
            return not (await h.client.get(Service, "web", h.namespace)).metadata.finalizers

        await h.until(free, "no finalizer")


async def test_a_wanted_address_is_given_or_an_event_says_why_not(harness: MakeHarness) -> None:
    async with running(harness, "192.0.2.0/28", "fd00:5::/112") as h:
        await create(h, "web", load_balancer_ip="192.0.2.7")
        await has(h, "web", "192.0.2.7")
        await create(h, "again", load_balancer_ip="192.0.2.7")
        assert f"192.0.2.7 belongs to the Service {h.namespace}/web" in await refused(h, "again")
        assert await addresses(h, "again") == []
        await h.client.delete(Service, "web", h.namespace)
        await has(h, "again", "192.0.2.7")


async def test_only_our_class_or_none_is_served(harness: MakeHarness) -> None:
    async with running(harness, "192.0.2.0/28") as h:
        await create(h, "other", load_balancer_class="example.com/other")
        await create(h, "ours", load_balancer_class="pybernetes.io/load-balancer")
        await create(h, "plain", type="ClusterIP")
        await has(h, "ours", "192.0.2.1")
        await h.settled()
        for name in ("other", "plain"):
            assert await addresses(h, name) == []
            assert not (await h.client.get(Service, name, h.namespace)).metadata.finalizers


async def test_a_status_written_by_another_client_is_corrected(harness: MakeHarness) -> None:
    async with running(harness, "192.0.2.0/28") as h:
        await create(h, "web")
        await create(h, "thief")
        await has(h, "web", "192.0.2.1")
        await has(h, "thief", "192.0.2.2")
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
        await h.client.patch(Service, "thief", status, h.namespace, subresource="status")
        await has(h, "thief", "192.0.2.2")


async def test_without_a_pool_services_are_left_alone(harness: MakeHarness) -> None:
    async with running(harness) as h:
        await create(h, "web")
        await h.settled()
        assert await addresses(h, "web") == []
        assert await h.events() == []


async def test_refused_writes_are_tried_again(harness: MakeHarness) -> None:
    async with running(harness, "192.0.2.0/28") as h:
        h.faults.conflict = h.faults.lost = 0.3
        for number in range(5):
            await create(h, f"web-{number}")
        for number in range(5):
            await h.until(lambda number=number: addresses(h, f"web-{number}"), "an address")
        h.faults.stop()
        found = [tuple(await addresses(h, f"web-{number}")) for number in range(5)]
        assert len(set(found)) == 5
