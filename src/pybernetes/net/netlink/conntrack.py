"""Connections that the kernel remembers for translating addresses: forgetting those of a port."""

from __future__ import annotations

import socket
import struct

from . import wire
from .connection import ACK, DUMP, Connection

_NETFILTER = 12  # NETLINK_NETFILTER
_GET, _DELETE = 1 << 8 | 1, 1 << 8 | 2  # of the subsystem for connections
_ORIGINAL = 1  # the tuple of addresses and ports as the first packet had it
_TUPLE_PROTOCOL = 2
_PROTOCOL_NUMBER, _DESTINATION_PORT = 1, 3
_HEADER = struct.Struct("=BBH")  # family, version, resource


def forget(version: int, protocol: int, port: int) -> int:
    """Forgets the connections that were made to a port, for IP of this version; how many there were."""
    family = socket.AF_INET6 if version == 6 else socket.AF_INET
    header = _HEADER.pack(family, 0, 0)
    forgotten = 0
    with Connection(_NETFILTER) as kernel:
        for body in kernel.request(_GET, DUMP, header):
            original = wire.attributes(body[_HEADER.size :]).get(_ORIGINAL, b"")
            numbers = wire.attributes(wire.attributes(original).get(_TUPLE_PROTOCOL, b""))
            reached = int.from_bytes(numbers.get(_DESTINATION_PORT, b""), "big")
            if wire.number(numbers.get(_PROTOCOL_NUMBER)) != protocol or reached != port:
                continue
            try:
                kernel.request(_DELETE, ACK, header + wire.attribute(_ORIGINAL | wire.NESTED, original))
                forgotten += 1
            except FileNotFoundError:
                continue  # it ended meanwhile
    return forgotten
