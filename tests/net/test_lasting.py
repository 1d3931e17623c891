"""Connections that last: they go at the client's pace, and a shutdown does not wait for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pybernetes.net.http import OVERDUE, Handler, HTTPServer, Request, Response, Timeouts

MUCH = b"x" * (16 << 20)  # more than the buffers of two sockets hold


@contextlib.asynccontextmanager
async def serving(handler: Handler, timeouts: Timeouts | None = None) -> AsyncIterator[tuple[HTTPServer, int]]:
    def refusal(status: int, text: str) -> Response:
        return Response(text.encode(), status)

    http = HTTPServer(handler, refusal, max_body=1000, timeouts=timeouts)
    server = await asyncio.get_running_loop().create_server(http, "127.0.0.1", 0)
    try:
        yield http, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await http.drain(1.0)


async def _ask(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


@pytest.mark.parametrize("lasting", [True, False])
async def test_only_a_log_stream_may_pause(lasting: bool) -> None:
    connections: list[Any] = []

    async def handler(request: Request) -> Response | None:
        connections.append(request.connection)
        request.connection.lasting = lasting
        stream = request.connection.stream(request, 200, "text/plain")
        for start in range(0, len(MUCH), 1 << 16):
            stream.write(MUCH[start : start + (1 << 16)])
            await stream.drain()
        stream.end()
        return None

    async with serving(handler, Timeouts(write=0.05)) as (_, port):
        reader, writer = await _ask(port)
        now = asyncio.get_running_loop().time
        async with asyncio.timeout(30):
            # No reads, four times as long as the limit.
            while not connections or not (connections[0].transport.is_closing() or connections[0].stuck(now()) > 0.2):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        found = 0
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(1 << 20):
                found += len(piece)
                if piece.endswith(b"\r\n0\r\n\r\n"):
                    break
        writer.close()
        assert (found > len(MUCH)) == lasting


async def test_an_end_does_not_wait_for_what_lasts_but_for_what_does_not() -> None:
    finish = asyncio.Event()
    asked = asyncio.Semaphore(0)

    async def handler(request: Request) -> Response | None:
        request.connection.lasting = request.headers.get("x-lasting") == "1"
        asked.release()
        await finish.wait()
        return Response(b"done")

    async with serving(handler) as (http, port), asyncio.timeout(30):
        lasting = await asyncio.open_connection("127.0.0.1", port)
        lasting[1].write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Lasting: 1\r\n\r\n")
        short = await asyncio.open_connection("127.0.0.1", port)
        short[1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(2):
            await asked.acquire()
        draining = asyncio.create_task(http.drain(60.0))
        with contextlib.suppress(ConnectionError):
            assert await lasting[0].read() == b""
        assert not draining.done()
        finish.set()
        assert (await short[0].read()).endswith(b"done")
        await draining


async def test_an_answer_that_takes_too_long_is_ended_unless_it_lasts() -> None:
    why: list[object] = []

    async def handler(request: Request) -> Response | None:
        try:
            await asyncio.sleep(0.15)
            return Response(b"done")
        except asyncio.CancelledError as cancelled:
            why.append(cancelled.args)
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            return Response(b"late")

    def refusal(status: int, text: str) -> Response:
        return Response(text.encode(), status)

    times = Timeouts(header=0.2, answer=0.05)
    http = HTTPServer(handler, refusal, max_body=10, timeouts=times, lasts=lambda request: request.path == "/long")
    server = await asyncio.get_running_loop().create_server(http, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    answers = []
    for path in ("/", "/long", "/"):
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        answers.append(await reader.readexactly(4))
    assert answers == [b"late", b"done", b"late"]
    assert why == [(OVERDUE,)] * 2
    writer.close()
    server.close()
    await http.drain(1.0)
