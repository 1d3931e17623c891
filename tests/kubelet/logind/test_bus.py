"""A connection to a message bus closes file descriptors without a receiver."""

from __future__ import annotations

import asyncio
import os
import socket

from pybernetes.kubelet.logind import wire
from pybernetes.kubelet.logind.bus import Bus


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


async def test_descriptors_of_a_message_that_never_arrives_whole_are_closed_with_the_connection() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs, socket.socket() as sent:
        bus = Bus(ours)
        socket.send_fds(theirs, [b"l"], [sent.fileno()])  # the first byte of a message
        bus._readable()
        (received,) = bus._fds
        assert is_open(received)
        bus.close()
        assert not is_open(received)
        assert bus.closed.is_set()


async def test_descriptors_of_a_reply_without_a_waiter_are_closed() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs, socket.socket() as sent:
        bus = Bus(ours)
        before = set(os.listdir("/proc/self/fd"))
        late = wire.Message(wire.METHOD_RETURN, 5, body=(0,), fields={"reply_to": 99, "fds": 1})
        socket.send_fds(theirs, [wire.encode(late, "h")], [sent.fileno()])
        bus._readable()
        await asyncio.sleep(0)
        assert set(os.listdir("/proc/self/fd")) == before
        bus.close()
