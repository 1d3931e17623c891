"""The other end: exec and attach as a runtime's streaming server serves them, by SPDY and WebSocket.

Who serves gets streams and need not know how they came: `RemoteCommand` has stdin, stdout, stderr, the sizes of the
terminal, and a way to tell the end. Forwarded ports are served in `port_forwarding`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from ..messages import Request, Response
from . import channels
from .channels import ERROR, FORMS, RESIZE, STDERR, STDIN, STDOUT
from .duplex import Duplex, Upgraded
from .remotecommand import PROTOCOLS, SUCCESS, StreamOptions
from .spdy_session import Session, Stream
from .websocket import HandshakeError, ProtocolError, WebSocket, accept, is_websocket

STREAMS_TIMEOUT = 30.0  # seconds for a client to open its streams; upstream's
_SPDY = PROTOCOLS[1:]
_BUFFERED = 64  # messages of a channel that may wait before the client is held up


class Refused(Exception):
    """The client cannot be served; `answer` tells it why."""

    def __init__(self, answer: Response) -> None:
        super().__init__(answer.body.decode())
        self.answer = answer


class RemoteCommand:
    """The streams of one exec or attach. `close` when done."""

    async def read_stdin(self) -> bytes:
        """The bytes from the client; empty at the end."""
        raise NotImplementedError

    async def write(self, channel: int, data: bytes) -> None:
        """Send output (STDOUT or STDERR); on a stream that the client did not ask for it goes nowhere."""
        raise NotImplementedError

    async def resizes(self) -> AsyncIterator[tuple[int, int]]:
        """Width and height of the client's terminal, now and whenever they change."""
        raise NotImplementedError
        yield

    async def gone(self) -> None:
        """Return when the client has gone. What it has sent can still be read."""
        raise NotImplementedError

    async def finish(self, status: dict[str, Any]) -> None:
        """Tell how it ended (`SUCCESS`, or a failure) and end."""
        raise NotImplementedError

    def close(self) -> None:
        """End."""
        raise NotImplementedError


def failed(message: str, exit_code: int | None = None) -> dict[str, Any]:
    """The Status of a command that could not be run, or that ended with another code than 0."""
    status: dict[str, Any] = {"metadata": {}, "status": "Failure", "message": message}
    if exit_code is None:
        return {**status, "reason": "InternalError", "details": {"causes": [{"message": message}]}, "code": 500}
    causes = [{"reason": "ExitCode", "message": str(exit_code)}]
    return {**status, "reason": "NonZeroExitCode", "details": {"causes": causes}}


async def accept_command(request: Request, options: StreamOptions) -> RemoteCommand:
    """Agree with a client on how to talk; returns when its streams are there. Raises Refused or ConnectionError."""
    if is_websocket(request):
        try:
            protocol, head = accept(request, FORMS)
        except HandshakeError as error:
            raise Refused(error.answer()) from None
        return _ByWebSocket(WebSocket(Upgraded(request.connection, head)), FORMS[protocol], options)
    protocol, head = negotiate(request, _SPDY)
    command = _BySPDY(Upgraded(request.connection, head), options, protocol)
    await command.ready()
    return command


def plain(text: str, status: int, headers: list[tuple[str, str]] | None = None) -> Response:
    """A refusal in plain text."""
    return Response(f"{text}\n".encode(), status, "text/plain; charset=utf-8", headers or [])


def negotiate(request: Request, supported: Sequence[str]) -> tuple[str, bytes]:
    """The protocol to be spoken in SPDY, and the 101 answer. Raises Refused in upstream's words."""
    if "spdy/3.1" not in request.headers.get("upgrade", "").lower():
        raise Refused(plain("unable to upgrade: missing upgrade headers in request", 400))
    header = "X-Stream-Protocol-Version"
    offered = [each.strip() for value in request.values(header.lower()) for each in value.split(",") if each.strip()]
    if not offered:
        many = len(request.headers)
        raise Refused(plain(f"unable to upgrade: header {header} does not exist in request with {many} headers", 400))
    chosen = next((each for each in offered if each in supported), None)
    if chosen is None:
        theirs, ours = " ".join(offered), " ".join(supported)
        why = f"unable to negotiate protocol: client supports [{theirs}], server accepts [{ours}]"
        headers = [("X-Accepted-Stream-Protocol-Versions", each) for each in supported]
        raise Refused(plain(f"unable to upgrade: {why}", 403, headers))
    lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: SPDY/3.1", f"{header}: {chosen}"]
    return chosen, ("\r\n".join(lines) + "\r\n\r\n").encode()


def _size(data: bytes) -> tuple[int, int] | None:
    try:
        found = msgspec.json.decode(data)
        return int(found["Width"]), int(found["Height"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return None


class _BySPDY(RemoteCommand):
    def __init__(self, duplex: Duplex, options: StreamOptions, protocol: str) -> None:
        self._protocol = protocol
        self._streams: dict[str, Stream] = {}
        self._wanted = {"error"} | {name for name in ("stdin", "stdout", "stderr") if getattr(options, name)}
        if options.tty and protocol in _SPDY[:2]:
            self._wanted.add("resize")
        self._complete = asyncio.Event()
        self._session = Session(duplex, server=True, accept=self._opened)
        self._running: asyncio.Task[None] | None = asyncio.create_task(self._session.run())

    def _opened(self, stream: Stream) -> bool:
        kind = stream.headers.get("streamtype", "")
        if kind not in ("error", "stdin", "stdout", "stderr", "resize"):
            return False
        self._streams[kind] = stream
        if self._wanted <= self._streams.keys():
            self._complete.set()
        return True

    async def gone(self) -> None:
        if self._running is not None:
            await asyncio.wait((self._running,))

    async def ready(self) -> None:
        """Wait for the client's streams. Raises ConnectionResetError."""
        if self._running is not None:
            self._running.add_done_callback(lambda _: self._complete.set())
        try:
            async with asyncio.timeout(STREAMS_TIMEOUT):
                await self._complete.wait()
            if not self._wanted <= self._streams.keys():
                raise ConnectionResetError("the client went away")
        except TimeoutError:
            self.close()
            raise ConnectionResetError("timed out waiting for client to create streams") from None
        except asyncio.CancelledError:
            self.close()
            raise

    async def read_stdin(self) -> bytes:
        stream = self._streams.get("stdin")
        return await stream.read() if stream is not None else b""

    async def write(self, channel: int, data: bytes) -> None:
        stream = self._streams.get("stdout" if channel == STDOUT else "stderr")
        if stream is not None:
            stream.write(data)
            await stream.drain()

    async def resizes(self) -> AsyncIterator[tuple[int, int]]:
        stream = self._streams.get("resize")
        rest = b""
        while stream is not None and (data := await stream.read()):
            *lines, rest = (rest + data).replace(b"}", b"}\n").split(b"\n")
            for line in lines:
                size = _size(line.strip()) if line.strip() else None
                if size is not None:
                    yield size

    async def finish(self, status: dict[str, Any]) -> None:
        for name in ("stdout", "stderr"):
            if name in self._streams:
                self._streams[name].finish()
        error = self._streams["error"]
        if self._protocol == _SPDY[0]:
            error.write(msgspec.json.encode(status))
        elif status is not SUCCESS:
            error.write(str(status.get("message", "")).encode())
        error.finish()
        await self._session.duplex.drain()
        self.close()

    def close(self) -> None:
        self._session.close()
        running, self._running = self._running, None  # a cancelled task refers to us
        if running is not None:
            running.cancel()


class _ByWebSocket(RemoteCommand):
    def __init__(self, websocket: WebSocket, form: channels.Form, options: StreamOptions) -> None:
        self._websocket = websocket
        self._form = form
        self._outputs = {STDOUT: options.stdout, STDERR: options.stderr}
        self._inputs: dict[int, asyncio.Queue[bytes]] = {}
        if options.tty:
            self._inputs[RESIZE] = asyncio.Queue(_BUFFERED)
        if options.stdin:
            self._inputs[STDIN] = asyncio.Queue(_BUFFERED)
        first = STDOUT if options.stdout else STDERR if options.stderr else ERROR
        self._send(first, b"")
        self._receiving: asyncio.Task[None] | None = asyncio.create_task(self._receive())

    def _send(self, channel: int, data: bytes) -> None:
        self._websocket.send(channels.encode(self._form, channel, data), text=self._form.text)

    async def _receive(self) -> None:
        try:
            while (message := await self._websocket.receive()) is not None:
                try:
                    channel, data = channels.decode(self._form, message[1])
                except channels.BadMessage:
                    continue
                queue = self._inputs.get(channel)
                if queue is not None and data != b"":
                    await queue.put(data or b"")
        except (ProtocolError, ConnectionError):
            pass
        for queue in self._inputs.values():
            await queue.put(b"")

    async def gone(self) -> None:
        if self._receiving is not None:
            await asyncio.wait((self._receiving,))

    async def read_stdin(self) -> bytes:
        queue = self._inputs.get(STDIN)
        return await queue.get() if queue is not None else b""

    async def write(self, channel: int, data: bytes) -> None:
        if self._outputs.get(channel):
            self._send(channel, data)
            await self._websocket.drain()

    async def resizes(self) -> AsyncIterator[tuple[int, int]]:
        queue = self._inputs.get(RESIZE)
        while queue is not None and (data := await queue.get()):
            size = _size(data)
            if size is not None:
                yield size

    async def finish(self, status: dict[str, Any]) -> None:
        if self._form.status:
            self._send(ERROR, msgspec.json.encode(status))
        elif status is not SUCCESS:
            self._send(ERROR, str(status.get("message", "")).encode())
        await self._websocket.drain()
        self.close()

    def close(self) -> None:
        receiving, self._receiving = self._receiving, None  # a cancelled task refers to us
        if receiving is not None:
            receiving.cancel()
        self._websocket.close()
