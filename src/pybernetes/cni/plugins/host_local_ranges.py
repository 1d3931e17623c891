"""Ranges of addresses: what belongs to them, in which order they are given out, and what makes no sense (pure)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import INVALID_NETWORK_CONFIG, CNIError
from ..fields import Address, Network, field, parse_cidr, parse_ip


@dataclass(frozen=True)
class Range:
    """Addresses from `start` to `end`, both included; the gateway is never given out."""

    subnet: Network
    start: Address
    end: Address
    gateway: Address

    @staticmethod
    def from_json(raw: Any) -> Range:
        """A range with what it does not say filled in: gateway .1, everything but network and broadcast address."""
        if not isinstance(raw, dict):
            raise _invalid("must be a list of objects")
        interface = parse_cidr(field(raw, "subnet", ""), "subnet")
        subnet = interface.network
        if subnet.prefixlen > subnet.max_prefixlen - 2:
            raise _invalid(f"Network {interface} too small to allocate from")
        if interface.ip != subnet.network_address:
            raise _invalid(
                f"Network has host bits set. For a subnet mask of length {subnet.prefixlen} "
                f"the network address is {subnet.network_address}"
            )
        first = _plus(subnet.network_address, 1)
        # IPv4 keeps its last address for broadcasts.
        last = subnet.broadcast_address if subnet.version == 6 else _plus(subnet.broadcast_address, -1)
        start, end, gateway = (field(raw, name, "") for name in ("rangeStart", "rangeEnd", "gateway"))
        made = Range(
            subnet,
            parse_ip(start, "rangeStart") if start else first,
            parse_ip(end, "rangeEnd") if end else last,
            parse_ip(gateway, "gateway") if gateway else first,
        )
        if made.start not in subnet:
            raise _invalid(f"RangeStart {made.start} not in network {subnet}")
        if made.end not in subnet or int(made.end) < int(made.start):
            raise _invalid(f"RangeEnd {made.end} not in network {subnet}")
        return made

    def contains(self, address: Address) -> bool:
        return address.version == self.subnet.version and int(self.start) <= int(address) <= int(self.end)

    def __str__(self) -> str:
        return f"{self.start}-{self.end}"


@dataclass(frozen=True)
class RangeSet:
    """Ranges of one IP version that one address is taken from."""

    ranges: tuple[Range, ...]

    @staticmethod
    def from_json(raw: Any) -> RangeSet:
        """A set of ranges; they must be of one version and not overlap."""
        if not isinstance(raw, list) or not raw:
            raise _invalid("empty range set")
        ranges = tuple(Range.from_json(entry) for entry in raw)
        if len({each.subnet.version for each in ranges}) > 1:
            raise _invalid("mixed address families")
        for index, first in enumerate(ranges):
            for second in ranges[index + 1 :]:
                if _overlap(first, second):
                    raise _invalid(f"subnets {first} and {second} overlap")
        return RangeSet(ranges)

    @property
    def version(self) -> int:
        return self.ranges[0].subnet.version

    def contains(self, address: Address) -> bool:
        """Whether one of the ranges has the address."""
        return any(each.contains(address) for each in self.ranges)

    def range_for(self, address: Address) -> Range:
        """The range that has the address."""
        for each in self.ranges:
            if each.contains(address):
                return each
        raise CNIError(f"{address} not in range set {self}")

    def overlaps(self, other: RangeSet) -> bool:
        """Whether an address is in both."""
        return any(_overlap(first, second) for first in self.ranges for second in other.ranges)

    def after(self, last: Address | None) -> Iterator[tuple[Address, Range]]:
        """All addresses that may be given out, beginning behind `last`, round to `last` itself."""
        spans = [(each, int(each.start), int(each.end)) for each in self.ranges]
        if last is not None:
            for index, (each, low, high) in enumerate(spans):
                if each.contains(last):
                    at = int(last)
                    spans = [(each, at + 1, high), *spans[index + 1 :], *spans[:index], (each, low, at)]
                    break
        for each, low, high in spans:
            kind = type(each.start)
            for value in range(low, high + 1):
                address = kind(value)
                if address != each.gateway:
                    yield address, each

    def __str__(self) -> str:
        return ",".join(map(str, self.ranges))


def _overlap(first: Range, second: Range) -> bool:
    if first.subnet.version != second.subnet.version:
        return False
    return int(first.start) <= int(second.end) and int(second.start) <= int(first.end)


def _plus(address: Address, step: int) -> Address:
    return ipaddress.ip_address(int(address) + step) if address.version == 4 else type(address)(int(address) + step)


def _invalid(text: str) -> CNIError:
    return CNIError(text, INVALID_NETWORK_CONFIG)
