"""Finds what was taken from the pools but belongs to no Service, and the other way round.

A server that dies between taking and writing leaves an address or port behind. Every API server looks for such things
now and then (upstream: every three minutes). It waits before it gives one back, since a Service may just be on its way:
a port must have been without an owner three times in a row, an address for a minute.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from pybernetes.api.addresses import parse_ip
from pybernetes.api.core.v1.service import Service, ServiceSpec
from pybernetes.api.errors import APIError
from pybernetes.api.networking.v1 import IPAddress
from pybernetes.api.times import parse_time, rfc3339

from .addresses import MANAGED_BY_LABEL, MANAGER, AddressUnavailable
from .ports import PortUnavailable
from .services import ServicePools, addresses_of, ports_of

if TYPE_CHECKING:
    from ..registry import Registry

log = logging.getLogger(__name__)

INTERVAL: Final = 180.0  # seconds between two looks, upstream's interval
PORT_LOOKS: Final = 3
ADDRESS_SECONDS: Final = 60.0


class ServiceRepair:
    """Compares Services with the pools."""

    def __init__(self, registry: Registry, pools: ServicePools) -> None:
        self._registry = registry
        self._pools = pools
        self._suspects: dict[int, int] = {}  # ports without an owner, and how often they were seen so

    async def run_once(self) -> None:
        """Look once."""
        taken = await self._pools.ports.taken()
        services = self._services()
        await self._repair_ports(services, taken)
        await self._repair_addresses(services)

    def _services(self) -> list[Service]:
        store = self._registry.store("", "v1", "services")
        return [service for _, service in store.decode_all(store.partition.items.values())]

    async def _repair_ports(self, services: list[Service], taken: set[int]) -> None:
        """`taken` was read before the Services: what a Service that came in between has is not missing, only newer."""
        used = {port for service in services for port in ports_of(service.spec or ServiceSpec())}
        leaked = taken - used
        self._suspects = {port: self._suspects.get(port, 0) + 1 for port in leaked}
        gone = [port for port, looks in self._suspects.items() if looks >= PORT_LOOKS]
        if gone:
            log.warning("node ports %s belong to no Service: given back", sorted(gone))
            await self._pools.ports.give_back(gone)
        for port in sorted(used - taken - await self._pools.ports.taken()):
            try:
                await self._pools.ports.take([port])
                log.warning("node port %d of a Service was not taken: repaired", port)
            except PortUnavailable as error:  # outside the range, or just taken
                log.warning("node port %d of a Service: %s", port, error)

    async def _repair_addresses(self, services: list[Service]) -> None:
        owners: dict[str, tuple[str, str]] = {}
        for service in services:
            meta = service.metadata
            owner = ((meta and meta.namespace) or "", (meta and meta.name) or "")
            owners.update(dict.fromkeys(addresses_of(service.spec or ServiceSpec()), owner))
        store = self._registry.store("networking.k8s.io", "v1", "ipaddresses")
        now = self._registry.clock.now()
        address: IPAddress
        for item, address in store.decode_all(list(store.partition.items.values())):
            meta, parent = address.metadata, address.spec.parent_ref if address.spec else None
            if meta is None or (meta.labels or {}).get(MANAGED_BY_LABEL) != MANAGER or not meta.name:
                continue
            owner = (parent.namespace or "", parent.name or "") if parent else ("", "")
            if owners.get(meta.name) == owner:
                continue
            if now - parse_time(meta.creation_timestamp or rfc3339(now)) >= ADDRESS_SECONDS:
                log.warning("address %s belongs to no Service: given back", meta.name)
                await store.delete(item)
        await self._take_missing(owners)

    async def _take_missing(self, owners: dict[str, tuple[str, str]]) -> None:
        store = self._registry.store("networking.k8s.io", "v1", "ipaddresses")
        now = rfc3339(self._registry.clock.now())
        for ip, (namespace, name) in owners.items():
            address = parse_ip(ip)
            if address is None or await store.find("", ip) is not None:
                continue
            try:
                await self._pools.ips.take(namespace, name, address, now)
                log.warning("address %s of Service %s/%s was not taken: repaired", ip, namespace, name)
            except (AddressUnavailable, APIError) as error:
                log.warning("address %s of Service %s/%s: %s", ip, namespace, name, error)
