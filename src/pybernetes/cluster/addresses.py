"""Addresses and ports of this machine."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Collection
from typing import Final

LOOPBACK = "127.0.0.1"
PORTS: Final = range(20_000, 30_000)
"""Above those that servers are known by, below NodePorts and, as a rule, those that the kernel gives to connections."""
KERNELS: Final = "/proc/sys/net/ipv4/ip_local_port_range"
ATTEMPTS: Final = 100


def free_port(address: str, *, apart_from: Collection[int] = ()) -> int:
    """A free port of this address. Raises OSError.

    Its server listens a moment later, and by then a connection could have a port that the kernel gives to connections.
    So it is none of those, as long as there are others.
    """
    first, last = _kernels()
    for _ in range(ATTEMPTS):
        port = PORTS[int.from_bytes(os.urandom(4)) % len(PORTS)]
        if port not in apart_from and not first <= port <= last:
            try:
                return _bound(address, port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
    return _bound(address, 0)


def _kernels() -> tuple[int, int]:
    try:
        with open(KERNELS) as file:
            first, last = map(int, file.read().split())
    except (OSError, ValueError):
        return PORTS[0], PORTS[-1]
    return first, last


def _bound(address: str, port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((address, port))
        return int(probe.getsockname()[1])


def this_machine() -> str:
    """The address of this machine towards others, that of its loopback device if it has no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET: nothing is sent, the kernel only picks the route.
            return str(probe.getsockname()[0])
        except OSError:
            return LOOPBACK
