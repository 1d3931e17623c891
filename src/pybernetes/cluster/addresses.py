"""Addresses and ports of this machine."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def free_port(address: str) -> int:
    """A port that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def this_machine() -> str:
    """The address of this machine towards others, that of its loopback device if it has no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET: nothing is sent, the kernel only picks the route.
            return str(probe.getsockname()[0])
        except OSError:
            return LOOPBACK
