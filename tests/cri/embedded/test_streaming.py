"""The runtime's streaming server with containers that are processes of this machine; clients by WebSocket and SPDY."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import socket
import subprocess
import termios
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded.streaming import LIFETIME, MOST, Attachment, StreamingServer
from pybernetes.cri.errors import CRIError
from pybernetes.net.streams import channels
from pybernetes.net.streams.channels import ERROR, FORMS, RESIZE, STDERR, STDIN, STDOUT
from pybernetes.net.streams.duplex import Dialed, Head, dial, request_head
from pybernetes.net.streams.spdy_session import Session, Stream
from pybernetes.net.streams.websocket import WebSocket, new_key

V5 = FORMS["v5.channel.k8s.io"]


class Process:
    def __init__(self, process: subprocess.Popen[bytes], terminal: int = -1) -> None:
        self.process = process
        self.terminal = terminal

    async def wait(self) -> int:
        code = await asyncio.to_thread(self.process.wait)
        return 128 - code if code < 0 else code


def _at_its_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Machine:
    """Containers `box`, whose first process may be attached to; its output is copied by a thread for each stream."""

    def __init__(self) -> None:
        self.once = False
        self.closed_stdin = asyncio.Event()
        self.commands: list[Process] = []
        self.stdin, self.feeding = os.pipe()
        self.outputs: dict[str, int] = {}

    def check_running(self, container_id: str) -> None:
        if container_id != "box":
            raise CRIError("NotFound", f'container "{container_id}" not found')

    def network(self, sandbox_id: str) -> str:
        if sandbox_id != "sandbox":
            raise CRIError("NotFound", f'sandbox "{sandbox_id}" not found')
        return "/proc/self/ns/net"

    async def execute(self, container_id: str, command: Sequence[str], streams: Sequence[int], tty: bool) -> Process:
        master, given = -1, tuple(streams)
        if tty:
            master, slave = pty.openpty()
            given = (slave, slave, slave)
        try:
            made = subprocess.Popen(  # noqa: ASYNC220
                command,
                stdin=given[0],
                stdout=given[1],
                stderr=given[2],
                start_new_session=True,
                preexec_fn=_at_its_terminal if tty else None,
            )
        except OSError as error:
            if tty:
                os.close(master)
            raise CRIError("Unknown", f"failed to exec in container: {error}") from None
        finally:
            if tty:
                os.close(slave)
        self.commands.append(Process(made, master))
        return self.commands[-1]

    async def attach(self, container_id: str, stdout: int, stderr: int) -> Attachment:
        self.outputs = {
            "stdout": os.dup(stdout) if stdout >= 0 else -1,
            "stderr": os.dup(stderr) if stderr >= 0 else -1,
        }
        return Attachment(os.dup(self.feeding), -1, self.once)

    async def close_stdin(self, container_id: str) -> None:
        self.closed_stdin.set()

    def end(self) -> None:
        for each in self.outputs.values():
            if each >= 0:
                os.close(each)
        self.outputs = {}


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[tuple[Machine, StreamingServer]]:
    machine = Machine()
    server = StreamingServer(machine)
    await server.start()
    try:
        async with asyncio.timeout(60):
            yield machine, server
    finally:
        machine.end()
        await server.stop()
        for each in machine.commands:
            if each.process.poll() is None:
                each.process.kill()
            each.process.wait()
        os.close(machine.stdin)
        os.close(machine.feeding)


async def knock(url: str, headers: list[tuple[str, str]], method: str = "GET") -> tuple[Dialed, Head]:
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    connection = await dial(parts.hostname, parts.port)
    lines = [("Host", parts.netloc), ("Connection", "Upgrade"), *headers]
    return connection, await connection.request(request_head(method, parts.path, lines))


@contextlib.asynccontextmanager
async def websocket(url: str, protocol: str = "v5.channel.k8s.io") -> AsyncIterator[WebSocket]:
    lines = [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", new_key())]
    connection, head = await knock(url, [*lines, ("Sec-WebSocket-Protocol", protocol)])
    assert head.status == 101, head.raw
    made = WebSocket(connection, server=False)
    try:
        yield made
    finally:
        made.close()
        connection.abort()


async def collected(made: WebSocket) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while (message := await made.receive()) is not None:
        channel, data = channels.decode(V5, message[1])
        found[channel] = found.get(channel, b"") + (data or b"")
    return found


@contextlib.asynccontextmanager
async def spdy(url: str, protocol: str = "v4.channel.k8s.io") -> AsyncIterator[Session]:
    connection, head = await knock(url, [("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", protocol)], "POST")
    assert head.status == 101, head.raw
    session = Session(connection, server=False)
    running = asyncio.create_task(session.run())
    try:
        yield session
    finally:
        session.close()
        running.cancel()
        connection.abort()


async def exec_url(server: StreamingServer, *command: str, **flags: Any) -> str:
    answer = await server.exec(cri.ExecRequest(container_id="box", cmd=command, **flags))
    return str(answer.url)


async def attach_url(server: StreamingServer, **flags: Any) -> str:
    answer = await server.attach(cri.AttachRequest(container_id="box", **flags))
    return str(answer.url)


async def until(made: WebSocket, channel: int, text: bytes) -> None:
    """Waits until a channel has said it."""
    found = b""
    while text not in found:
        message = await made.receive()
        assert message is not None, found
        said, data = channels.decode(V5, message[1])
        if said == channel:
            found += data or b""


# -- exec


async def test_exec_by_websocket_has_input_output_errors_and_an_exit_code() -> None:
    async with serving() as (_, server):
        url = await exec_url(server, "sh", "-c", "sort; echo bad >&2; exit 7", stdin=True, stdout=True, stderr=True)
        async with websocket(url) as made:
            made.send(channels.encode(V5, STDIN, b"b\na\n"))
            made.send(channels.encode_close(STDIN))
            found = await collected(made)
    assert (found[STDOUT], found[STDERR]) == (b"a\nb\n", b"bad\n")
    status = json.loads(found[ERROR])
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]
    assert status["message"].startswith("command terminated with non-zero exit code: error executing command [sh -c ")


async def test_exec_by_spdy_passes_a_megabyte_through() -> None:
    data = bytes(range(256)) * 4096
    async with serving() as (_, server), spdy(await exec_url(server, "cat", stdin=True, stdout=True)) as session:
        error = await session.open({"streamType": "error"})
        stdin = await session.open({"streamType": "stdin"})
        stdout = await session.open({"streamType": "stdout"})

        async def send() -> None:
            for at in range(0, len(data), 65536):
                stdin.write(data[at : at + 65536])
                await stdin.drain()
            stdin.finish()

        sending = asyncio.create_task(send())
        assert await stdout.read_all(len(data) + 1) == data
        assert json.loads(await error.read_all()) == {"metadata": {}, "status": "Success"}
        await sending


async def test_a_command_that_does_not_read_does_not_hold_up_its_client() -> None:
    async with serving() as (_, server):
        url = await exec_url(server, "sh", "-c", "exec <&-; echo closed; sleep 0.2; echo done", stdin=True, stdout=True)
        async with websocket(url) as made:
            await until(made, STDOUT, b"closed\n")
            for _ in range(40):
                made.send(channels.encode(V5, STDIN, bytes(65536)))
            found = await collected(made)
    assert found[STDOUT] == b"done\n"
    assert json.loads(found[ERROR])["status"] == "Success"


async def test_a_terminal_has_the_clients_size_and_one_output() -> None:
    async with serving() as (_, server):
        script = "until stty size | grep -q '41 101'; do sleep 0.02; done; echo yes; echo also >&2"
        url = await exec_url(server, "sh", "-c", script, stdin=True, stdout=True, tty=True)
        async with websocket(url) as made:
            made.send(channels.encode(V5, RESIZE, b'{"Width":101,"Height":41}'))
            found = await collected(made)
    assert found[STDOUT] == b"yes\r\nalso\r\n"
    assert json.loads(found[ERROR])["status"] == "Success"


async def test_who_leaves_a_terminal_hangs_up() -> None:
    async with serving() as (machine, server):
        url = await exec_url(server, "sh", "-c", "echo here; sleep 1000", stdin=True, stdout=True, tty=True)
        async with websocket(url) as made:
            await until(made, STDOUT, b"here")
        assert await machine.commands[0].wait() == 128 + 1


async def test_a_command_that_cannot_run_is_an_error() -> None:
    async with serving() as (_, server), websocket(await exec_url(server, "/no/such", stdout=True)) as made:
        status = json.loads((await collected(made))[ERROR])
    assert status["reason"] == "InternalError"
    assert status["message"].startswith("Internal error occurred: error executing command in container: rpc error: ")


async def test_descriptors_are_all_closed_afterwards() -> None:
    async with serving() as (_, server):

        async def once(tty: bool) -> None:
            url = await exec_url(server, "cat", stdin=True, stdout=True, stderr=not tty, tty=tty)
            async with websocket(url) as made:
                made.send(channels.encode(V5, STDIN, b"x\n"))
                await until(made, STDOUT, b"x")
                made.send(channels.encode(V5, STDIN, b"\x04")) if tty else made.send(channels.encode_close(STDIN))
                await collected(made)

        await once(True)
        await once(False)
        before = len(os.listdir("/proc/self/fd"))
        for tty in (True, False, True, False):
            await once(tty)
        async with asyncio.timeout(30):
            while len(os.listdir("/proc/self/fd")) > before:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


# -- attach


async def test_attach_talks_to_the_process_until_it_ends() -> None:
    async with serving() as (machine, server):
        async with websocket(await attach_url(server, stdin=True, stdout=True, stderr=True)) as made:
            made.send(channels.encode(V5, STDIN, b"hello\n"))
            assert await asyncio.to_thread(os.read, machine.stdin, 100) == b"hello\n"
            os.write(machine.outputs["stdout"], b"one")
            os.write(machine.outputs["stderr"], b"two")
            machine.end()
            found = await collected(made)
        assert (found[STDOUT], found[STDERR]) == (b"one", b"two")
        assert json.loads(found[ERROR])["status"] == "Success"
        assert not machine.closed_stdin.is_set()


async def test_stdin_once_ends_with_the_clients_and_output_goes_on() -> None:
    async with serving() as (machine, server):
        machine.once = True
        async with websocket(await attach_url(server, stdin=True, stdout=True)) as made:
            made.send(channels.encode_close(STDIN))
            await machine.closed_stdin.wait()
            os.write(machine.outputs["stdout"], b"still here")
            machine.end()
            assert (await collected(made))[STDOUT] == b"still here"


async def test_stdin_once_ends_when_the_client_goes() -> None:
    async with serving() as (machine, server):
        machine.once = True
        async with websocket(await attach_url(server, stdin=True, stdout=True)) as made:
            made.send(channels.encode(V5, STDIN, b"x"))
            assert await asyncio.to_thread(os.read, machine.stdin, 100) == b"x"
        await machine.closed_stdin.wait()


async def test_attach_ends_with_the_clients_stdin_if_that_is_not_once() -> None:
    async with serving() as (machine, server):
        async with websocket(await attach_url(server, stdin=True, stdout=True)) as made:
            made.send(channels.encode_close(STDIN))
            assert json.loads((await collected(made))[ERROR])["status"] == "Success"
        assert not machine.closed_stdin.is_set()


# -- ports


@contextlib.asynccontextmanager
async def answering(family: socket.AddressFamily) -> AsyncIterator[int]:
    """A server that reads to the end before it answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    address = "127.0.0.1" if family == socket.AF_INET else "::1"
    server = await asyncio.start_server(serve, address, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def forwarded(session: Session, port: int) -> tuple[Stream, Stream]:
    headers = {"port": str(port), "requestID": str(port)}
    error = await session.open({**headers, "streamType": "error"})
    return await session.open({**headers, "streamType": "data"}), error


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
async def test_a_forwarded_port_hears_the_end_of_what_is_sent(family: socket.AddressFamily) -> None:
    async with serving() as (_, server), answering(family) as port:
        url = (await server.port_forward(cri.PortForwardRequest(pod_sandbox_id="sandbox"))).url
        async with spdy(url, "portforward.k8s.io") as session:
            data, error = await forwarded(session, port)
            data.write(b"loud")
            data.finish()
            assert await data.read_all() == b"LOUD"
            assert await error.read_all() == b""


async def test_a_port_without_a_listener_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with serving() as (_, server):
        url = (await server.port_forward(cri.PortForwardRequest(pod_sandbox_id="sandbox"))).url
        async with spdy(url, "portforward.k8s.io") as session:
            _, error = await forwarded(session, port)
            said = (await error.read_all()).decode()
    assert said.startswith(f"error forwarding port {port} to pod sandbox, uid : failed to connect to localhost:{port}")
    assert "IPv4: connection refused" in said


# -- URLs


async def test_a_url_is_good_once_and_for_its_purpose() -> None:
    async with serving() as (_, server):
        url = await exec_url(server, "true", stdout=True)
        for other in (url.replace("/exec/", "/attach/"), url + "x"):
            assert (await knock(other, [("Upgrade", "websocket")]))[1].status == 404
        async with websocket(url) as made:
            await collected(made)
        assert (await knock(url, [("Upgrade", "websocket")]))[1].status == 404


async def test_urls_are_forgotten_and_limited() -> None:
    now = [0.0]
    server = StreamingServer(Machine(), lambda: now[0])
    await server.start()
    url = await exec_url(server, "true", stdout=True)
    for _ in range(MOST - 1):
        await exec_url(server, "true", stdout=True)
    with pytest.raises(CRIError, match="maximum number of in-flight requests exceeded") as refused:
        await exec_url(server, "true", stdout=True)
    assert refused.value.code == "ResourceExhausted"
    now[0] = LIFETIME
    assert (await knock(url, [("Upgrade", "websocket")]))[1].status == 404
    await exec_url(server, "true", stdout=True)
    await server.stop()


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ({"container_id": "box", "cmd": ["x"]}, "InvalidArgument", "one of stdin, stdout, or stderr must be set"),
        ({"container_id": "box", "cmd": ["x"], "tty": True, "stderr": True}, "InvalidArgument", "cannot both be true"),
        ({"cmd": ["x"], "stdout": True}, "InvalidArgument", "missing required container_id"),
        ({"container_id": "none", "cmd": ["x"], "stdout": True}, "NotFound", 'container "none" not found'),
    ],
)
async def test_what_cannot_be_asked_for(flags: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises(CRIError, match=message) as refused:
        await StreamingServer(Machine()).exec(cri.ExecRequest(**flags))
    assert refused.value.code == code
