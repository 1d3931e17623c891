"""New connections: whatever they say first, and however many there are."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pybernetes.cluster import certificates
from pybernetes.net import acceptor
from pybernetes.net.acceptor import securely
from pybernetes.net.http import HTTPServer, Request, Response
from pybernetes.net.tls import ServingTLS

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pki")
    certificates.ensure(folder, ["10.96.0.1"])
    return folder


def http_server() -> HTTPServer:
    async def answer(request: Request) -> Response:
        return Response(b"here")

    return HTTPServer(answer, lambda status, message: Response(message.encode(), status), max_body=1 << 20)


def serving_tls(pki: Path) -> ServingTLS:
    return ServingTLS(pki / "apiserver.crt", pki / "apiserver.key")


@asynccontextmanager
async def serving(pki: Path) -> AsyncIterator[tuple[int, ssl.SSLContext]]:
    http = http_server()
    server = await asyncio.get_running_loop().create_server(securely(http, serving_tls(pki)), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], ssl.create_default_context(cafile=str(pki / "ca.crt"))
    finally:
        server.close()
        await http.drain(0)


async def ask(port: int, context: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        writer.write(REQUEST)
        return (await reader.readuntil(b"here")).splitlines()[0]
    finally:
        writer.transport.abort()


async def scenario(pki: Path) -> None:
    async with serving(pki) as (port, context):
        answers = await asyncio.gather(*[ask(port, context) for _ in range(40)])
        assert set(answers) == {b"HTTP/1.1 200 OK"}
        loop = asyncio.get_running_loop()
        # A hello that comes byte by byte, and behind its end at once a request.
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setblocking(False)
            with pytest.raises(ssl.SSLWantReadError):
                client.do_handshake()
            for byte in outgoing.read():
                await loop.sock_sendall(connection, bytes([byte]))
                await asyncio.sleep(0)
            while True:
                incoming.write(await loop.sock_recv(connection, 65536))
                try:
                    client.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    pass
            client.write(REQUEST)
            await loop.sock_sendall(connection, outgoing.read())
            answer = b""
            while b"here" not in answer:
                incoming.write(await loop.sock_recv(connection, 65536))
                try:
                    answer += client.read()
                except ssl.SSLWantReadError:
                    continue
        # Invalid hellos are closed, and no other client is affected.
        for nonsense in (REQUEST, b"\x16\x03\x01" + b"\xff" * 200_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(nonsense)
            async with asyncio.timeout(30):
                with suppress(ConnectionError):
                    await reader.read()
            writer.close()
        # Who says nothing is sent away.
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(30):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()
        assert await ask(port, context) == b"HTTP/1.1 200 OK"


async def test_who_says_hello_to_a_server_that_stops_is_sent_away(pki: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "HANDSHAKE", 600.0)  # it is not for being slow
    http = http_server()
    server = await asyncio.get_running_loop().create_server(securely(http, serving_tls(pki)), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        http.draining = True
        writer.write(b"\x16")
        async with asyncio.timeout(30):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()


async def test_little_is_taken_of_a_connection_before_its_turn(pki: Path) -> None:
    http = http_server()
    http.hellos.ask = lambda who, go: None  # no turn ever comes
    made: list[Any] = []
    make = securely(http, serving_tls(pki))

    def noted() -> asyncio.Protocol:
        made.append(make())
        return made[-1]

    server = await asyncio.get_running_loop().create_server(noted, "127.0.0.1", 0)
    async with server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        writer.write(bytes(4 << 20))
        async with asyncio.timeout(30):
            while not made or made[0]._transport.is_reading():  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.001)
        assert len(made[0]._said) < 1 << 20
        writer.transport.abort()


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_connections_of_all_kinds(kind: str, pki: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import uvloop

    monkeypatch.setattr(acceptor, "HANDSHAKE", 0.5)
    factory = uvloop.new_event_loop if kind == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(scenario(pki))
