"""A client writes and closes at once: what it wrote arrives, through API server, kubelet and runtime.

The two hops before the runtime are those of the API server (to the kubelet, by TLS) and of the kubelet.
The clients' own close is as hard as can be: the connection is closed when the last byte is handed to the kernel.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cri.embedded.test_streaming import Machine, attach_url, exec_url, knock, serving
from waiting import wait_for

from pybernetes.apiserver.selfsigned import self_signed
from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded.streaming import StreamingServer
from pybernetes.net.http import Connection, HTTPServer
from pybernetes.net.messages import Request, Response
from pybernetes.net.streams import channels
from pybernetes.net.streams.channels import FORMS, STDIN
from pybernetes.net.streams.duplex import Dialed, Upgraded
from pybernetes.net.streams.remotecommand import StreamOptions, translate, wants_translation
from pybernetes.net.streams.spdy_session import Session
from pybernetes.net.streams.spdy_tunnel import PREFIX, Tunnel, pass_tunnel, tunneled
from pybernetes.net.streams.websocket import WebSocket, new_key
from pybernetes.net.upgrade import Target, pass_on

LARGE = 12 << 20  # more than the buffers of all sockets on the way hold
ALL = StreamOptions(stdin=True, stdout=True, stderr=False)


class Hops:
    """Passes requests on as API server and kubelet do; `url` is where the first of them serves a runtime's URL."""

    def __init__(self, pki: Path) -> None:
        certificate, key = self_signed(pki, "127.0.0.1")
        self._serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._serving.load_cert_chain(certificate, key)
        self._trusting = ssl.create_default_context(cafile=str(certificate))
        self._trusting.check_hostname = False
        self._ports: dict[str, int] = {}
        self._servers: list[tuple[asyncio.Server, HTTPServer]] = []
        self._runtime = 0

    async def start(self) -> None:
        for name, handler, tls in (("kubelet", self._kubelet, self._serving), ("apiserver", self._apiserver, None)):
            http = HTTPServer(handler, lambda code, text: Response(text.encode(), code), max_body=1000)
            server = await asyncio.get_running_loop().create_server(http, "127.0.0.1", 0, ssl=tls)
            self._ports[name] = server.sockets[0].getsockname()[1]
            self._servers.append((server, http))

    async def stop(self) -> None:
        for server, http in self._servers:
            server.close()
            await http.drain(1.0)

    def url(self, runtime: str) -> str:
        self._runtime = int(runtime.split(":")[2].split("/")[0])
        return runtime.replace(f":{self._runtime}/", f":{self._ports['apiserver']}/")

    async def _apiserver(self, request: Request) -> Response | None:
        return await pass_on(request, Target("127.0.0.1", self._ports["kubelet"], request.path, self._trusting))

    async def _kubelet(self, request: Request) -> Response | None:
        target = Target("127.0.0.1", self._runtime, request.path)
        if tunneled(request):
            return await pass_tunnel(request, target)
        if wants_translation(request):
            return await translate(request, target, ALL)
        return await pass_on(request, target)


@contextlib.asynccontextmanager
async def chain(pki: Path) -> AsyncIterator[tuple[Machine, StreamingServer, Hops]]:
    async with serving() as (machine, server):
        hops = Hops(pki)
        await hops.start()
        try:
            yield machine, server, hops
        finally:
            await hops.stop()


async def _websocket(url: str, protocol: str) -> tuple[Dialed, WebSocket]:
    lines = [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", new_key())]
    connection, head = await knock(url, [*lines, ("Sec-WebSocket-Protocol", protocol)])
    assert head.status == 101, head.raw
    return connection, WebSocket(connection, server=False)


async def _spdy(url: str, protocol: str) -> tuple[Dialed, Session]:
    connection, head = await knock(url, [("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", protocol)], "POST")
    assert head.status == 101, head.raw
    return connection, Session(connection, server=False)


async def handed_over(connection: Dialed) -> None:
    """Wait until the kernel has all that was written; it sends that even if the connection is closed now."""
    transport = connection._writer.transport
    await wait_for(lambda: not transport.get_write_buffer_size(), "everything written is with the kernel", within=60)


async def write_and_close(url: str, protocol: str, data: bytes) -> None:
    """Sends stdin and closes. `spdy` is the only protocol that is not WebSocket."""
    async with asyncio.timeout(60):
        if protocol == "spdy":
            connection, session = await _spdy(url, "v4.channel.k8s.io")
            running = asyncio.create_task(session.run())
            streams = {kind: await session.open({"streamType": kind}) for kind in ("error", "stdin", "stdout")}
            reading = asyncio.create_task(_drop(streams["stdout"].read))
            for start in range(0, len(data), 1 << 16):
                streams["stdin"].write(data[start : start + (1 << 16)])
                await streams["stdin"].drain()
            session.close()
            running.cancel()
        else:
            connection, made = await _websocket(url, protocol)
            reading = asyncio.create_task(_drop(made.receive))
            for start in range(0, len(data), 1 << 16):
                made.send(channels.encode(FORMS[protocol], STDIN, data[start : start + (1 << 16)]))
                await made.drain()
            made.close()
        await handed_over(connection)
        reading.cancel()
        connection.abort()


async def _drop(read: Callable[[], Awaitable[object]]) -> None:
    """Reads all data, so that the other side is not held up while we write."""
    while await read():
        pass


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


async def _has(path: Path, data: bytes) -> None:
    await wait_for(lambda: _size(path) >= len(data), f"{len(data)} bytes in {path.name}", within=60)
    assert await asyncio.to_thread(path.read_bytes) == data


PROTOCOLS = ["spdy", "v4.channel.k8s.io", "v5.channel.k8s.io"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_command_gets_what_its_client_wrote_before_it_closed(tmp_path: Path, protocol: str) -> None:
    async with chain(tmp_path) as (_, server, hops):
        for number in range(5):
            path = tmp_path / f"x{number}"
            url = await exec_url(server, "sh", "-c", f"cat > {path}", stdin=True, stdout=True)
            await write_and_close(hops.url(url), protocol, b"a" * 1000)
            await _has(path, b"a" * 1000)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("command", "size"), [("cat >", LARGE), ("tee", 1 << 16)])
async def test_a_slow_command_gets_all_of_it_and_may_write_meanwhile(
    tmp_path: Path, protocol: str, command: str, size: int
) -> None:
    data = os.urandom(1 << 16) * (size >> 16)
    os.mkfifo(tmp_path / "go")
    async with chain(tmp_path) as (_, server, hops):
        script = f"cat {tmp_path}/go; {command} {tmp_path}/x; echo >> {tmp_path}/ended"
        url = await exec_url(server, "sh", "-c", script, stdin=True, stdout=True)
        writing = asyncio.create_task(write_and_close(hops.url(url), protocol, data))
        await asyncio.to_thread((tmp_path / "go").write_bytes, b"")
        await _has(tmp_path / "x", data)
        await writing
        await wait_for(lambda: (tmp_path / "ended").exists(), "the end of stdin")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_command_that_never_reads_is_ended_by_its_output(tmp_path: Path, protocol: str) -> None:
    async with chain(tmp_path) as (machine, server, hops):
        url = await exec_url(server, "sh", "-c", "exec <&-; exec yes", stdin=True, stdout=True)
        await write_and_close(hops.url(url), protocol, b"a" * 1000)
        await wait_for(lambda: bool(machine.commands) and machine.commands[0].process.poll() is not None, "its end")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_attached_process_gets_what_its_client_wrote_before_it_closed(tmp_path: Path, protocol: str) -> None:
    async with chain(tmp_path) as (machine, server, hops):
        machine.once = True
        await write_and_close(hops.url(await attach_url(server, stdin=True, stdout=True)), protocol, b"b" * 1000)
        await asyncio.wait_for(machine.closed_stdin.wait(), 30)
        assert os.read(machine.stdin, 2000) == b"b" * 1000


@contextlib.asynccontextmanager
async def sink(go: asyncio.Event, *, echo: bool = False) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """A server that reads everything when `go` is set, and perhaps sends it back; its port and what it has read."""
    found: dict[str, Any] = {"data": bytearray(), "ended": False}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await go.wait()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                found["data"] += data
                if echo and not writer.is_closing():
                    writer.write(data)
                    await writer.drain()
        found["ended"] = True
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], found
    finally:
        server.close()


async def _forward_and_close(url: str, protocol: str, port: int, data: bytes) -> None:
    async with asyncio.timeout(60):
        if protocol == "v4.channel.k8s.io":
            connection, made = await _websocket(url, protocol)
            for start in range(0, len(data), 1 << 16):
                made.send(channels.encode(FORMS[protocol], 0, data[start : start + (1 << 16)]))
                await made.drain()
            made.close()
        else:
            if protocol == "spdy":
                connection, session = await _spdy(url, "portforward.k8s.io")
            else:
                connection, made = await _websocket(url, f"{PREFIX}portforward.k8s.io")
                session = Session(Tunnel(made), server=False)
            running = asyncio.create_task(session.run())
            headers = {"port": str(port), "requestID": "0"}
            await session.open({**headers, "streamType": "error"})
            stream = await session.open({**headers, "streamType": "data"})
            for start in range(0, len(data), 1 << 16):
                stream.write(data[start : start + (1 << 16)])
                await stream.drain()
            session.close()
            running.cancel()
        await handed_over(connection)
        connection.abort()


@pytest.mark.parametrize("size", [1000, LARGE])
@pytest.mark.parametrize("protocol", ["spdy", "v4.channel.k8s.io", "tunnel"])
async def test_a_forwarded_port_gets_what_its_client_wrote_before_it_closed(
    tmp_path: Path, protocol: str, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    data = os.urandom(1000) * (size // 1000)
    go = asyncio.Event()
    async with chain(tmp_path) as (_, server, hops), sink(go) as (port, found):
        answer = await server.port_forward(cri.PortForwardRequest(pod_sandbox_id="sandbox", port=[port]))
        writing = asyncio.create_task(_forward_and_close(hops.url(str(answer.url)), protocol, port, data))
        if size < LARGE:
            await writing
        go.set()
        await wait_for(lambda: found["ended"], "the end", within=60)
        await writing
        assert found["data"] == data
    assert not caplog.records


async def _output(url: str, protocol: str) -> None:
    """Reads a command's output until the server closes."""
    async with asyncio.timeout(60):
        if protocol == "spdy":
            connection, session = await _spdy(url, "v4.channel.k8s.io")
            running = asyncio.create_task(session.run())
            streams = {kind: await session.open({"streamType": kind}) for kind in ("error", "stdout")}
            assert await streams["stdout"].read_all() == b"hi\n"
            await running
        else:
            connection, made = await _websocket(url, protocol)
            while await made.receive() is not None:
                pass
        connection.abort()


def _connections() -> int:
    return sum(isinstance(each, (Connection, Upgraded, Session, Dialed)) for each in gc.get_objects())


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_connection_that_has_ended_is_freed_without_the_garbage_collector(
    tmp_path: Path, protocol: str
) -> None:
    async with chain(tmp_path) as (_, server, hops):
        gc.collect()
        gc.disable()  # a component's collector looks at old objects once in millions of allocations
        try:
            for _ in range(3):
                await _output(hops.url(await exec_url(server, "echo", "hi", stdout=True)), protocol)
            await wait_for(lambda: _connections() == 0, "no connection is left", within=10)
        finally:
            gc.enable()
