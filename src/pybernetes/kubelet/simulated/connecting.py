"""Logs, exec, attach and port-forward of simulated containers: the kubelet's paths, with answers by rule.

Who asks cannot tell it from a kubelet: options, refusals and protocols are those of `kubelet.server`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from pybernetes.api.core.v1 import Pod
from pybernetes.api.gocompat.quote import quote
from pybernetes.client.clock import Clock
from pybernetes.net.http import Response
from pybernetes.net.streams.channels import STDERR, STDOUT
from pybernetes.net.streams.duplex import Duplex
from pybernetes.net.streams.exec_server import Refused as Declined
from pybernetes.net.streams.exec_server import RemoteCommand, accept_command, failed
from pybernetes.net.streams.port_forward_server import serve_port_forward
from pybernetes.net.streams.remotecommand import SUCCESS, StreamOptions, failure
from pybernetes.net.streams.spdy_tunnel import tunneled
from pybernetes.net.streams.websocket import is_websocket

from ..runtime.types import ObservedContainer
from ..server.answers import Refused, json
from ..server.log_lines import moment
from ..server.logs import selected, wanted_log
from ..server.server import Call
from ..server.streaming import place, ports_of, stream_options, upgrade_required
from .answers import Command, Line, Log
from .behaviour import PREFIX
from .pod import SimulatedPod
from .settings import Behaviour

LOOK: Final = 0.5
"""Seconds between looks at whether a container still runs whose log is followed."""
MOST_LINES: Final = 100_000
"""Lines that are kept of a log: older ones have been rotated away."""
PIECE: Final = 1000
"""Lines of a log that are sent at once."""
MOST_HEAD: Final = 1 << 16
"""Bytes that a client may send to a forwarded port before its request is complete."""

Find = Callable[[Pod], SimulatedPod | None]


class Connecting:
    """Serves clients of one simulated node's kubelet: logs, exec, attach, port-forward."""

    def __init__(self, find: Find, clock: Clock) -> None:
        self._find = find
        self._clock = clock

    # -- logs

    async def logs(self, call: Call) -> Response | None:
        """/containerLogs/NAMESPACE/POD/CONTAINER"""
        pod, id, options = wanted_log(call)
        found, written = self._log(pod, id)
        if found is None:
            raise Refused(400, f"unable to retrieve container logs for {id}")
        selection = selected(options, self._clock.now())
        call.request.connection.lasting = True
        stream = call.request.connection.stream(call.request, 200, "text/plain")
        async for lines in self._lines(pod, found, written, options.tail_lines, follow=bool(options.follow)):
            stream.write(b"".join(selection.take(_raw(found, each)) for each in lines))
            await stream.drain()
            if selection.full:
                break
        stream.end()
        return None

    async def _lines(
        self, pod: Pod, found: ObservedContainer, written: Log, tail: int | None, *, follow: bool
    ) -> AsyncIterator[list[Line]]:
        """The lines of a container, some at a time; with `follow` until it ends."""
        count = written.count(self._age(found))
        index = max(0, count - (MOST_LINES if tail is None else min(tail, MOST_LINES)))
        while True:
            while index < count:
                end = min(count, index + PIECE)
                yield list(written.between(index, end))
                index = end
            if not follow or not found.running:
                return
            wait = LOOK
            if written.pause:
                wait = min(LOOK, max(0.0, written.line(index).age - self._age(found)))
            await self._clock.sleep(wait)
            simulated = self._find(pod)
            now = simulated.observed.by_id(found.id) if simulated is not None else None
            if now is None:
                return  # the pod has gone, and its log with it
            found = now
            count = written.count(self._age(found))

    def _log(self, pod: Pod, id: str) -> tuple[ObservedContainer | None, Log]:
        simulated = self._find(pod)
        found = simulated.observed.by_id(id.rpartition("://")[2]) if simulated is not None else None
        if simulated is None or found is None:
            return None, Log()
        return found, simulated.behaviour(pod, found.name).output

    def _age(self, found: ObservedContainer) -> float:
        """Up to when a container has written: now, or when it ended."""
        return (self._clock.now() if found.running else found.finished_at) - found.started_at

    # -- commands

    async def execute(self, call: Call) -> Response | None:
        """/exec/NAMESPACE/POD[/UID]/CONTAINER?command=..."""
        pod, name = place(call)
        options = stream_options(call)
        wanted = self._running(pod, name)[1]
        upgrade_required(call)
        command = call.query.get("command", [])
        answer = _answer(wanted, command)

        async def serve(remote: RemoteCommand) -> dict[str, Any]:
            if answer is None:
                return failure(f"error executing command in container: {_unanswered(command)}")
            if answer.echo:
                while data := await remote.read_stdin():
                    await remote.write(STDOUT, data)
            await remote.write(STDOUT, answer.stdout.encode())
            await remote.write(STDERR, answer.stderr.encode())
            if not answer.exit_code:
                return SUCCESS
            what = f"error executing command [{' '.join(command)}], exit code {answer.exit_code}"
            return failed(f"command terminated with non-zero exit code: {what}", answer.exit_code)

        return await _serve(call, options, serve)

    async def attach(self, call: Call) -> Response | None:
        """/attach/NAMESPACE/POD[/UID]/CONTAINER: what it writes from now on."""
        pod, name = place(call)
        options = stream_options(call)
        found, wanted = self._running(pod, name)
        upgrade_required(call)

        async def serve(remote: RemoteCommand) -> dict[str, Any]:
            async for lines in self._lines(pod, found, wanted.output, 0, follow=True):
                await remote.write(STDOUT, "".join(f"{each.text}\n" for each in lines).encode())
            return SUCCESS

        return await _serve(call, options, serve)

    async def run(self, call: Call) -> Response:
        """/run/NAMESPACE/POD[/UID]/CONTAINER?cmd=...: what the command writes."""
        pod, name = place(call)
        wanted = self._running(pod, name)[1]
        text = call.first("cmd")
        answer = _answer(wanted, text.split(" "))
        if answer is None:
            raise Refused(500, _unanswered(text.split(" ")))
        output = answer.stdout + answer.stderr
        if answer.exit_code:
            raise Refused(500, f"command '{text}' exited with {answer.exit_code}: {output}")
        return json(output.encode())

    def _running(self, pod: Pod, name: str) -> tuple[ObservedContainer, Behaviour]:
        simulated = self._find(pod)
        found = simulated.observed.container(name) if simulated is not None else None
        if simulated is None or found is None or not found.running:
            raise Refused(500, f"container not found ({quote(name)})")
        return found, simulated.behaviour(pod, name)

    # -- ports

    async def port_forward(self, call: Call) -> Response | None:
        """/portForward/NAMESPACE/POD[/UID]"""
        if len(call.parts) not in (2, 3):
            raise Refused(404, "404: Page Not Found")
        ports = ports_of(call) if is_websocket(call.request) and not tunneled(call.request) else []
        pod = call.source.pod(call.parts[0], call.parts[1])
        if pod is None or pod.metadata is None:
            raise Refused(404, "pod does not exist")
        if len(call.parts) == 3 and pod.metadata.uid != call.parts[2]:
            raise Refused(404, "pod not found")
        simulated = self._find(pod)
        sandbox = simulated.observed.sandbox if simulated is not None else None
        if sandbox is None or not sandbox.ready:
            raise Refused(500, f"pod not found ({quote(f'{pod.metadata.name}_{pod.metadata.namespace}')})")
        upgrade_required(call)
        call.request.connection.lasting = True

        async def forward(port: int, client: Duplex) -> str:
            body = self._listening(pod, port)
            if body is None:
                why = f"connection refused: no container has it in {PREFIX}ports"
                return f"error forwarding port {port} to pod {sandbox.id}, uid : {why}"
            await _answer_http(client, body)
            return ""

        answer = await serve_port_forward(call.request, ports, forward)
        if answer is not None:
            answer.headers = answer.headers or []
        return answer

    def _listening(self, pod: Pod, port: int) -> str | None:
        simulated = self._find(pod)
        for each in simulated.observed.running() if simulated is not None else ():
            assert simulated is not None
            found = simulated.behaviour(pod, each.name).ports.get(port)
            if found is not None:
                return found
        return None


async def _serve(call: Call, options: StreamOptions, serve: Callable[[RemoteCommand], Any]) -> Response | None:
    call.request.connection.lasting = True
    try:
        remote = await accept_command(call.request, options)
    except Declined as declined:
        declined.answer.headers = declined.answer.headers or []
        return declined.answer
    try:
        await remote.finish(await serve(remote))
    finally:
        remote.close()
    return None


def _answer(wanted: Behaviour, command: list[str]) -> Command | None:
    return next((each for each in wanted.exec if each.fits(command)), None)


def _unanswered(command: list[str]) -> str:
    return f"the container is simulated, and nothing in {PREFIX}exec says what {quote(' '.join(command))} answers"


def _raw(found: ObservedContainer, line: Line) -> bytes:
    """A line as runtimes write it."""
    second, fraction = moment(found.started_at + line.age)
    return f"{second}.{fraction}Z stdout F {line.text}\n".encode()


async def _answer_http(client: Duplex, body: str) -> None:
    """One request of an HTTP client, answered with the text."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < MOST_HEAD:
        piece = await client.read()
        if not piece:
            return
        head += piece
    content = body.encode()
    fields = f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(content)}\r\nConnection: close\r\n"
    client.write(f"HTTP/1.1 200 OK\r\n{fields}\r\n".encode() + (b"" if head.startswith(b"HEAD ") else content))
    await client.drain()
