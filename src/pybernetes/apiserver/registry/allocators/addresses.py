"""Cluster IPs: an IPAddress object for each address in use, named after it.

Creating the object takes the address, deleting it gives it back; the store lets only one create win. The ranges come
from the ServiceCIDR objects that are ready, so that an administrator can add ranges to a running cluster. Addresses
that were not requested are drawn from the upper part of a range first; the lower 16 to 256 stay free for requested
ones.
"""

from __future__ import annotations

import ipaddress
import random
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pybernetes.api.addresses import IPAddress as Address
from pybernetes.api.addresses import IPNetwork, parse_cidr
from pybernetes.api.errors import AlreadyExists
from pybernetes.api.managedfields import record_update
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.api.networking.v1 import IPAddress, IPAddressSpec, ParentReference, ServiceCIDR

from .ports import static_part

if TYPE_CHECKING:
    from ..registry import Registry

FAMILY_LABEL: Final = "ipaddress.kubernetes.io/ip-family"
MANAGED_BY_LABEL: Final = "ipaddress.kubernetes.io/managed-by"
MANAGER: Final = "ipallocator.k8s.io"
_FIELD_MANAGER: Final = "kube-apiserver"
_MAX_SIZE: Final = 1 << 63


class AddressUnavailable(Exception):
    """An address cannot be had."""


class RangeFull(AddressUnavailable):
    """No address is left in any range."""

    def __init__(self) -> None:
        super().__init__("range is full")


class ClusterIPs:
    """The addresses of Services, shared through the store."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._addresses = registry.store("networking.k8s.io", "v1", "ipaddresses")
        self._cidrs = registry.store("networking.k8s.io", "v1", "servicecidrs")

    @property
    def families(self) -> tuple[str, ...]:
        """The families this cluster has, the one that is used by default first."""
        return tuple(f"IPv{network.version}" for network in map(_network, self._registry.service_cidrs) if network)

    def placeholder(self, family: str) -> str:
        """The address that a dry run shows: that of the range. Raises RangeFull if there is none."""
        for network in self._ranges(family):
            return str(network.network_address)
        raise RangeFull

    async def take(self, namespace: str, name: str, address: Address, now: str, *, dry_run: bool = False) -> None:
        """Take this address for a Service. Raises AddressUnavailable."""
        if dry_run:
            # Looks at the range the server was started with only, as upstream does.
            network = next((each for each in map(_network, self._registry.service_cidrs) if _same(each, address)), None)
            if network is None or not contains(network, address):
                why = f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {network}"
                raise AddressUnavailable(why)
            return
        if not any(contains(network, address) for network in self._ranges(f"IPv{address.version}")):
            raise AddressUnavailable("the provided network does not match the current range")
        try:
            await self._create(namespace, name, address, now)
        except AlreadyExists:
            raise AddressUnavailable("provided IP is already allocated") from None

    async def take_any(self, namespace: str, name: str, family: str, now: str) -> str:
        """Take some free address for a Service. Raises RangeFull."""
        for network in self._ranges(family):
            for address in _candidates(network):
                if self._addresses.peek("", str(address)) is not None:
                    continue
                try:
                    await self._create(namespace, name, address, now)
                except AlreadyExists:
                    continue  # another server was faster
                return str(address)
        raise RangeFull

    async def give_back(self, namespace: str, name: str, ip: str) -> None:
        """Make the address of a Service available again, if it is the Service's."""
        while True:
            item = await self._addresses.find("", ip)
            if item is None:
                return
            parent = self._addresses.decode(item).spec.parent_ref
            if (parent.namespace, parent.name) != (namespace, name):
                return
            if await self._addresses.delete(item) is not None:
                return

    async def _create(self, namespace: str, name: str, address: Address, now: str) -> None:
        meta = ObjectMeta(
            name=str(address),
            uid=str(uuid.uuid4()),
            creation_timestamp=now,
            labels={FAMILY_LABEL: f"IPv{address.version}", MANAGED_BY_LABEL: MANAGER},
        )
        parent = ParentReference(resource="services", namespace=namespace, name=name)
        taken = IPAddress(metadata=meta, spec=IPAddressSpec(parent_ref=parent))
        version = self._addresses.resource.api_version
        meta.managed_fields = record_update(taken, None, manager=_FIELD_MANAGER, api_version=version, now=now)
        await self._addresses.create(taken)

    def _ranges(self, family: str) -> list[IPNetwork]:
        """The ranges of a family that are ready, in the order of their objects' names."""
        found: list[IPNetwork] = []
        for key in self._cidrs.partition.keys:
            cidr: ServiceCIDR = self._cidrs.decode(self._cidrs.partition.items[key])
            if is_ready(cidr):
                found += [network for network in map(_network, (cidr.spec and cidr.spec.cidrs) or ()) if network]
        return [network for network in found if family == f"IPv{network.version}"]


def is_ready(cidr: ServiceCIDR) -> bool:
    """Whether addresses may be taken from it."""
    conditions = (cidr.status and cidr.status.conditions) or ()
    ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
    return ready and not (cidr.metadata and cidr.metadata.deletion_timestamp)


def contains(network: IPNetwork, address: Address) -> bool:
    """Whether a Service could have the address: not the network's own, and in IPv4 not the broadcast address."""
    if address.version != network.version or address not in network or address == network.network_address:
        return False
    return address.version == 6 or address != network.broadcast_address


def _same(network: IPNetwork | None, address: Address) -> bool:
    return network is not None and network.version == address.version


def _network(cidr: str) -> IPNetwork | None:
    parsed = parse_cidr(cidr)
    return parsed[1] if parsed else None


def _candidates(network: IPNetwork) -> Iterator[Address]:
    """Every address that can be given out once: the upper part from a random place on, then the lower part."""
    first = int(network.network_address) + 1
    size = min(network.num_addresses, _MAX_SIZE) - (2 if network.version == 4 else 1)
    if size <= 0:
        return
    static = static_part(min(network.num_addresses, _MAX_SIZE), step=16, most=256)
    make = ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
    for start, count in ((static, size - static), (0, min(static, size))):
        if count > 0:
            offset = random.randrange(count)
            for index in range(count):
                yield make(first + start + (offset + index) % count)
