"""Requests through the proxy to real servers: what arrives there, and what comes back."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from ingress.proxy import echo, ingress, proxy, read_body

WEB = ("/", "Prefix", "web")


async def test_a_request_goes_to_every_endpoint_by_turns_over_connections_that_are_kept() -> None:
    async with proxy() as p:
        p.put(ingress("web", WEB, host="web.example"))
        await p.serve("web", echo("one"), echo("two"))
        client = await p.connect()
        names = [(await client.ask("/", "web.example")).name for _ in range(6)]
        assert sorted(names) == ["one"] * 3 + ["two"] * 3
        assert p.pool.idle == 2
        assert p.metrics.requests.value("default/web", "2xx") == 6


async def test_the_endpoint_sees_path_query_body_and_who_the_client_is() -> None:
    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", echo("one"))
        headers = ("X-Forwarded-For: 6.6.6.6", "X-Real-IP: 6.6.6.6", "X-Custom: yes", "x_forwarded_proto: https")
        answer = await p.ask("/a/b?c=d%20e", "web.example:81", "POST", headers=headers, body=b"hello")
        lines = answer.sent.split("\r\n")
        assert lines[0] == "POST /a/b?c=d%20e HTTP/1.1"
        assert {
            "Host: web.example:81",
            "X-Forwarded-For: 127.0.0.1",
            "X-Original-Forwarded-For: 6.6.6.6",
            "X-Real-IP: 127.0.0.1",
            "X-Forwarded-Host: web.example:81",
            "X-Forwarded-Proto: http",
            f"X-Forwarded-Port: {p.port}",
            "X-Custom: yes",
            "Content-Length: 5",
        } <= set(lines)
        assert answer.sent.count("6.6.6.6") == 1
        assert "x_forwarded_proto" not in answer.sent
        assert answer.sent.endswith("\r\n\r\n|hello")


async def test_headers_of_the_connection_stay_behind() -> None:
    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", echo("one"))
        headers = ("Connection: x-secret, X-Forwarded-For", "X-Secret: 1", "Keep-Alive: 5", "TE: gzip", "Other: 1")
        answer = await p.ask(headers=headers)
        assert "Other: 1" in answer.sent
        assert "X-Forwarded-For: 127.0.0.1" in answer.sent
        for name in ("X-Secret", "Keep-Alive", "TE:", "Connection:"):
            assert name not in answer.sent


async def test_hosts_and_paths_that_no_rule_fits_are_not_found_and_a_service_without_endpoints_says_so() -> None:
    async with proxy() as p:
        p.put(ingress("web", ("/api", "Prefix", "web"), host="web.example"), ingress("none", WEB, host="none.example"))
        await p.serve("web", echo("one"))
        assert (await p.ask("/api", "web.example")).status == 200
        assert (await p.ask("/", "web.example")).status == 404
        assert (await p.ask("/api", "other.example")).status == 404
        p.point("web", [])
        answer = await p.ask("/", "none.example")
        assert answer.status == 503
        assert b"Service default/web has no ready endpoint for port 80" in answer.body


async def test_head_and_answers_without_a_body_leave_the_connection_usable() -> None:
    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (b"HTTP/1.1 204 No Content\r\n\r\n", b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n') * 2:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)

    async with proxy() as p:
        p.put(ingress("web", WEB), ingress("quiet", ("/quiet", "Prefix", "quiet")))
        await p.serve("web", echo("one"))
        await p.serve("quiet", quiet)
        client = await p.connect()
        head = await client.ask(method="HEAD")
        assert (head.status, head.headers["x-from"]) == (200, "one")
        assert int(head.headers["content-length"]) > 0
        assert (await client.ask("/quiet")).status == 204
        answer = await client.ask("/quiet")
        assert (answer.status, answer.headers["etag"]) == (304, '"x"')
        assert (await client.ask()).name == "one"


async def test_bodies_stream_both_ways_before_they_are_complete() -> None:
    async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while size := int(await reader.readline(), 16):
            piece = (await reader.readexactly(size + 2))[:-2]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece.upper()))
        writer.write(b"0\r\n\r\n")

    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", upper)
        client = await p.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        async with asyncio.timeout(20):
            for number, word in enumerate((b"one", b"two", b"three")):
                await client.send(b"%x\r\n%b\r\n" % (len(word), word))
                if not number:
                    await client.reader.readuntil(b"\r\n\r\n")
                assert int(await client.reader.readline(), 16) == len(word)
                assert (await client.reader.readexactly(len(word) + 2))[:-2] == word.upper()
            await client.send(b"0\r\n\r\n")
            assert await client.reader.readexactly(5) == b"0\r\n\r\n"


async def test_large_bodies_pass_whole_and_a_slow_reader_holds_up_the_endpoint_not_the_memory() -> None:
    size, written = 24 << 20, 0

    async def large(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        head = await reader.readuntil(b"\r\n\r\n")
        body = await read_body(reader, head)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        with contextlib.suppress(ConnectionError):
            for _ in range(size >> 16):
                writer.write(body[: 1 << 16])
                await writer.drain()
                written += 1 << 16

    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", large)
        client = await p.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        asking = asyncio.create_task(client.ask(method="POST", body=b"x" * (3 << 20)))
        last = -1
        while written != last or not written:  # until nothing moves any more
            last = written
            await asyncio.sleep(0.1)
        assert written < size - (4 << 20)
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert (await asking).body == b"x" * size


async def test_a_refused_connection_is_tried_at_the_next_endpoint() -> None:
    async with proxy() as p:
        p.put(ingress("web", WEB))
        ports = await p.serve("web", echo("gone"), echo("there"))
        p.servers[0].close()
        await p.servers[0].wait_closed()
        names = [(await p.ask("/", method="POST", body=b"x")).name for _ in range(4)]
        assert names == ["there"] * 4
        assert p.metrics.retries.value("default/web") >= 1
        p.point("web", [(ports[0], {"ready": True})])
        assert (await p.ask()).status == 502


async def test_a_kept_connection_that_the_endpoint_has_closed_is_replaced() -> None:
    served = 0

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Says that it keeps the connection, and closes it at the next request."""
        nonlocal served
        await reader.readuntil(b"\r\n\r\n")
        served += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        with contextlib.suppress(asyncio.IncompleteReadError):
            await reader.readexactly(1)
        writer.close()

    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", once)
        assert [(await p.ask()).body for _ in range(4)] == [b"ok"] * 4
        assert served == 4
        assert (await p.ask(method="POST", body=b"x")).status == 502  # it may have been acted upon


async def test_terminating_endpoints_get_no_new_request_and_finish_theirs() -> None:
    asked, release = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await release.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")

    async with proxy() as p:
        p.put(ingress("web", WEB))
        old, new = await p.listen(slow), await p.listen(echo("new"))
        p.point("web", [(old, {"ready": True})])
        under_way = asyncio.create_task(p.ask())
        await asked.wait()
        p.point("web", [(old, {"ready": False, "serving": True, "terminating": True}), (new, {"ready": True})])
        assert [(await p.ask()).name for _ in range(4)] == ["new"] * 4
        release.set()
        assert (await under_way).body == b"slow"
        p.point("web", [(new, {"ready": False, "serving": True, "terminating": True})])
        assert (await p.ask()).name == "new"  # better than none


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    ],
)
async def test_an_endpoint_that_answers_nonsense_is_a_bad_gateway(answer: bytes) -> None:
    async def bad(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", bad)
        client = await p.connect()
        assert (await client.ask(method="POST", body=b"x")).status == 502
        await p.serve("web", echo("good"))
        assert (await client.ask()).name == "good"


async def test_an_answer_that_is_cut_off_is_cut_off_for_the_client_too() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()

    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", cut)
        client = await p.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        got = await client.ended()
        assert b"hello" in got
        assert b"\r\n0\r\n" not in got


async def test_timeouts_of_an_ingress_are_answered() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with proxy() as p:
        p.put(ingress("web", WEB, annotations={"proxy-read-timeout": "1"}))
        await p.serve("web", silent)
        assert (await p.ask()).status == 504


async def test_a_body_longer_than_allowed_is_refused_also_if_it_does_not_say_so_first() -> None:
    async with proxy() as p:
        p.put(ingress("web", WEB, annotations={"proxy-body-size": "1k"}))
        await p.serve("web", echo("one"))
        assert (await p.ask(method="POST", body=b"x" * 1024)).status == 200
        assert (await p.ask(method="POST", body=b"x" * 1025)).status == 413
        for pieces in (1, 100):
            client = await p.connect()
            await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                for _ in range(pieces):
                    await client.send(b"800\r\n" + b"x" * 0x800 + b"\r\n")
                await client.send(b"0\r\n\r\n")
            assert (await client.answer()).status == 413


async def test_expect_100_continue_is_answered_before_the_body_comes() -> None:
    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", echo("one"))
        client = await p.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert (await client.answer()).status == 100
        await client.send(b"hello")
        answer = await client.answer()
        assert answer.sent.endswith("|hello")
        assert "Expect" not in answer.sent


async def test_upgraded_connections_pass_bytes_both_ways_until_one_side_ends() -> None:
    async def websocket(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"Upgrade: websocket" in head
        assert b"Sec-WebSocket-Key: abc" in head
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst")
        while data := await reader.read(1000):
            writer.write(data.upper())
        writer.close()

    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", websocket)
        client = await p.connect()
        headers = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc"
        await client.send(f"GET / HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\nearly".encode())
        answer = await client.answer()
        assert (answer.status, answer.headers["upgrade"]) == (101, "websocket")
        async with asyncio.timeout(20):
            got = await client.reader.readexactly(10)
            assert sorted([got[:5], got[5:]]) == [b"EARLY", b"first"]
            await client.send(b"ping")
            assert await client.reader.readexactly(4) == b"PING"
        client.writer.write_eof()
        assert await client.ended() == b""


async def test_an_upgrade_that_is_refused_leaves_http_going_on() -> None:
    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", echo("one"))
        client = await p.connect()
        answer = await client.ask(headers=("Connection: Upgrade", "Upgrade: websocket"))
        assert (answer.status, answer.name) == (200, "one")
        assert (await client.ask("/next")).sent.startswith("GET /next ")
        h2c = await client.ask(headers=("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: x"))
        assert "Upgrade" not in h2c.sent
        assert (await client.ask("/after")).sent.startswith("GET /after ")


async def test_rewrites_redirects_and_restrictions() -> None:
    async with proxy() as p:
        rewrite = {"rewrite-target": "/$2"}
        p.put(
            ingress("api", ("/api(/|$)(.*)", "ImplementationSpecific", "web"), host="a.example", annotations=rewrite),
            ingress("moved", WEB, host="b.example", annotations={"permanent-redirect": "https://c.example/x"}),
            ingress("root", WEB, host="c.example", annotations={"app-root": "/app"}),
            ingress("closed", WEB, host="d.example", annotations={"whitelist-source-range": "192.0.2.0/24"}),
            ingress("broken", WEB, host="e.example", annotations={"whitelist-source-range": "nonsense"}),
            ingress("vhost", WEB, host="f.example", annotations={"upstream-vhost": "inner.example"}),
        )
        await p.serve("web", echo("one"))
        assert (await p.ask("/api/v1/x?y=1", "a.example")).sent.startswith("GET /v1/x?y=1 ")
        assert (await p.ask("/api", "a.example")).sent.startswith("GET / ")
        assert (await p.ask("/api/a%20b%2Fc", "a.example")).sent.startswith("GET /a%20b/c ")
        moved = await p.ask("/", "b.example")
        assert (moved.status, moved.headers["location"]) == (301, "https://c.example/x")
        root = await p.ask("/", "c.example")
        assert (root.status, root.headers["location"]) == (302, "/app")
        assert (await p.ask("/app", "c.example")).status == 200
        assert (await p.ask("/", "d.example")).status == 403
        assert (await p.ask("/", "e.example")).status == 403  # no client rather than all
        assert "Host: inner.example\r\n" in (await p.ask("/", "f.example")).sent


async def test_a_restriction_by_path_cannot_be_walked_around() -> None:
    async with proxy() as p:
        p.put(
            ingress("open", ("/", "Prefix", "web")),
            ingress("closed", ("/admin", "Prefix", "web"), annotations={"whitelist-source-range": "192.0.2.0/24"}),
        )
        await p.serve("web", echo("one"))
        for path in ("/admin", "/admin/x", "//admin", "/./admin", "/x/../admin", "/%61dmin", "/x/%2e%2e/admin"):
            assert (await p.ask(path)).status == 403, path
        assert (await p.ask("/../x")).status == 400
        assert (await p.ask("/administrator")).status == 200


async def test_http_1_0_clients_get_plain_bodies_and_a_closed_connection() -> None:
    async def chunked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")

    async with proxy() as p:
        p.put(ingress("web", WEB))
        await p.serve("web", chunked)
        client = await p.connect()
        await client.send(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")
        got = await client.ended()
        assert got.endswith(b"\r\n\r\nhello")
        assert b"chunked" not in got
