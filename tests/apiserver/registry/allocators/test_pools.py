"""Addresses and ports are given to one Service at a time, and come back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from apiserver.registry.allocators.servers import NAMESPACE, Server, server, service, shared_store

from pybernetes.api.errors import AlreadyExists, APIError, InternalError, Invalid
from pybernetes.apiserver.registry.allocators.ports import KEY, NodePorts, PortUnavailable


async def test_an_address_is_an_object_that_says_whose_it_is() -> None:
    async with server() as api:
        ip = (await api.create(service()))["spec"]["clusterIP"]
        addresses = api.registry.store("networking.k8s.io", "v1", "ipaddresses")
        obj = addresses.decode(await addresses.get("", ip))
    assert obj.metadata.labels == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    parent = obj.spec.parent_ref
    assert (parent.group, parent.resource, parent.namespace, parent.name) == (None, "services", NAMESPACE, "one")
    assert obj.metadata.uid
    assert obj.metadata.creation_timestamp
    (entry,) = obj.metadata.managed_fields
    assert (entry.manager, entry.operation, entry.api_version) == ("kube-apiserver", "Update", "networking.k8s.io/v1")


async def test_a_deleted_service_gives_everything_back() -> None:
    async with server() as api:
        spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ipFamilyPolicy": "RequireDualStack"}
        made = (await api.create(service(**spec)))["spec"]
        assert api.addresses() == set(made["clusterIPs"])
        assert await api.ports() == {made["ports"][0]["nodePort"], made["healthCheckNodePort"]}
        await api.delete("one")
        assert (api.addresses(), await api.ports()) == (set(), set())


async def test_a_refused_service_gives_everything_back() -> None:
    async with server() as api:
        with pytest.raises(Invalid, match="sessionAffinity"):
            await api.create(service(type="NodePort", sessionAffinity="Foo"))
        assert (api.addresses(), await api.ports()) == (set(), set())


async def test_a_service_that_exists_already_leaves_the_pools_alone() -> None:
    async with server() as api:
        made = (await api.create(service(type="NodePort")))["spec"]
        with pytest.raises(AlreadyExists):
            await api.create(service(type="NodePort"))
        assert api.addresses() == {made["clusterIP"]}
        assert await api.ports() == {made["ports"][0]["nodePort"]}


async def test_a_dry_run_takes_nothing() -> None:
    async with server() as api:
        made = (await api.create(service(type="NodePort"), dry_run=True))["spec"]
        assert (made["clusterIP"], made["ports"][0]["nodePort"]) == ("10.0.0.0", 32769)
        assert (api.addresses(), await api.ports()) == (set(), set())


async def test_an_address_is_given_once() -> None:
    async with server() as api:
        await api.create(service(clusterIP="10.0.0.9"))
        with pytest.raises(Invalid, match=r"failed to allocate IP 10\.0\.0\.9: provided IP is already allocated"):
            await api.create(service("two", clusterIP="10.0.0.9"))
        assert api.addresses() == {"10.0.0.9"}


async def test_a_node_port_is_given_once() -> None:
    async with server() as api:
        await api.create(service(type="NodePort", ports=[{"port": 80, "nodePort": 30080}]))
        with pytest.raises(Invalid, match=r"spec.ports\[0\].nodePort: .*30080: provided port is already allocated"):
            await api.create(service("two", type="NodePort", ports=[{"port": 80, "nodePort": 30080}]))
        assert await api.ports() == {30080}


async def test_a_health_check_port_that_is_taken_is_an_internal_error() -> None:
    async with server() as api:
        await api.create(service(type="NodePort", ports=[{"port": 80, "nodePort": 30080}]))
        spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30080}
        with pytest.raises(InternalError, match="failed to allocate requested HealthCheck NodePort 30080"):
            await api.create(service("two", **spec))
        assert await api.ports() == {30080}


async def test_addresses_outside_every_range_are_refused() -> None:
    async with server() as api:
        with pytest.raises(Invalid, match="the provided network does not match the current range"):
            await api.create(service(clusterIP="192.0.2.1"))


async def test_the_lower_part_of_a_range_is_kept_for_those_who_ask() -> None:
    async with server(cidrs=("10.0.0.0/24",)) as api:
        for number in range(254 - 16):
            await api.create(service(f"s{number}"))
        assert api.addresses() == {f"10.0.0.{number}" for number in range(17, 255)}
        last = (await api.create(service("last")))["spec"]["clusterIP"]
        assert int(last.rpartition(".")[2]) <= 16


async def test_a_full_range_is_an_internal_error() -> None:
    async with server(cidrs=("10.0.0.0/30",)) as api:
        await api.create(service("a"))
        await api.create(service("b"))
        with pytest.raises(InternalError, match="failed to allocate a serviceIP for Service"):
            await api.create(service("c"))
        await api.delete("a")
        await api.create(service("c"))


async def test_a_full_range_of_ports_is_an_internal_error() -> None:
    async with server(ports=(30000, 30001)) as api:
        await api.create(service("a", type="NodePort"))
        await api.create(service("b", type="NodePort"))
        with pytest.raises(InternalError, match="failed to allocate a nodePort: range is full"):
            await api.create(service("c", type="NodePort"))
        assert len(api.addresses()) == 2


async def test_two_servers_on_one_store_never_give_the_same() -> None:
    async with (
        shared_store() as store,
        server(store, cidrs=("10.0.0.0/26",)) as one,
        server(store, cidrs=("10.0.0.0/26",)) as two,
    ):

        async def create(number: int, api: Server) -> dict[str, Any]:
            return dict((await api.create(service(f"s{number}", type="NodePort")))["spec"])

        made = await asyncio.gather(*(create(number, (one, two)[number % 2]) for number in range(62)))
        assert len({spec["clusterIP"] for spec in made}) == 62
        assert len({spec["ports"][0]["nodePort"] for spec in made}) == 62


async def test_many_ask_for_the_same_and_one_gets_it() -> None:
    async with shared_store() as store, server(store) as one, server(store) as two:

        async def create(number: int, api: Server) -> bool:
            wanted = service(
                f"s{number}", type="NodePort", clusterIP="10.0.0.9", ports=[{"port": 80, "nodePort": 30080}]
            )
            try:
                await api.create(wanted)
            except APIError:
                return False
            return True

        made = await asyncio.gather(*(create(number, (one, two)[number % 2]) for number in range(20)))
        assert sum(made) == 1
        assert await one.ports() == {30080}


async def test_what_another_server_gave_back_can_be_had_again() -> None:
    async with shared_store() as store, server(store) as one, server(store) as two:
        wanted = service(type="NodePort", ports=[{"port": 80, "nodePort": 30080}])
        await one.create(wanted)
        with pytest.raises(Invalid):
            await two.create({**wanted, "metadata": {"name": "two"}})
        await one.delete("one")
        await two.create({**wanted, "metadata": {"name": "two"}})


async def test_the_endpoints_go_with_their_service() -> None:
    async with server() as api:
        from pybernetes.api.core.v1 import Endpoints
        from pybernetes.api.meta.v1 import ObjectMeta

        await api.create(service())
        endpoints = api.registry.store("", "v1", "endpoints")
        await endpoints.create(Endpoints(metadata=ObjectMeta(name="one", namespace=NAMESPACE)))
        await api.delete("one")
        assert endpoints.peek(NAMESPACE, "one") is None


# --- the record of node ports


async def test_the_record_is_a_range_allocation() -> None:
    async with shared_store() as store:
        ports = NodePorts(store, 30000, 30015, lambda: ())
        await ports.take([30000, 30009])
        entry = await store.get(KEY)
        assert entry is not None
        assert entry.value == (
            b'{"kind":"RangeAllocation","apiVersion":"v1","metadata":{},"range":"30000-30015","data":"AgE="}'
        )


async def test_all_or_none_of_several_ports_are_taken() -> None:
    async with shared_store() as store:
        ports = NodePorts(store, 30000, 30015, lambda: ())
        await ports.take([30003])
        with pytest.raises(PortUnavailable) as caught:
            await ports.take([0, 30003])
        assert caught.value.position == 1
        assert await ports.taken() == {30003}


async def test_a_port_outside_the_range_is_named_with_the_range() -> None:
    async with shared_store() as store:
        ports = NodePorts(store, 30000, 32767, lambda: ())
        with pytest.raises(PortUnavailable, match="The range of valid ports is 30000-32767"):
            await ports.take([80])


async def test_another_range_starts_from_what_services_have() -> None:
    async with shared_store() as store:
        await NodePorts(store, 30000, 30015, lambda: ()).take([30001])
        ports = NodePorts(store, 30000, 30031, lambda: (30002, 80))
        assert await ports.taken() == {30002}
        await ports.take([30003])
        assert await ports.taken() == {30002, 30003}


async def test_releasing_a_free_address_is_fine() -> None:
    async with shared_store() as store:
        ports = NodePorts(store, 30000, 30015, lambda: ())
        await ports.give_back([30001, 80])
        assert await ports.taken() == set()
