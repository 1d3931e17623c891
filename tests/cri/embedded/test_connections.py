"""exec, attach and forwarded ports of the embedded runtime's containers, at the URLs that CRI answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cri.embedded.machine import EmbeddedMachine
from cri.embedded.test_streaming import V5, collected, until
from node import cri_pods

from pybernetes.cni.netlink.namespace import Namespace
from pybernetes.cri import v1 as cri
from pybernetes.cri.remote import Runtime
from pybernetes.net.streams import channels
from pybernetes.net.streams.channels import ERROR, RESIZE, STDERR, STDIN, STDOUT
from pybernetes.net.streams.duplex import Dialed, request_head
from pybernetes.net.streams.spdy_session import Session
from pybernetes.net.streams.websocket import WebSocket, new_key


async def knock(machine: EmbeddedMachine, url: str, *headers: tuple[str, str]) -> Dialed:
    """A connection to the runtime's streaming server, from inside the machine's network."""
    parts = urlsplit(url)

    def connect() -> socket.socket:
        return socket.create_connection((parts.hostname, parts.port), 10)

    with Namespace(f"/proc/{machine.init}/ns/net") as inside:
        made = await asyncio.to_thread(inside.run, connect)
    made.setblocking(False)
    connection = Dialed(*await asyncio.open_connection(sock=made))
    lines = [("Host", parts.netloc), ("Connection", "Upgrade"), *headers]
    head = await connection.request(request_head("GET", parts.path, lines))
    assert head.status == 101, head.raw
    return connection


@contextlib.asynccontextmanager
async def websocket(machine: EmbeddedMachine, url: str) -> AsyncIterator[WebSocket]:
    lines = [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", new_key())]
    connection = await knock(machine, url, *lines, ("Sec-WebSocket-Protocol", "v5.channel.k8s.io"))
    made = WebSocket(connection, server=False)
    try:
        async with asyncio.timeout(60):
            yield made
    finally:
        made.close()
        connection.abort()


@contextlib.asynccontextmanager
async def started(machine: EmbeddedMachine, script: str, **config: Any) -> AsyncIterator[tuple[Runtime, str, str]]:
    """A container that runs a script: the runtime, the sandbox and the container."""
    async with machine.runtime() as runtime:
        pod, sandbox = await cri_pods.run(runtime, machine)
        try:
            yield runtime, sandbox, await cri_pods.start(runtime, pod, sandbox, "sh", "-c", script, **config)
        finally:
            await cri_pods.remove(runtime, sandbox)


async def exec_url(runtime: Runtime, id: str, *command: str, **flags: Any) -> str:
    return str((await runtime.exec(cri.ExecRequest(container_id=id, cmd=command, **flags))).url)


async def attach_url(runtime: Runtime, id: str, **flags: Any) -> str:
    return str((await runtime.attach(cri.AttachRequest(container_id=id, **flags))).url)


async def test_exec_in_a_container(machine: EmbeddedMachine) -> None:
    async with started(machine, "exec sleep 1000") as (runtime, _, id):
        url = await exec_url(
            runtime, id, "sh", "-c", "sort; hostname >&2; exit 7", stdin=True, stdout=True, stderr=True
        )
        async with websocket(machine, url) as made:
            made.send(channels.encode(V5, STDIN, b"b\na\n"))
            made.send(channels.encode_close(STDIN))
            found = await collected(made)
        assert found[STDOUT] == b"a\nb\n"
        assert found[STDERR]
        assert json.loads(found[ERROR])["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]
        async with websocket(machine, await exec_url(runtime, id, "nothing", stdout=True)) as made:
            assert "executable file not found in $PATH" in json.loads((await collected(made))[ERROR])["message"]


async def test_a_short_command_in_a_terminal_is_heard(machine: EmbeddedMachine) -> None:
    async with started(machine, "exec sleep 1000") as (runtime, _, id):
        for number in range(5):
            url = await exec_url(runtime, id, "echo", f"hello {number}", stdout=True, tty=True)
            async with websocket(machine, url) as made:
                found = await collected(made)
            assert found[STDOUT] == b"hello %d\r\n" % number
            assert json.loads(found[ERROR])["status"] == "Success"


async def test_a_terminal_is_the_containers_and_has_the_clients_size(machine: EmbeddedMachine) -> None:
    async with started(machine, "exec sleep 1000") as (runtime, _, id):
        script = "tty; until stty size | grep '41 101'; do sleep 0.02; done; read line; echo got $line"
        url = await exec_url(runtime, id, "sh", "-c", script, stdin=True, stdout=True, tty=True)
        async with websocket(machine, url) as made:
            made.send(channels.encode(V5, RESIZE, b'{"Width":101,"Height":41}'))
            await until(made, STDOUT, b"41 101")
            made.send(channels.encode(V5, STDIN, b"this\n"))
            found = await collected(made)
        assert found[STDOUT].endswith(b"got this\r\n")


async def test_attach_sees_everything_that_is_written_from_then_on(machine: EmbeddedMachine) -> None:
    script = "read go; head -c 3000000 /dev/zero | tr '\\0' x; echo end >&2; cat > /dev/null"
    async with started(machine, script, stdin=True, stdin_once=True) as (runtime, _, id):
        async with websocket(machine, await attach_url(runtime, id, stdin=True, stdout=True, stderr=True)) as made:
            made.send(channels.encode(V5, STDIN, b"go\n"))
            made.send(channels.encode_close(STDIN))  # and the container's stdin with it, so that cat ends
            found = await collected(made)
        assert len(found[STDOUT]) == 3000000
        assert found[STDERR] == b"end\n"
        assert json.loads(found[ERROR])["status"] == "Success"


def launcher_descriptors(machine: EmbeddedMachine) -> int:
    """How many descriptors the launcher has open."""
    pids = subprocess.run(["pgrep", "-f", f"launcher import main.*{machine.state}"], capture_output=True, text=True)
    return len(list(Path(f"/proc/{pids.stdout.split()[0]}/fd").iterdir()))


async def test_many_clients_come_and_go_at_one_container(machine: EmbeddedMachine) -> None:
    async with started(machine, "exec cat", stdin=True) as (runtime, _, id):
        before = launcher_descriptors(machine)
        for _ in range(3):
            async with websocket(machine, await attach_url(runtime, id, stdin=True, stdout=True, stderr=True)) as made:
                made.send(channels.encode(V5, STDIN, b"echo\n"))
                await until(made, STDOUT, b"echo\n")
        async with asyncio.timeout(30):
            while launcher_descriptors(machine) > before:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_attach_to_a_terminal(machine: EmbeddedMachine) -> None:
    script = "while read line; do stty size; done"
    async with started(machine, script, stdin=True, tty=True) as (runtime, _, id):
        url = await attach_url(runtime, id, stdin=True, stdout=True, tty=True)
        async with websocket(machine, url) as made:
            made.send(channels.encode(V5, RESIZE, b'{"Width":101,"Height":41}'))
            made.send(channels.encode(V5, STDIN, b"now\n\n\n\n"))
            await until(made, STDOUT, b"41 101\r\n")


async def test_ports_of_a_pod_are_its_own(machine: EmbeddedMachine) -> None:
    serve = "echo up; exec nc -ll -p 8080 -e tr a-z A-Z"
    async with started(machine, serve) as (runtime, sandbox, _):
        answer = await runtime.port_forward(cri.PortForwardRequest(pod_sandbox_id=sandbox))
        connection = await knock(
            machine, answer.url, ("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", "portforward.k8s.io")
        )
        session = Session(connection, server=False)
        running = asyncio.create_task(session.run())
        said = b""
        async with asyncio.timeout(60):
            for attempt in range(200):
                headers = {"port": "8080", "requestID": str(attempt)}
                error = await session.open({**headers, "streamType": "error"})
                data = await session.open({**headers, "streamType": "data"})
                data.write(b"hello")
                data.finish()
                said = await data.read_all()
                if said:
                    break
                assert b"connection refused" in await error.read_all()
                await asyncio.sleep(0.05)  # it does not listen yet
        running.cancel()
        connection.abort()
        assert said == b"HELLO"


async def test_what_was_sent_before_the_end_of_stdin_arrives(machine: EmbeddedMachine) -> None:
    script = "while read line; do echo heard $line; done"
    async with started(machine, script, stdin=True, stdin_once=True) as (runtime, _, id):
        url = await attach_url(runtime, id, stdin=True, stdout=True, stderr=True)
        headers = [("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", "v4.channel.k8s.io")]
        connection = await knock(machine, url, *headers)
        session = Session(connection, server=False)
        running = asyncio.create_task(session.run())
        async with asyncio.timeout(60):
            error = await session.open({"streamType": "error"})
            stdin = await session.open({"streamType": "stdin"})
            stdout = await session.open({"streamType": "stdout"})
            await session.open({"streamType": "stderr"})
            stdin.write(b"one\ntwo\n")
            stdin.finish()
            assert await stdout.read_all() == b"heard one\nheard two\n"
            assert json.loads(await error.read_all())["status"] == "Success"
        running.cancel()
        connection.abort()
