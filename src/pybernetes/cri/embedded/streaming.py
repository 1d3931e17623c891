"""exec, attach and port-forward: CRI answers a URL of this HTTP server, which speaks SPDY and WebSocket (`net`).

A URL is good once and for a minute, listens on the loopback device and cannot be guessed: only a client of the runtime
has it. What the streams are joined with is behind `Containers`, so that this file knows no containers.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.net.http import HTTPServer
from pybernetes.net.messages import Request, Response
from pybernetes.net.streams.duplex import Duplex
from pybernetes.net.streams.exec_server import Refused, RemoteCommand, accept_command, failed, plain
from pybernetes.net.streams.port_forward_server import serve_port_forward
from pybernetes.net.streams.remotecommand import SUCCESS, StreamOptions, failure

from . import forwarding, joining

LIFETIME = 60.0  # seconds in which a URL must be used; upstream's cacheTTL
MOST = 1000  # unused URLs; upstream's maxInFlight
_MAX_BODY = 1 << 16
_GRACE = 1.0


class Command(Protocol):
    """A command that runs in a container."""

    terminal: int
    """A descriptor of its terminal's other end, which the caller closes; -1 = it has none."""

    async def wait(self) -> int:
        """Its exit code, when it has ended."""
        ...


class Attachment(msgspec.Struct):
    """The descriptors of a container's first process. The caller closes them."""

    stdin: int = -1
    """Where it reads from; -1 = nowhere (any more)."""
    terminal: int = -1
    """Its terminal, for the size; -1 = it has none."""
    stdin_once: bool = False
    """Its stdin ends with the first client's."""


class Containers(Protocol):
    """The containers that streams can join. All methods raise CRIError."""

    def check_running(self, container_id: str) -> None:
        """Raises CRIError unless the container is there and runs."""
        ...

    def network(self, sandbox_id: str) -> str:
        """The file of a ready sandbox's network namespace; empty = the node's."""
        ...

    async def execute(self, container_id: str, command: Sequence[str], streams: Sequence[int], tty: bool) -> Command:
        """Runs a command: in a terminal, or with three descriptors as its streams, which stay the caller's."""
        ...

    async def attach(self, container_id: str, stdout: int, stderr: int) -> Attachment:
        """Copies a container's output from now on to these descriptors (-1 = not), and closes its copies at its end."""
        ...

    async def close_stdin(self, container_id: str) -> None:
        """The container's first process reads the end of its stdin."""
        ...


class StreamingServer:
    """Answers CRI's Exec, Attach and PortForward, and serves what they lead to."""

    def __init__(self, containers: Containers, clock: Callable[[], float] = time.monotonic) -> None:
        self._containers = containers
        self._clock = clock
        self._asked: dict[str, tuple[float, str, Any]] = {}  # by token; the oldest first
        self._closing: set[asyncio.Task[None]] = set()
        self._http: HTTPServer | None = None
        self._server: asyncio.Server | None = None
        self._port = 0

    async def start(self, address: str = "127.0.0.1", port: int = 0) -> int:
        """Listen; the port."""
        self._http = HTTPServer(self._serve, lambda code, text: plain(text, code), max_body=_MAX_BODY, audited=False)
        self._server = await asyncio.get_running_loop().create_server(self._http, address, port)
        self._port = int(self._server.sockets[0].getsockname()[1])
        return self._port

    async def stop(self) -> None:
        """Listen no more and end what is under way."""
        if self._server is not None:
            self._server.close()
        if self._http is not None:
            await self._http.drain(_GRACE)

    # -- CRI

    async def exec(self, request: Any) -> Any:
        """CRI's Exec."""
        _check_streams(request)
        if not request.cmd:
            raise CRIError("InvalidArgument", "missing required cmd")
        self._containers.check_running(request.container_id)
        return cri.ExecResponse(url=self._url("exec", request))

    async def attach(self, request: Any) -> Any:
        """CRI's Attach."""
        _check_streams(request)
        self._containers.check_running(request.container_id)
        return cri.AttachResponse(url=self._url("attach", request))

    async def port_forward(self, request: Any) -> Any:
        """CRI's PortForward."""
        if not request.pod_sandbox_id:
            raise CRIError("InvalidArgument", "missing required pod_sandbox_id")
        self._containers.network(request.pod_sandbox_id)
        return cri.PortForwardResponse(url=self._url("portforward", request))

    def _url(self, what: str, request: Any) -> str:
        now = self._clock()
        for token, (until, _, _) in list(self._asked.items()):
            if until > now:
                break
            del self._asked[token]
        if len(self._asked) >= MOST:
            raise CRIError("ResourceExhausted", "maximum number of in-flight requests exceeded")
        token = secrets.token_urlsafe(18)
        self._asked[token] = now + LIFETIME, what, request
        return f"http://127.0.0.1:{self._port}/{what}/{token}"

    # -- HTTP

    async def _serve(self, request: Request) -> Response | None:
        what, _, token = request.path.removeprefix("/").partition("/")
        until, asked_for, asked = self._asked.get(token, (0.0, "", None))
        if asked is None or asked_for != what or until <= self._clock():
            return plain("404 page not found", 404)
        if request.method not in ("GET", "POST"):
            return plain("405: Method Not Allowed", 405, [("Allow", "GET, POST")])
        del self._asked[token]
        if what == "portforward":
            return await self._serve_port_forward(request, asked)
        options = StreamOptions(asked.stdin, asked.stdout, asked.stderr, asked.tty)
        try:
            command = await accept_command(request, options)
        except Refused as refused:
            refused.answer.headers = refused.answer.headers or []
            return refused.answer
        try:
            serve = self._serve_exec if what == "exec" else self._serve_attach
            await command.finish(await serve(command, asked, options))
        finally:
            command.close()
        return None

    async def _serve_exec(self, command: RemoteCommand, asked: Any, options: StreamOptions) -> dict[str, Any]:
        async def start(streams: Sequence[int]) -> Command:
            return await self._containers.execute(asked.container_id, list(asked.cmd), streams, options.tty)

        try:
            code = await joining.execute(command, options, start)
        except CRIError as error:
            return failure(f"error executing command in container: {error}")
        if code == 0:
            return SUCCESS
        shown = " ".join(asked.cmd)
        return failed(
            f"command terminated with non-zero exit code: error executing command [{shown}], exit code {code}", code
        )

    async def _serve_attach(self, command: RemoteCommand, asked: Any, options: StreamOptions) -> dict[str, Any]:
        async def start(stdout: int, stderr: int) -> Attachment:
            return await self._containers.attach(asked.container_id, stdout, stderr)

        def close_stdin() -> None:
            # A task of its own: the one that serves the client is ended when the client goes.
            task = asyncio.create_task(self._close_stdin(asked.container_id))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

        try:
            await joining.attach(command, options, start, close_stdin)
        except CRIError as error:
            return failure(f"error attaching to container: {error}")
        return SUCCESS

    async def _close_stdin(self, container_id: str) -> None:
        try:
            await self._containers.close_stdin(container_id)
        except CRIError:
            pass  # it has ended, and its stdin with it

    async def _serve_port_forward(self, request: Request, asked: Any) -> Response | None:
        sandbox = asked.pod_sandbox_id

        async def forward(port: int, client: Duplex) -> str:
            try:
                await forwarding.forward(self._containers.network(sandbox), port, client)
            except (CRIError, forwarding.Unreachable) as error:
                return f"error forwarding port {port} to pod {sandbox}, uid : {error}"
            return ""

        answer = await serve_port_forward(request, list(asked.port), forward)
        if answer is not None:
            answer.headers = answer.headers or []
        return answer


def _check_streams(request: Any) -> None:
    """Upstream's validation of what is asked for."""
    if not request.container_id:
        raise CRIError("InvalidArgument", "missing required container_id")
    if request.tty and request.stderr:
        raise CRIError("InvalidArgument", "tty and stderr cannot both be true")
    if not (request.stdin or request.stdout or request.stderr):
        raise CRIError("InvalidArgument", "one of stdin, stdout, or stderr must be set")
