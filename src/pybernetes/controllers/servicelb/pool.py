"""The addresses that Services of type LoadBalancer can get, and which Service has which (pure).

Kept in memory alone: it follows from the status of Services, so a restart gives every Service what it had.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence

from pybernetes.api.addresses import IPAddress
from pybernetes.client.keys import Key

FAMILIES = {"IPv4": 4, "IPv6": 6}


class PoolError(ValueError):
    """An address that cannot be given; the message is for the Service's events."""


class AddressRange:
    """From a first to a last address, both included."""

    def __init__(self, first: IPAddress, last: IPAddress) -> None:
        self.version = first.version
        self.first, self.last = int(first), int(last)
        self.text = f"{first}-{last}"

    def __contains__(self, address: IPAddress) -> bool:
        return address.version == self.version and self.first <= int(address) <= self.last

    def addresses(self) -> Iterator[IPAddress]:
        """All of them, the lowest first; made one by one, as there may be 2^64."""
        make = ipaddress.IPv4Address if self.version == 4 else ipaddress.IPv6Address
        for number in range(self.first, self.last + 1):
            yield make(number)


def parse_ranges(texts: Iterable[str]) -> list[AddressRange]:
    """The ranges of a flag: networks (`192.0.2.0/28`), `FIRST-LAST`, or single addresses. Raises ValueError.

    A network of IPv4 with more than two addresses does not give its first and last one, which have a meaning of
    their own; nor does one of IPv6 give its first.
    """
    found: list[AddressRange] = []
    for text in filter(None, (each.strip() for each in texts)):
        made = _parse(text)
        for other in found:
            if made.version == other.version and made.first <= other.last and other.first <= made.last:
                raise ValueError(f"load balancer pool: {text} overlaps {other.text}")
        found.append(made)
    return found


def _parse(text: str) -> AddressRange:
    try:
        if "-" in text:
            first, _, last = text.partition("-")
            low, high = ipaddress.ip_address(first.strip()), ipaddress.ip_address(last.strip())
            if low.version != high.version or int(low) > int(high):
                raise ValueError
            return _unicast(low, high)
        network = ipaddress.ip_network(text)
        low, high = network.network_address, network.broadcast_address
        if network.num_addresses > 2:
            low += 1
            if network.version == 4:
                high -= 1
        return _unicast(low, high)
    except ValueError:
        raise ValueError(
            f"load balancer pool: {text!r} is neither a network (192.0.2.0/28), a range (192.0.2.1-192.0.2.9) "
            "nor an address that other machines can reach"
        ) from None


def _unicast(low: IPAddress, high: IPAddress) -> AddressRange:
    for each in (low, high):
        if each.is_multicast or each.is_loopback or each.is_unspecified or each.is_link_local:
            raise ValueError
    return AddressRange(low, high)


class Pool:
    """Which Service has which address. Invariant: an address of the pool has one owner at most."""

    def __init__(self, ranges: Sequence[AddressRange]) -> None:
        self._ranges = ranges
        self._owners: dict[IPAddress, Key] = {}
        self._owned: dict[Key, dict[int, IPAddress]] = {}

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def __contains__(self, address: IPAddress) -> bool:
        return any(address in each for each in self._ranges)

    def has_family(self, version: int) -> bool:
        """Whether there is a range of this IP version."""
        return any(each.version == version for each in self._ranges)

    def owns(self, key: Key) -> bool:
        """Whether a Service has an address."""
        return key in self._owned

    def of(self, key: Key) -> list[IPAddress]:
        """The addresses of a Service, in the order in which it got them."""
        return list(self._owned.get(key, {}).values())

    def keep(self, key: Key, address: IPAddress) -> bool:
        """A Service says in its status that it has this address; whether that is so now."""
        if address not in self or self._owners.get(address, key) != key:
            return False
        if self._owned.get(key, {}).get(address.version, address) != address:
            return False
        self._take(key, address)
        return True

    def allocate(self, key: Key, families: Sequence[int], wanted: IPAddress | None, all_families: bool) -> bool:
        """Gives a Service an address of each family, `wanted` among them; whether anything changed. Raises PoolError.

        Addresses it has already stay if they fit. Without `all_families` one family that the pool has not is left
        out, as long as another is there.
        """
        before = self.of(key)
        if wanted is not None:
            self._check_wanted(key, wanted, families)
        usable = [each for each in families if self.has_family(each)]
        lacking = [each for each in families if each not in usable]
        if lacking and (all_families or not usable):
            raise PoolError(f"no range of the load balancer pool is for IPv{lacking[0]}")
        chosen = [self._choose(key, family, wanted) for family in usable]
        self.release(key)
        for address in chosen:
            self._take(key, address)
        return self.of(key) != before

    def release(self, key: Key) -> bool:
        """Takes all addresses from a Service; whether it had any."""
        gone = self._owned.pop(key, {})
        for address in gone.values():
            del self._owners[address]
        return bool(gone)

    def _take(self, key: Key, address: IPAddress) -> None:
        self._owners[address] = key
        self._owned.setdefault(key, {})[address.version] = address

    def _check_wanted(self, key: Key, wanted: IPAddress, families: Sequence[int]) -> None:
        if wanted.version not in families:
            raise PoolError(f"spec.loadBalancerIP {wanted} is of none of the Service's IP families")
        if wanted not in self:
            ranges = ", ".join(each.text for each in self._ranges)
            raise PoolError(f"spec.loadBalancerIP {wanted} is not in the load balancer pool ({ranges})")
        owner = self._owners.get(wanted, key)
        if owner != key:
            raise PoolError(f"spec.loadBalancerIP {wanted} belongs to the Service {owner.namespace}/{owner.name}")

    def _choose(self, key: Key, family: int, wanted: IPAddress | None) -> IPAddress:
        if wanted is not None and wanted.version == family:
            return wanted
        if (has := self._owned.get(key, {}).get(family)) is not None:
            return has
        for each in self._ranges:
            if each.version == family:
                for address in each.addresses():
                    if address not in self._owners:
                        return address
        raise PoolError(f"the load balancer pool has no free IPv{family} address")
