"""Answers that are ready together leave together, in order, and none is lost when a connection or the server ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from pybernetes.net.http import Handler, HTTPServer, Request, Response
from pybernetes.net.outbox import TOGETHER, Outbox

ASK = b"POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.write = self.written.append


async def test_answers_wait_for_others_until_the_next_round_or_until_they_are_enough() -> None:
    outbox, wire = Outbox(asyncio.get_running_loop()), Wire()
    transport: Any = wire
    for number in range(TOGETHER + 2):
        outbox.post(transport, b"%d" % number)
        assert len(wire.written) == (TOGETHER if number + 1 >= TOGETHER else 0)
    await asyncio.sleep(0)
    assert wire.written == [b"%d" % number for number in range(TOGETHER + 2)]
    await asyncio.sleep(0)
    outbox.post(transport, b"later")
    await asyncio.sleep(0)
    assert wire.written[-1] == b"later"


class Batch:
    """A handler whose requests are all answered when `done` is set; `/stream` is answered piece by piece.

    `/last` is answered when `over` is set.
    """

    def __init__(self) -> None:
        self.done, self.over = asyncio.Event(), asyncio.Event()
        self.asked = asyncio.Semaphore(0)

    async def __call__(self, request: Request) -> Response | None:
        stream = request.connection.stream(request) if request.path == "/stream" else None
        self.asked.release()
        await (self.over if request.path == "/last" else self.done).wait()
        if stream is None:
            return Response(request.path.encode())
        stream.write(b"whole")
        stream.end()
        return None


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[tuple[HTTPServer, int]]:
    http = HTTPServer(handler, lambda status, text: Response(text.encode(), status), max_body=1000)
    server = await asyncio.get_running_loop().create_server(http, "127.0.0.1", 0)
    try:
        async with asyncio.timeout(30):
            yield http, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await http.drain(1.0)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.001)


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    if b"chunked" in head:
        return await reader.readuntil(b"0\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split()[0])
    return await reader.readexactly(length)


async def test_each_connection_gets_its_own_responses_in_order() -> None:
    batch = Batch()
    async with serving(batch) as (http, port):
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * TOGETHER)]
        for number, (_, writer) in enumerate(streams):
            for turn in range(3):  # the second and third wait in the server
                writer.write(ASK % b"%d-%d" % (number, turn))
        for _ in streams:
            await batch.asked.acquire()
        assert http.serving == len(streams)
        batch.done.set()
        for number, (reader, _) in enumerate(streams):
            assert [await _answer(reader) for _ in range(3)] == [b"/%d-%d" % (number, turn) for turn in range(3)]
        assert http.serving == 0
        for _, writer in streams:
            writer.close()


async def test_answers_that_are_not_yet_sent_are_when_the_server_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Batch()
    async with serving(batch) as (http, port):
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(TOGETHER - 2)]
        for (_, writer), path in zip(streams, (b"last", *[b"x"] * TOGETHER), strict=False):
            writer.write(ASK % path)
        for _ in streams:
            await batch.asked.acquire()
        ends: list[asyncio.Task[None]] = []
        post = http.outbox.post

        def ending(transport: asyncio.Transport, answer: bytes) -> None:
            if not ends:
                ends.append(asyncio.create_task(http.drain(10.0)))  # before what is posted leaves by itself
            post(transport, answer)

        monkeypatch.setattr(http.outbox, "post", ending)
        batch.done.set()
        for reader, _ in streams[1:]:
            assert (await reader.read()).endswith(b"/x")
        batch.over.set()
        assert (await streams[0][0].read()).endswith(b"/last")
        await ends[0]


async def test_what_is_sent_at_once_leaves_behind_what_was_ready_before() -> None:
    batch = Batch()
    async with serving(batch) as (_, port):
        other = await asyncio.open_connection("127.0.0.1", port)
        other[1].write(ASK % b"last")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK % b"x" + b"no request\r\n\r\n")  # which is refused right behind the answer
        for _ in range(2):
            await batch.asked.acquire()
        batch.done.set()
        assert await _answer(reader) == b"/x"
        assert (await reader.read()).startswith(b"HTTP/1.1 400")
        batch.over.set()
        assert await _answer(other[0]) == b"/last"


async def test_streams_and_closed_connections_hold_up_no_response() -> None:
    batch = Batch()
    async with serving(batch) as (http, port):
        lasting = await asyncio.open_connection("127.0.0.1", port)
        lasting[1].write(ASK % b"stream")
        await lasting[0].readuntil(b"\r\n\r\n")
        assert http.serving == 0
        gone = await asyncio.open_connection("127.0.0.1", port)
        gone[1].write(ASK % b"x")
        for _ in range(2):
            await batch.asked.acquire()
        assert http.serving == 1
        gone[1].transport.abort()
        await until(lambda: not http.serving)
        lasting[1].transport.abort()
        await until(lambda: not http.connections)
        assert http.serving == 0
