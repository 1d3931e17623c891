"""The way for pods to find the API server: the Service `kubernetes` and the endpoints behind it.

The range of cluster IPs becomes a ServiceCIDR object, its first address that of the Service. Every API server of a
cluster keeps a lease in the store, and all of them see to it that the endpoints are the addresses of those that are
alive; so `ensure_kubernetes_service` is to be called again and again (upstream: every 10 seconds), and
`remove_kubernetes_endpoint` when a server stops.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

import msgspec

from pybernetes.api.addresses import parse_cidr
from pybernetes.api.core.v1.service import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Service,
    ServicePort,
    ServiceSpec,
)
from pybernetes.api.discovery.v1 import Endpoint, EndpointConditions, EndpointSlice
from pybernetes.api.discovery.v1 import EndpointPort as SlicePort
from pybernetes.api.errors import NotFound
from pybernetes.api.meta.v1.objectmeta import Condition, ObjectMeta
from pybernetes.api.networking.v1 import ServiceCIDR, ServiceCIDRSpec, ServiceCIDRStatus
from pybernetes.api.times import rfc3339
from pybernetes.store.base import Entry, KeyExists, RevisionMismatch

from ..pipeline.persist import write_object
from ..registry.allocators.repair import ServiceRepair
from ..registry.registry import Registry
from ..registry.server_context import own_context
from ..registry.strategy import Context
from ..strategies.core.service import ServiceStrategy
from .objects import apply_status, create, update

NAME: Final = "kubernetes"
NAMESPACE: Final = "default"
LEASES: Final = "/registry/masterleases/"
LEASE_SECONDS: Final = 15  # upstream's DefaultEndpointReconcilerTTL
SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"
SERVICE_NAME: Final = "kubernetes.io/service-name"
_PORT: Final = 443
_CIDR_MANAGER: Final = "kubernetes-service-cidr-controller"


async def ensure_kubernetes_service(registry: Registry, address: str, port: int) -> None:
    """Make the range, the Service, and its endpoints what they should be; `address` is where this server is reached."""
    await ensure_default_service_cidr(registry)
    await _ensure_service(registry, port)
    if not registry.publishes_endpoints:
        return
    if ipaddress.ip_address(address).is_loopback:
        return  # not reachable from elsewhere, and not valid in endpoints
    if not registry.cache.store.exclusive:
        await _renew_lease(registry, address)
    await _ensure_endpoints(registry, await _alive(registry, address), port)


async def remove_kubernetes_endpoint(registry: Registry, address: str, port: int) -> None:
    """Take this server out of the endpoints, before it stops."""
    store = registry.cache.store
    entry = await store.get(LEASES + address)
    if entry is not None:
        try:
            await store.delete(entry.key, revision=entry.revision)
        except RevisionMismatch:
            pass  # expired meanwhile
    await _ensure_endpoints(registry, await _alive(registry, None), port)


async def ensure_default_service_cidr(registry: Registry) -> None:
    """The ServiceCIDR with the ranges the server was started with; a second family may be added later."""
    if not registry.service_cidrs:
        return
    wanted = list(registry.service_cidrs)
    context = own_context(registry)
    store = registry.store("networking.k8s.io", "v1", "servicecidrs")
    item = await store.find("", NAME)
    if item is None:
        obj = ServiceCIDR(metadata=ObjectMeta(name=NAME), spec=ServiceCIDRSpec(cidrs=wanted))
        await create(registry, store, obj)
    else:
        present: ServiceCIDR = store.decode(item)
        cidrs = (present.spec and present.spec.cidrs) or []
        if len(wanted) == 2 and cidrs == wanted[:1]:

            async def widen(old: Any) -> Any:
                new = msgspec.structs.replace(old, spec=ServiceCIDRSpec(cidrs=wanted))
                new.metadata = msgspec.structs.replace(old.metadata)
                return await update(store, new, old, context)

            await write_object(store, NAME, widen, context)
    await _mark_ready(registry, wanted)


async def _mark_ready(registry: Registry, wanted: list[str]) -> None:
    store = registry.store("networking.k8s.io", "v1", "servicecidrs")
    context = own_context(registry, manager=_CIDR_MANAGER)
    context.subresource = "status"

    async def ready(old: Any) -> Any:
        conditions = (old.status and old.status.conditions) or []
        cidrs = (old.spec and old.spec.cidrs) or []
        done = any(each.type == "Ready" and each.status in ("True", "False") for each in conditions)
        if done or cidrs != wanted or old.metadata.deletion_timestamp:
            return old
        condition = Condition(
            type="Ready",
            status="True",
            last_transition_time=context.now,
            message="Kubernetes default Service CIDR is ready",
        )
        return await apply_status(store, old, ServiceCIDRStatus(conditions=[condition]), context)

    await write_object(store, NAME, ready, context)


async def _ensure_service(registry: Registry, port: int) -> None:
    store = registry.store("", "v1", "services")
    if await store.find(NAMESPACE, NAME) is not None:
        return
    parsed = parse_cidr(registry.service_cidrs[0]) if registry.service_cidrs else None
    node_port = registry.kubernetes_node_port or None
    service = Service(
        metadata=ObjectMeta(
            name=NAME, namespace=NAMESPACE, labels={"component": "apiserver", "provider": "kubernetes"}
        ),
        spec=ServiceSpec(
            ports=[ServicePort(name="https", protocol="TCP", port=_PORT, target_port=port, node_port=node_port)],
            cluster_ip=str(parsed[1].network_address + 1) if parsed else None,
            ip_family_policy="SingleStack",
            session_affinity="None",
            type="NodePort" if node_port else "ClusterIP",
        ),
    )
    await create(registry, store, service)


async def _renew_lease(registry: Registry, address: str) -> None:
    store = registry.cache.store
    key = LEASES + address
    value = msgspec.json.encode(
        {
            "kind": "Endpoints",
            "apiVersion": "v1",
            "metadata": {"name": address, "creationTimestamp": rfc3339(registry.clock.now())},
            "subsets": [{"addresses": [{"ip": address}]}],
        }
    )
    entry: Entry | None = await store.get(key)
    try:
        if entry is None:
            await store.create(key, value, ttl=LEASE_SECONDS)
        else:
            await store.update(key, value, revision=entry.revision, ttl=LEASE_SECONDS)
    except (KeyExists, RevisionMismatch):
        pass  # expired, or renewed, between the two steps; the next round is soon enough


async def _alive(registry: Registry, address: str | None) -> list[str]:
    """The addresses of the servers that have a lease. A store of one server needs none."""
    store = registry.cache.store
    if store.exclusive:
        return [address] if address else []
    page = await store.range(LEASES)
    found = {entry.key.removeprefix(LEASES) for entry in page.entries}
    if address:
        found.add(address)
    return sorted(found, key=lambda each: (ipaddress.ip_address(each).version, int(ipaddress.ip_address(each))))


async def _ensure_endpoints(registry: Registry, addresses: list[str], port: int) -> None:
    context = own_context(registry, NAMESPACE)
    subsets = [
        EndpointSubset(
            addresses=[EndpointAddress(ip=each) for each in addresses],
            ports=[EndpointPort(name="https", port=port, protocol="TCP")],
        )
    ]
    endpoints = Endpoints(
        metadata=ObjectMeta(name=NAME, namespace=NAMESPACE, labels={SKIP_MIRROR: "true"}),
        subsets=subsets if addresses else None,
    )
    await _apply(registry, "", "endpoints", endpoints, context)
    version6 = bool(addresses) and all(":" in each for each in addresses)
    endpoint_slice = EndpointSlice(
        metadata=ObjectMeta(name=NAME, namespace=NAMESPACE, labels={SERVICE_NAME: NAME}),
        address_type="IPv6" if version6 else "IPv4",
        endpoints=[
            Endpoint(addresses=[each], conditions=EndpointConditions(ready=True))
            for each in addresses
            if (":" in each) == version6
        ],
        ports=[SlicePort(name="https", port=port, protocol="TCP")] if addresses else [],
    )
    await _apply(registry, "discovery.k8s.io", "endpointslices", endpoint_slice, context)


async def _apply(registry: Registry, group: str, plural: str, obj: Any, context: Context) -> None:
    """Create the object, or give the present one these labels and contents."""
    store = registry.store(group, "v1", plural)
    parts = [name for name in obj.__struct_fields__ if name not in ("kind", "api_version", "metadata")]

    async def change(old: Any) -> Any:
        labels = {**(old.metadata.labels or {}), **obj.metadata.labels}
        if labels == old.metadata.labels and all(getattr(old, name) == getattr(obj, name) for name in parts):
            return old
        new = msgspec.structs.replace(old, **{name: getattr(obj, name) for name in parts})
        new.metadata = msgspec.structs.replace(old.metadata, labels=labels)
        return await update(store, new, old, context)

    try:
        await write_object(store, obj.metadata.name, change, context)
    except NotFound:
        await create(registry, store, obj)


def service_repair(registry: Registry) -> ServiceRepair:
    """The repair loop of the pools that the Services' addresses and ports come from."""
    strategy = registry.store("", "v1", "services").strategy
    assert isinstance(strategy, ServiceStrategy)
    return ServiceRepair(registry, strategy.pools(own_context(registry)))
