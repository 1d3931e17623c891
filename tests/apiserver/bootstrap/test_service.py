"""Pods find the API server: the Service `kubernetes`, its endpoints and its range are there and follow the servers."""

from __future__ import annotations

import json
from typing import Any

from apiserver.registry.allocators.servers import Server, server, shared_store

from pybernetes.apiserver.bootstrap.service import LEASES, ensure_kubernetes_service, remove_kubernetes_endpoint


def shown(api: Server, group: str, plural: str, namespace: str = "default") -> dict[str, Any]:
    """An object as clients see it, without what differs from time to time."""
    store = api.registry.store(group, "v1", plural)
    item = store.peek(namespace, "kubernetes")
    assert item is not None
    obj: dict[str, Any] = json.loads(item.raw)
    for name in ("uid", "creationTimestamp", "resourceVersion", "managedFields"):
        obj["metadata"].pop(name, None)
    return obj


def addresses(api: Server) -> list[str]:
    subsets = shown(api, "", "endpoints").get("subsets", [])
    return [address["ip"] for subset in subsets for address in subset["addresses"]]


async def test_endpoints_are_left_to_others_where_configured() -> None:
    async with server() as api:
        api.registry.publishes_endpoints = False
        await ensure_kubernetes_service(api.registry, "192.0.2.2", 6443)
        assert shown(api, "", "services")
        assert api.registry.store("", "v1", "endpoints").peek("default", "kubernetes") is None


async def test_everything_is_there_after_the_first_call() -> None:
    async with server() as api:
        await ensure_kubernetes_service(api.registry, "192.0.2.2", 6443)
        service = shown(api, "", "services")
        assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
        assert service["spec"] == {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        }
        assert shown(api, "", "endpoints") == {
            "kind": "Endpoints",
            "apiVersion": "v1",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
            },
            "subsets": [
                {
                    "addresses": [{"ip": "192.0.2.2"}],
                    "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
                }
            ],
        }
        assert shown(api, "discovery.k8s.io", "endpointslices") == {
            "kind": "EndpointSlice",
            "apiVersion": "discovery.k8s.io/v1",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "generation": 1,
                "labels": {"kubernetes.io/service-name": "kubernetes"},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["192.0.2.2"], "conditions": {"ready": True}}],
            "ports": [{"name": "https", "protocol": "TCP", "port": 6443}],
        }
        assert api.addresses() == {"10.0.0.1"}


async def test_the_range_is_an_object_and_ready() -> None:
    async with server() as api:
        cidr = shown(api, "networking.k8s.io", "servicecidrs", "")
        assert cidr["spec"] == {"cidrs": ["10.0.0.0/24", "fd00:10::/112"]}
        (condition,) = cidr["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Ready", "True")
        assert condition["message"] == "Kubernetes default Service CIDR is ready"


async def test_calling_again_changes_nothing() -> None:
    async with server() as api:
        await ensure_kubernetes_service(api.registry, "192.0.2.2", 6443)
        revision = api.registry.cache.revision
        await ensure_kubernetes_service(api.registry, "192.0.2.2", 6443)
        assert api.registry.cache.revision == revision


async def test_a_second_family_is_added_to_the_range() -> None:
    async with shared_store() as store:
        async with server(store, ("10.0.0.0/24",)) as one:
            assert shown(one, "networking.k8s.io", "servicecidrs", "")["spec"]["cidrs"] == ["10.0.0.0/24"]
        async with server(store) as two:
            cidrs = shown(two, "networking.k8s.io", "servicecidrs", "")["spec"]["cidrs"]
            assert cidrs == ["10.0.0.0/24", "fd00:10::/112"]


async def test_a_server_at_another_address_takes_the_place_of_the_old_one() -> None:
    async with server() as api:
        await ensure_kubernetes_service(api.registry, "192.0.2.2", 6443)
        await ensure_kubernetes_service(api.registry, "192.0.2.3", 6443)
        assert addresses(api) == ["192.0.2.3"]


async def test_servers_on_one_store_are_all_endpoints_until_they_leave() -> None:
    async with shared_store() as store, server(store) as one, server(store) as two:
        await ensure_kubernetes_service(one.registry, "192.0.2.20", 6443)
        await ensure_kubernetes_service(two.registry, "192.0.2.3", 6443)
        await two.registry.cache.consistent()
        assert addresses(two) == ["192.0.2.3", "192.0.2.20"]
        assert [entry.key for entry in (await store.range(LEASES)).entries] == [
            f"{LEASES}192.0.2.20",
            f"{LEASES}192.0.2.3",
        ]
        await remove_kubernetes_endpoint(one.registry, "192.0.2.20", 6443)
        assert addresses(one) == ["192.0.2.3"]


async def test_the_last_server_leaves_no_endpoint() -> None:
    async with server() as api:
        await ensure_kubernetes_service(api.registry, "192.0.2.2", 6443)
        await remove_kubernetes_endpoint(api.registry, "192.0.2.2", 6443)
        assert addresses(api) == []


async def test_an_ipv6_address_makes_an_ipv6_slice() -> None:
    async with server(cidrs=("fd00:10::/112",)) as api:
        await ensure_kubernetes_service(api.registry, "fd00::2", 6443)
        assert shown(api, "discovery.k8s.io", "endpointslices")["addressType"] == "IPv6"
        assert shown(api, "", "services")["spec"]["clusterIP"] == "fd00:10::1"
