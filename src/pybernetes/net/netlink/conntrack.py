"""Connections that the kernel tracks in order to translate their addresses: listing and deleting them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from . import wire
from .connection import ACK, DUMP, Connection

_NETFILTER = 12  # NETLINK_NETFILTER
_GET, _DELETE = 1 << 8 | 1, 1 << 8 | 2  # of the subsystem for connections
_ORIGINAL, _REPLY = 1, 2  # addresses and ports as the first packet had them, and as answers have them
_TUPLE_IP, _TUPLE_PROTOCOL = 1, 2
_NUMBER, _SOURCE_PORT, _DESTINATION_PORT = 1, 2, 3
_HEADER = struct.Struct("=BBH")  # family, version, resource


@dataclass(frozen=True)
class Tracked:
    """One connection. Where the destination was translated, answers come from elsewhere (`reply_source`)."""

    family: int
    protocol: int
    destination: bytes
    destination_port: int
    reply_source: bytes
    reply_port: int
    original: bytes
    """By which the kernel finds it."""


class Conntrack(Connection):
    """The tracked connections of the network namespace it was opened in."""

    def __init__(self) -> None:
        super().__init__(_NETFILTER)

    def list(self, family: int, protocol: int) -> Iterator[Tracked]:
        """The connections of an IP version (AF_INET, AF_INET6) and a protocol."""
        source, destination = (1, 2) if family == socket.AF_INET else (3, 4)
        for body in self.request(_GET, DUMP, _HEADER.pack(family, 0, 0)):
            found = wire.attributes(body[_HEADER.size :])
            original, reply = wire.attributes(found.get(_ORIGINAL, b"")), wire.attributes(found.get(_REPLY, b""))
            numbers = wire.attributes(original.get(_TUPLE_PROTOCOL, b""))
            if wire.number(numbers.get(_NUMBER)) != protocol:
                continue
            answers = wire.attributes(reply.get(_TUPLE_PROTOCOL, b""))
            yield Tracked(
                family,
                protocol,
                wire.attributes(original.get(_TUPLE_IP, b"")).get(destination, b""),
                int.from_bytes(numbers.get(_DESTINATION_PORT, b""), "big"),
                wire.attributes(reply.get(_TUPLE_IP, b"")).get(source, b""),
                int.from_bytes(answers.get(_SOURCE_PORT, b""), "big"),
                found.get(_ORIGINAL, b""),
            )

    def delete(self, tracked: Tracked) -> bool:
        """Deletes a connection; whether it was still there."""
        body = _HEADER.pack(tracked.family, 0, 0) + wire.attribute(_ORIGINAL | wire.NESTED, tracked.original)
        try:
            self.request(_DELETE, ACK, body)
        except FileNotFoundError:
            return False
        return True


def forget(version: int, protocol: int, port: int) -> int:
    """Deletes the connections that were made to a port, for IP of this version; how many there were."""
    family = socket.AF_INET6 if version == 6 else socket.AF_INET
    with Conntrack() as kernel:
        found = [each for each in kernel.list(family, protocol) if each.destination_port == port]
        return sum(kernel.delete(each) for each in found)
