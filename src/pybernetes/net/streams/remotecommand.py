"""exec and attach for clients that speak `v5.channel.k8s.io` and servers that speak SPDY.

The fifth form lets a client close its stdin, which WebSocket itself cannot and SPDY can. So the client's channels
become streams: the server behind us may be of any age.

After the response to a WebSocket request, errors are reported on the error channel, as a Status.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from pybernetes.api.errors import InternalError

from ..messages import Request, Response
from ..upgrade import Target, UpgradeFailed, ask, connect, refusal, spdy_request
from . import channels
from .channels import ERROR, FORMS, RESIZE, STDERR, STDIN, STDOUT, V5
from .duplex import Upgraded
from .spdy_session import Session, Stream, StreamReset
from .websocket import HandshakeError, ProtocolError, WebSocket, accept, is_websocket, protocols

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
"""The subprotocols of SPDY, best first; from the fourth on the error stream carries a Status."""
_WITH_STATUS = PROTOCOLS[:2]
_LINGER = 30.0  # seconds for a command to end by itself when its client has gone and its stdin is at its end
_LINGER_TERMINAL = 1.0  # the same where a terminal's stdin has no end that the command could read
_PING = 5.0  # seconds between pings to the server behind us; upstream's
_MOST_ERROR = 1 << 20  # bytes of the error stream that are read
_FORM = FORMS[V5]
SUCCESS = {"metadata": {}, "status": "Success"}


class StreamOptions(msgspec.Struct, frozen=True):
    """Which streams there are."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


def wants_translation(request: Request) -> bool:
    """Whether a client offers the form in which channels can be closed."""
    return is_websocket(request) and V5 in protocols(request)


async def translate(
    request: Request, target: Target, options: StreamOptions, words: Callable[[BaseException], str] = str
) -> Response | None:
    """Serve a client's exec or attach by the server at `target`; returns when it has ended."""
    try:
        _, answer = accept(request, (V5,))
    except HandshakeError as error:
        return error.answer()
    if request.audit is not None:
        request.audit.started(101)
    websocket = WebSocket(Upgraded(request.connection, answer))
    first = STDOUT if options.stdout else STDERR if options.stderr else ERROR
    websocket.send(channels.encode(_FORM, first, b""))  # an empty message: the client need not wait for output
    try:
        status = await _served(request, websocket, target, options, words)
        if status is not None:
            websocket.send(channels.encode(_FORM, ERROR, msgspec.json.encode(status)))
            await websocket.flush()
    finally:
        websocket.close()
    return None


async def _served(
    request: Request,
    websocket: WebSocket,
    target: Target,
    options: StreamOptions,
    words: Callable[[BaseException], str],
) -> dict[str, Any] | None:
    """The final Status; None if the client has gone."""
    try:
        backend = await connect(target, words)
    except UpgradeFailed as error:  # upstream's translator is a client of the other server, and speaks as one
        why = str(error).removeprefix("error dialing backend: ")
        return failure(f'error sending request: Post "https://{target.authority}{target.path}": {why}')
    try:
        head = await ask(backend, spdy_request(request, target, PROTOCOLS), words)
        if head.status != 101:
            return _refused(await refusal(backend, head))
        protocol = head.get("x-stream-protocol-version") or PROTOCOLS[-1]
        session = Session(backend, server=False)
        running = asyncio.create_task(session.run())
        try:
            return await _Translation(websocket, session, options, protocol).run()
        finally:
            session.close()
            running.cancel()
    except UpgradeFailed as error:
        return failure(str(error))
    except TimeoutError:
        return failure("Timeout occurred")
    except ConnectionError as error:
        return failure(str(error))
    finally:
        backend.abort()


class _Translation:
    """One exec or attach, while it runs."""

    def __init__(self, websocket: WebSocket, session: Session, options: StreamOptions, protocol: str) -> None:
        self._websocket = websocket
        self._session = session
        self._options = options
        self._protocol = protocol
        self._inputs: dict[int, Stream] = {}

    async def run(self) -> dict[str, Any] | None:
        """How it ended; None if the client went away first."""
        error = await self._session.open({"streamType": "error"})
        error.finish()
        outputs: list[tuple[int, Stream]] = []
        if self._options.stdin:
            self._inputs[STDIN] = await self._session.open({"streamType": "stdin"})
        if self._options.stdout:
            outputs.append((STDOUT, await self._session.open({"streamType": "stdout"})))
        if self._options.stderr and not self._options.tty:
            outputs.append((STDERR, await self._session.open({"streamType": "stderr"})))
        if self._options.tty and self._protocol not in PROTOCOLS[-2:]:
            self._inputs[RESIZE] = await self._session.open({"streamType": "resize"})
        sending = [asyncio.create_task(self._send(channel, stream)) for channel, stream in outputs]
        ended = asyncio.create_task(self._result(error, sending))
        receiving = asyncio.create_task(self._receive())
        pinging = asyncio.create_task(self._ping())
        try:
            await asyncio.wait((ended, receiving), return_when=asyncio.FIRST_COMPLETED)
            if not ended.done() and STDIN in self._inputs:
                await self._deliver(ended)
            return ended.result() if ended.done() else None
        finally:
            for task in (*sending, ended, receiving, pinging):
                task.cancel()

    async def _result(self, error: Stream, outputs: list[asyncio.Task[None]]) -> dict[str, Any]:
        said = await error.read_all(_MOST_ERROR)
        if outputs:
            await asyncio.wait(outputs)
        if error.was_reset and not said:
            return failure("stream reset")
        return result_of(said, with_status=self._protocol in _WITH_STATUS)

    async def _deliver(self, ended: asyncio.Task[dict[str, Any]]) -> None:
        """The client has gone: the command gets all of its stdin, its end, and time to take it.

        There are servers that drop what a command has not read when the connection ends (moby/spdystream).
        """
        self._inputs[STDIN].finish()
        await self._session.duplex.flush()
        await asyncio.wait((ended,), timeout=_LINGER_TERMINAL if self._options.tty else _LINGER)

    async def _send(self, channel: int, stream: Stream) -> None:
        """Send the command's output; dropped when the client has gone, so that the command is not held up."""
        gone = False
        while data := await stream.read():
            if not gone:
                try:
                    self._websocket.send(channels.encode(_FORM, channel, data))
                    await self._websocket.drain()
                except ConnectionError:
                    gone = True

    async def _receive(self) -> None:
        """Receive from the client, until it ends."""
        try:
            while (message := await self._websocket.receive()) is not None:
                try:
                    channel, data = channels.decode(_FORM, message[1])
                except channels.BadMessage:
                    if message[1]:
                        return
                    continue
                stream = self._inputs.get(channel)
                if data is None:
                    if channel > RESIZE:
                        return
                    if stream is not None:
                        stream.finish()
                elif stream is not None and data:
                    stream.write(data)
                    try:
                        await stream.drain()
                    except StreamReset:
                        self._inputs.pop(channel, None)
        except (ProtocolError, ConnectionError):
            return

    async def _ping(self) -> None:
        number = 1
        while True:
            await asyncio.sleep(_PING)
            self._session.ping(number)
            number = (number + 2) & 0x7FFFFFFF


def result_of(said: bytes, *, with_status: bool) -> dict[str, Any]:
    """The Status for the client, from the content of the error stream."""
    if not with_status:
        return failure(f"error executing remote command: {said.decode('utf-8', 'replace')}") if said else SUCCESS
    if not said:
        return SUCCESS
    try:
        found = msgspec.json.decode(said)
    except msgspec.DecodeError as error:
        text = said.decode("utf-8", "replace")
        return failure(f"error stream protocol error: {error} in {text!r}")
    status = found if isinstance(found, dict) else {}
    if status.get("status") == "Success":
        return SUCCESS
    if status.get("status") != "Failure":
        return failure("error stream protocol error: unknown error")
    if status.get("reason") != "NonZeroExitCode":
        return failure(str(status.get("message") or ""))
    code = _exit_code(status)
    if code is None:
        return failure("error stream protocol error: no ExitCode cause given")
    message = f"command terminated with non-zero exit code: command terminated with exit code {code}"
    causes = [{"reason": "ExitCode", "message": str(code)}]
    reason = {"message": message, "reason": "NonZeroExitCode", "details": {"causes": causes}}
    return {"metadata": {}, "status": "Failure", **reason}


def _exit_code(status: dict[str, Any]) -> int | None:
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == "ExitCode" and str(cause.get("message")).isdecimal():
            return int(cause["message"])
    return None


def failure(message: str) -> dict[str, Any]:
    """A Status for what went wrong on the way."""
    status = InternalError(message).status()
    return {key: value for key, value in status.items() if key not in ("kind", "apiVersion")}


def _refused(answer: Response) -> dict[str, Any]:
    """The refusal of the server behind us; a Status is passed on as it is."""
    try:
        found = msgspec.json.decode(answer.body)
    except msgspec.DecodeError:
        found = None
    if isinstance(found, dict) and found.get("kind") == "Status":
        return {key: value for key, value in found.items() if key not in ("kind", "apiVersion")}
    text = answer.body.decode("utf-8", "replace").strip()
    return failure(f"unable to upgrade connection: {text}")
