"""DHCP messages (RFC 2131), and what a server's answer means for a pod (pure)."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

DISCOVER, OFFER, REQUEST, DECLINE, ACK, NAK, RELEASE = range(1, 8)
SUBNET_MASK, ROUTER, DNS_SERVER, DOMAIN, STATIC_ROUTES = 1, 3, 6, 15, 33
REQUESTED, LEASE_TIME, TYPE, SERVER, PARAMETERS, MAX_SIZE, RENEWAL, REBINDING = 50, 51, 53, 54, 55, 57, 58, 59
CLIENT_ID, SEARCH, CLASSLESS_ROUTES, END, PAD = 61, 119, 121, 255, 0
WANTED = (SUBNET_MASK, ROUTER, DNS_SERVER, DOMAIN, STATIC_ROUTES, CLASSLESS_ROUTES, LEASE_TIME, RENEWAL, REBINDING)
_HEADER = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s")
_COOKIE = b"\x63\x82\x53\x63"
_BROADCAST = 0x8000
_FOREVER = 0xFFFFFFFF
_LEAST_LEASE = 10
"""Seconds: a server that gives less is asked as if it had given this."""

IPv4 = ipaddress.IPv4Address
NO_ADDRESS = IPv4(0)


class MessageError(ValueError):
    """Not a DHCP message that can be used."""


@dataclass(frozen=True)
class Answer:
    """A server's message."""

    kind: int
    transaction: int
    mac: bytes
    address: IPv4
    options: dict[int, bytes]
    data: bytes = b""
    """The message itself."""

    def addresses(self, option: int) -> list[IPv4]:
        """The addresses that an option lists."""
        data = self.options.get(option, b"")
        return [IPv4(data[at : at + 4]) for at in range(0, len(data) - len(data) % 4, 4)]

    def seconds(self, option: int) -> int | None:
        """The time that an option says; None if it says none, or for ever."""
        data = self.options.get(option, b"")
        value = int.from_bytes(data, "big") if len(data) == 4 else _FOREVER
        return None if value == _FOREVER else value

    @property
    def server(self) -> IPv4:
        """The server's identifier."""
        found = self.addresses(SERVER)
        if not found:
            raise MessageError("the answer names no server")
        return found[0]

    @property
    def interface(self) -> ipaddress.IPv4Interface:
        """The address, with the mask of its subnet."""
        mask = self.addresses(SUBNET_MASK)
        try:
            return ipaddress.IPv4Interface(f"{self.address}/{mask[0]}" if mask else f"{self.address}/32")
        except ValueError:
            raise MessageError(f"the subnet mask {mask[0]} is none") from None

    def times(self) -> tuple[float, float, float] | None:
        """Seconds until the lease is renewed, asked for anywhere, and over; None for a lease without end."""
        lease = self.seconds(LEASE_TIME)
        if lease is None:
            return None
        lease = max(lease, _LEAST_LEASE)
        renewal, rebinding = self.seconds(RENEWAL) or lease * 0.5, self.seconds(REBINDING) or lease * 0.875
        rebinding = min(rebinding, lease)
        return min(renewal, rebinding), rebinding, lease

    def routes(self) -> list[tuple[ipaddress.IPv4Network, IPv4]]:
        """The routes it names. Classless ones replace all others (RFC 3442)."""
        if CLASSLESS_ROUTES in self.options:
            return list(_classless(self.options[CLASSLESS_ROUTES]))
        found = [(ipaddress.IPv4Network("0.0.0.0/0"), each) for each in self.addresses(ROUTER)[:1]]
        pairs = self.addresses(STATIC_ROUTES)
        for target, gateway in zip(pairs[::2], pairs[1::2], strict=False):
            prefix = 8 if target.packed[0] < 128 else 16 if target.packed[0] < 192 else 24
            found.append((ipaddress.IPv4Network((target, prefix), strict=False), gateway))
        return found


def _classless(data: bytes) -> list[tuple[ipaddress.IPv4Network, IPv4]]:
    found, at = [], 0
    while at < len(data):
        prefix = data[at]
        size = (prefix + 7) // 8
        if prefix > 32 or at + 1 + size + 4 > len(data):
            raise MessageError("the classless routes are cut off")
        target = data[at + 1 : at + 1 + size].ljust(4, b"\0")
        gateway = data[at + 1 + size : at + 5 + size]
        found.append((ipaddress.IPv4Network((target, prefix), strict=False), IPv4(gateway)))
        at += 5 + size
    return found


def pack(
    kind: int,
    transaction: int,
    mac: bytes,
    options: dict[int, bytes],
    *,
    address: IPv4 = NO_ADDRESS,
    broadcast: bool = True,
) -> bytes:
    """A client's message. `address` is the client's own, once it has one."""
    flags = _BROADCAST if broadcast else 0
    none = bytes(4)
    head = _HEADER.pack(
        1, 1, 6, 0, transaction, 0, flags, address.packed, none, none, none, mac.ljust(16, b"\0"), bytes(64), bytes(128)
    )
    body = b"".join(bytes((code, len(data))) + data for code, data in {TYPE: bytes([kind]), **options}.items())
    return (head + _COOKIE + body + bytes([END])).ljust(300, b"\0")


def read(data: bytes) -> Answer:
    """A server's answer. `MessageError` if it is none."""
    if len(data) < _HEADER.size + 4 or data[_HEADER.size : _HEADER.size + 4] != _COOKIE:
        raise MessageError("not a DHCP message")
    op, _, length, _, transaction, _, _, _, yours, _, _, hardware, _, _ = _HEADER.unpack_from(data)
    if op != 2 or length != 6:
        raise MessageError("not a server's answer")
    options: dict[int, bytes] = {}
    at = _HEADER.size + 4
    while at < len(data) and data[at] != END:
        if data[at] == PAD:
            at += 1
            continue
        if at + 1 >= len(data) or at + 2 + data[at + 1] > len(data):
            raise MessageError("an option is cut off")
        code, size = data[at], data[at + 1]
        # A long option comes in several pieces (RFC 3396).
        options[code] = options.get(code, b"") + data[at + 2 : at + 2 + size]
        at += 2 + size
    kind = options.get(TYPE, b"")
    if len(kind) != 1:
        raise MessageError("the answer says no type")
    return Answer(kind[0], transaction, hardware[:6], IPv4(yours), options, data)
