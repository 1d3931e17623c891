"""Clients that are slow, wrong or hostile: they are refused or closed, and others are served meanwhile."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from ingress.proxy import Client, Proxy, echo, ingress, proxy

from pybernetes.ingress.frontend import Timeouts

WEB = ("/", "Prefix", "web")
QUICK = Timeouts(header=0.4, body=0.4, idle=0.6, write=0.6)


@contextlib.asynccontextmanager
async def served(p: Proxy):  # type: ignore[no-untyped-def]
    p.put(ingress("web", WEB))
    await p.serve("web", echo("one"))
    yield p


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n X: folded\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/3.1\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 3\r\n\r\nGET",
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
)
async def test_what_another_server_could_read_in_another_way_never_reaches_an_endpoint(request_bytes: bytes) -> None:
    async with proxy() as p, served(p):
        client = await p.connect()
        await client.send(request_bytes + b"GET /second HTTP/1.1\r\nHost: a\r\n\r\n")
        got = await client.ended() if not request_bytes.startswith(b"GET http") else (await client.answer()).body
        assert b"one|" not in got
        assert got.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5", b"Bad Request")) or got == b""
        assert (await p.ask()).name == "one"


async def test_a_broken_body_ends_the_request_at_the_endpoint_too() -> None:
    gone = asyncio.Event()

    async def waiting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        gone.set()

    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", waiting)
        for rest in (b"zz\r\nhello\r\n", None):  # no size of a chunk; the client leaves
            gone.clear()
            client = await p.connect()
            await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            if rest is None:
                client.writer.transport.abort()
            else:
                await client.send(rest)
            async with asyncio.timeout(20):
                await gone.wait()


async def test_requests_that_arrive_together_are_answered_in_order() -> None:
    async with proxy() as p, served(p):
        client = await p.connect()
        await client.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number for number in range(200)))
        for number in range(200):
            assert (await client.answer()).sent.startswith(f"GET /{number} ")


async def test_too_many_requests_at_once_are_refused_and_memory_is_not_theirs() -> None:
    async with proxy() as p, served(p):
        client = await p.connect()
        with contextlib.suppress(ConnectionError):
            await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 20_000)
        got = await client.ended()
        assert got.count(b"HTTP/1.1 200") <= 20_000
        assert (await p.ask()).name == "one"


async def test_slow_and_silent_clients_are_closed_and_do_not_hold_up_others() -> None:
    async def large(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99000000\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()

    async with proxy(QUICK) as p, served(p):
        p.put(ingress("large", ("/large", "Prefix", "large")))
        await p.serve("large", large)
        silent, half_head, half_body, greedy = [await p.connect() for _ in range(4)]
        await half_head.send(b"GET / HTTP/1.1\r\nHost:")
        await half_body.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
        greedy.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await greedy.send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        others = [(await p.ask()).name for _ in range(20)]
        assert others == ["one"] * 20
        for each in (silent, half_head, half_body):
            assert b"200" not in await each.ended()
        async with asyncio.timeout(20):
            while p.server.connections:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_a_client_that_leaves_takes_its_request_with_it() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def waiting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        gone.set()

    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", waiting)
        client = await p.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        async with asyncio.timeout(20):
            await asked.wait()
            client.writer.transport.abort()
            await gone.wait()


async def test_more_connections_than_allowed_are_closed_at_once() -> None:
    async with proxy(most_connections=3) as p, served(p):
        clients = [await p.connect() for _ in range(3)]
        for each in clients:
            assert (await each.ask()).name == "one"
        extra: Client = await p.connect()
        assert await extra.ended() == b""
        clients[0].writer.close()
        async with asyncio.timeout(20):
            while len(p.server.connections) > 2:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await p.ask()).name == "one"


async def test_draining_finishes_what_is_under_way_and_closes_the_rest() -> None:
    release, asked = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await release.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")

    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", slow)
        idle, busy = await p.connect(), await p.connect()
        asking = asyncio.create_task(busy.ask())
        await asked.wait()
        draining = asyncio.create_task(p.server.drain(20))
        assert await idle.ended() == b""
        release.set()
        answer = await asking
        assert (answer.body, answer.headers.get("connection")) == (b"slow", "close")
        await draining


async def test_an_answer_that_comes_before_the_body_was_sent_arrives() -> None:
    async with proxy() as p:
        p.put(ingress("web", WEB, annotations={"proxy-body-size": "1k"}))
        await p.serve("web", echo("one"))
        for _ in range(2):
            client = await p.connect()
            await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n")
            for _ in range(90):  # goes on without looking at what is answered
                await client.send(b"x" * 100_000)
            answer = await client.answer()
            assert (answer.status, answer.headers["connection"]) == (413, "close")
            client.writer.close()
