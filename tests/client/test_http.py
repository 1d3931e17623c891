"""The HTTP client against servers that behave, misbehave and go away."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from pybernetes.client.http import ConnectionFailed, HTTPClient

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\nx-a: 2\r\n\r\nok"


@contextlib.asynccontextmanager
async def serving(serve: Serve, **options: int) -> AsyncIterator[HTTPClient]:
    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(quietly, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = HTTPClient(f"http://127.0.0.1:{port}/base", **options)
    try:
        yield client
    finally:
        await client.close()
        server.close()


async def head(reader: asyncio.StreamReader) -> str:
    return (await reader.readuntil(b"\r\n\r\n")).decode()


async def test_a_connection_is_kept_and_the_answer_is_complete() -> None:
    connections = 0
    heads = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            heads.append(await head(reader))
            writer.write(OK)

    async with serving(serve) as client:
        for _ in range(3):
            response = await client.request("GET", "/x?y=z", {"User-Agent": "test"})
            assert (response.status, response.body, response.headers["x-a"]) == (200, b"ok", "1, 2")
    assert connections == 1
    assert heads[0].startswith("GET /base/x?y=z HTTP/1.1\r\nHost: 127.0.0.1:")
    assert "User-Agent: test\r\n" in heads[0]


async def test_a_body_is_sent_with_its_length() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        text = await head(reader)
        length = int(text.lower().partition("content-length: ")[2].partition("\r\n")[0])
        body = await reader.readexactly(length)
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%b" % (length, body))

    async with serving(serve) as client:
        response = await client.request("POST", "/", {}, b"hello")
        assert (response.status, response.body) == (201, b"hello")
    async with serving(serve) as client:
        assert (await client.request("POST", "/", {})).body == b""


async def test_a_get_on_a_connection_that_the_server_just_closed_is_sent_again_and_a_post_is_not() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(OK)
        await head(reader)  # reads the second request and closes without an answer

    async with serving(serve) as client:
        await client.request("GET", "/", {})
        assert (await client.request("GET", "/", {})).status == 200
        with pytest.raises(ConnectionFailed):
            await client.request("POST", "/", {})
        assert (await client.request("POST", "/", {})).status == 200


async def test_a_kept_connection_with_an_unread_end_is_not_used() -> None:
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while True:
            await head(reader)
            writer.write(OK)

    async with serving(serve) as client:
        await client.request("POST", "/", {})
        writers[0].get_extra_info("socket").shutdown(socket.SHUT_WR)  # the loop has no round to see it in
        assert (await client.request("POST", "/", {})).status == 200
    assert len(writers) == 2


async def test_connection_close_is_honoured() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await head(reader)
        writer.write(OK.replace(b"X-A: 1", b"Connection: close"))

    async with serving(serve) as client:
        for _ in range(2):
            assert (await client.request("POST", "/", {})).status == 200
    assert connections == 2


async def test_no_more_connections_than_the_limit_and_all_requests_are_served() -> None:
    busy = most = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal busy, most
        while True:
            await head(reader)
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0.005)
            busy -= 1
            writer.write(OK)

    async with serving(serve, limit=3) as client:
        responses = await asyncio.gather(*(client.request("GET", "/", {}) for _ in range(20)))
    assert len(responses) == 20
    assert most == 3


async def test_requests_that_take_less_time_than_a_handshake_share_connections() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            await head(reader)
            writer.write(OK)

    async def dial() -> tuple[str, int]:
        await asyncio.sleep(0.02)
        return client.host, client.port

    async with serving(serve) as client:
        client._dial = dial
        answers = await asyncio.gather(*(client.request("GET", "/", {}) for _ in range(30)))
        assert [each.status for each in answers] == [200] * 30
    assert connections < 5


async def test_requests_that_take_long_get_a_connection_each() -> None:
    together = asyncio.Barrier(30)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        await together.wait()
        writer.write(OK)

    async with serving(serve) as client, asyncio.timeout(30):
        answers = await asyncio.gather(*(client.request("GET", "/", {}) for _ in range(30)))
        assert [each.status for each in answers] == [200] * 30


async def test_a_handshake_that_hangs_holds_up_others_briefly() -> None:
    hanging = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(OK)

    async def dial() -> tuple[str, int]:
        nonlocal hanging
        hanging += 1
        if hanging == 1:
            await asyncio.Event().wait()
        return client.host, client.port

    async with serving(serve) as client, asyncio.timeout(30):
        client._dial = dial
        first = asyncio.create_task(client.request("GET", "/", {}))
        await asyncio.sleep(0)
        answers = await asyncio.gather(*(client.request("GET", "/", {}) for _ in range(10)))
        assert [each.status for each in answers] == [200] * 10
        first.cancel()


async def test_a_cancelled_request_closes_its_connection_and_frees_its_place() -> None:
    closed = asyncio.Event()
    asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if "slow" not in await head(reader):
            writer.write(OK)
            return
        asked.set()
        assert await reader.read() == b""
        closed.set()

    async with serving(serve, limit=1) as client:
        slow = asyncio.create_task(client.request("GET", "/slow", {}))
        await asked.wait()
        waiting = [asyncio.create_task(client.request("GET", "/", {})) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # one that waits in line
        slow.cancel()
        await asyncio.wait_for(closed.wait(), 30)
        assert (await asyncio.wait_for(waiting[1], 30)).status == 200
        assert (await client.request("GET", "/", {})).status == 200


async def test_a_silent_server_is_given_up_after_the_timeout() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        await reader.read()

    async with serving(serve) as client:
        with pytest.raises(TimeoutError):
            await client.request("GET", "/", {}, within=0.05)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal",
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n",
    ],
)
async def test_half_an_answer_is_none(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(answer)

    async with serving(serve) as client:
        with pytest.raises(ConnectionFailed):
            await asyncio.wait_for(client.request("POST", "/", {}), 30)


async def test_an_answer_that_ends_with_its_connection_is_complete_and_100_continue_is_skipped() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it")

    async with serving(serve) as client:
        response = await client.request("GET", "/", {})
        assert (response.status, response.body) == (200, b"all of it")


async def test_a_stream_delivers_pieces_as_they_come_and_ends() -> None:
    go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await go_on.wait()
        writer.write(b"3\r\ntwo\r\n0\r\n\r\n")

    async with serving(serve) as client:
        stream = await client.stream("GET", "/", {})
        pieces = aiter(stream)
        assert await anext(pieces) == b"one"
        go_on.set()
        assert [piece async for piece in pieces] == [b"two"]
        stream.close()


async def test_a_stream_that_breaks_says_so_and_a_closed_one_is_seen_by_the_server() -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        text = await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        if "break" not in text:
            assert await reader.read() == b""
            gone.set()

    async with serving(serve) as client:
        stream = await client.stream("GET", "/break", {})
        with pytest.raises(ConnectionFailed):
            assert [piece async for piece in stream]
        stream = await client.stream("GET", "/", {})
        stream.close()
        await asyncio.wait_for(gone.wait(), 30)


async def test_a_slow_reader_of_a_stream_slows_the_server_down() -> None:
    written = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        for _ in range(1000):
            writer.write(chunk)
            await writer.drain()
            written += 1
        writer.write(b"0\r\n\r\n")

    async with serving(serve) as client:
        stream = await client.stream("GET", "/", {})
        before = -1
        while before != written:
            before = written
            await asyncio.sleep(0.1)
        assert written < 900
        assert len(await stream.read()) == 1000 * 0x10000
        stream.close()


async def test_a_refused_connection_is_a_failed_connection() -> None:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    client = HTTPClient(f"http://127.0.0.1:{port}")
    with pytest.raises(ConnectionFailed, match=f"cannot connect to 127.0.0.1:{port}"):
        await client.request("GET", "/", {})
    await client.close()
    with pytest.raises(ConnectionFailed, match="closed"):
        await client.request("GET", "/", {})


async def test_a_slot_is_not_lost_when_its_waiter_is_cancelled_in_the_round_in_which_its_turn_comes() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await head(reader):
            writer.write(OK)

    async with serving(serve, limit=1) as client:
        await client._acquire()
        waiting = asyncio.create_task(client._acquire())
        await asyncio.sleep(0)
        client._release()  # its turn has come
        waiting.cancel()  # and it goes away before it runs
        await asyncio.wait([waiting])
        assert (await client.request("GET", "/", {}, within=10)).status == 200


async def test_the_timeout_of_a_request_covers_waiting_for_a_slot() -> None:
    asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        asked.set()
        await reader.read()

    async with serving(serve, limit=1) as client:
        first = asyncio.create_task(client.request("GET", "/", {}))
        await asked.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):  # raised by the request itself, long before this
                await client.request("GET", "/", {}, within=0.01)
        assert not first.done()
        first.cancel()
