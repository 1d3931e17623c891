"""Streams to clients that do not read: little is given to their transport, the rest stays shared."""

from __future__ import annotations

import asyncio
from typing import Any

from pybernetes.net.http import UNSENT, Stream


class SlowConnection:
    """A connection whose client has read nothing until `read` is set."""

    def __init__(self) -> None:
        self.written: list[bytes | memoryview] = []
        self.read = asyncio.Event()

    def write(self, data: bytes | memoryview) -> None:
        self.written.append(data)

    async def drain(self) -> None:
        await self.read.wait()


async def test_a_client_that_does_not_read_is_given_one_part_of_a_long_event() -> None:
    connection: Any = SlowConnection()
    event = b"x" * (10 * UNSENT + 1)
    sending = asyncio.create_task(Stream(connection).send(event))
    await asyncio.sleep(0)
    assert sum(map(len, connection.written)) <= UNSENT + 16
    assert connection.written[1].obj is event  # not a copy: others are sent the same
    connection.read.set()
    await sending
    assert b"".join(connection.written) == b"%x\r\n%b\r\n" % (len(event), event)


async def test_a_short_event_is_written_at_once() -> None:
    connection: Any = SlowConnection()
    connection.read.set()
    await Stream(connection).send(b"abc")
    assert connection.written == [b"3\r\nabc\r\n"]
