"""What a crash leaves behind in the pools is found, but nothing that is just on its way is taken away."""

from __future__ import annotations

import pytest
from apiserver.registry.allocators.servers import NAMESPACE, Server, server, service

from pybernetes.api.addresses import parse_ip
from pybernetes.api.times import FakeClock, rfc3339
from pybernetes.apiserver.registry.allocators.repair import ADDRESS_SECONDS, PORT_LOOKS, ServiceRepair
from pybernetes.apiserver.registry.allocators.services import ServicePools


def pools(api: Server) -> ServicePools:
    found = api.services.strategy.pools(api.context())  # type: ignore[attr-defined]
    assert isinstance(found, ServicePools)
    return found


async def test_a_port_without_a_service_comes_back_after_three_looks() -> None:
    async with server() as api:
        repair = ServiceRepair(api.registry, pools(api))
        await pools(api).ports.take([30080])
        for _ in range(PORT_LOOKS - 1):
            await repair.run_once()
            assert await api.ports() == {30080}
        await repair.run_once()
        assert await api.ports() == set()


async def test_a_port_whose_service_arrives_late_stays_taken() -> None:
    async with server() as api:
        repair = ServiceRepair(api.registry, pools(api))
        await pools(api).ports.take([30080])
        await repair.run_once()
        await repair.run_once()
        await pools(api).ports.give_back([30080])
        await api.create(service(type="NodePort", ports=[{"port": 80, "nodePort": 30080}]))
        for _ in range(PORT_LOOKS):
            await repair.run_once()
        assert await api.ports() == {30080}


async def test_an_address_without_a_service_comes_back_after_a_minute() -> None:
    async with server() as api:
        clock = api.registry.clock
        assert isinstance(clock, FakeClock)
        repair = ServiceRepair(api.registry, pools(api))
        address = parse_ip("10.0.0.9")
        assert address is not None
        await pools(api).ips.take(NAMESPACE, "lost", address, rfc3339(clock.now()))
        await repair.run_once()
        assert api.addresses() == {"10.0.0.9"}
        clock.advance(ADDRESS_SECONDS)
        await repair.run_once()
        assert api.addresses() == set()


@pytest.mark.parametrize("policy", ["SingleStack", "RequireDualStack"])
async def test_what_services_have_is_left_alone(policy: str) -> None:
    async with server() as api:
        clock = api.registry.clock
        assert isinstance(clock, FakeClock)
        spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ipFamilyPolicy": policy}
        made = (await api.create(service(**spec)))["spec"]
        repair = ServiceRepair(api.registry, pools(api))
        for _ in range(PORT_LOOKS + 1):
            clock.advance(ADDRESS_SECONDS)
            await repair.run_once()
        assert api.addresses() == set(made["clusterIPs"])
        assert await api.ports() == {made["ports"][0]["nodePort"], made["healthCheckNodePort"]}


async def test_what_a_service_has_is_taken_again() -> None:
    async with server() as api:
        made = (await api.create(service(type="NodePort")))["spec"]
        port = made["ports"][0]["nodePort"]
        await pools(api).ports.give_back([port])
        await pools(api).ips.give_back(NAMESPACE, "one", made["clusterIP"])
        await ServiceRepair(api.registry, pools(api)).run_once()
        assert (api.addresses(), await api.ports()) == ({made["clusterIP"]}, {port})
