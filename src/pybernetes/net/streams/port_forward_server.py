"""Forwarded ports as a runtime's streaming server serves them: a `Duplex` for each client.

Clients speak SPDY, WebSocket, or SPDY in WebSocket.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence

from ..messages import Request, Response
from . import channels
from .channels import FORMS
from .duplex import Duplex, Upgraded
from .exec_server import Refused, negotiate
from .spdy_session import Session, Stream
from .spdy_tunnel import PREFIX, Tunnel, tunneled
from .websocket import HandshakeError, ProtocolError, WebSocket, accept, is_websocket

PORT_FORWARD = "portforward.k8s.io"
_BUFFERED = 64  # messages of a channel that may wait before the client is held up

Forward = Callable[[int, Duplex], Awaitable[str]]
"""Joins a port with a client's connection until one ends; returns what went wrong, or nothing."""


async def serve_port_forward(request: Request, ports: Sequence[int], forward: Forward) -> Response | None:
    """Serve a client until it goes; `ports` are those that a WebSocket client has asked for."""
    try:
        if tunneled(request):
            await _forward_in_tunnel(request, forward)
        elif is_websocket(request):
            await _forward_by_websocket(request, ports, forward)
        else:
            _, head = negotiate(request, (PORT_FORWARD,))
            await _BySPDYPorts(Upgraded(request.connection, head), forward).run()
    except Refused as refused:
        return refused.answer
    return None


async def _forward_in_tunnel(request: Request, forward: Forward) -> None:
    try:
        _, head = accept(request, (f"{PREFIX}{PORT_FORWARD}",))
    except HandshakeError as error:
        raise Refused(error.answer()) from None
    await _BySPDYPorts(Tunnel(WebSocket(Upgraded(request.connection, head))), forward).run()


class _BySPDYPorts:
    def __init__(self, duplex: Duplex, forward: Forward) -> None:
        self._forward = forward
        self._pairs: dict[str, dict[str, Stream]] = {}
        self._tasks: dict[asyncio.Task[None], Stream] = {}
        self._session = Session(duplex, server=True, accept=self._opened)

    async def run(self) -> None:
        """Until the client goes, and its ports have everything that it sent."""
        try:
            await self._session.run()
            await asyncio.gather(*(_delivered(task, data.exhausted) for task, data in self._tasks.items()))
        finally:
            for task in self._tasks:
                task.cancel()

    def _opened(self, stream: Stream) -> bool:
        port, kind = stream.headers.get("port", ""), stream.headers.get("streamtype", "")
        if not port.isdecimal() or not 0 < int(port) < 65536 or kind not in ("data", "error"):
            return False
        number = stream.number if kind == "error" else stream.number - 2
        pair = self._pairs.setdefault(stream.headers.get("requestid") or str(number), {})
        if kind in pair:
            return False
        pair[kind] = stream
        if len(pair) == 2:
            self._pairs = {key: each for key, each in self._pairs.items() if each is not pair}
            task = asyncio.create_task(self._serve(int(port), pair["data"], pair["error"]))
            self._tasks[task] = pair["data"]
            task.add_done_callback(self._tasks.pop)
        return True

    async def _serve(self, port: int, data: Stream, error: Stream) -> None:
        problem = await self._forward(port, data)
        if problem:
            error.write(problem.encode())
            data.reset()
        data.finish()
        error.finish()


async def _delivered(serving: asyncio.Task[None], exhausted: asyncio.Event) -> None:
    """Wait until a port has everything that its client sent, or has ended."""
    waiting = asyncio.create_task(exhausted.wait())
    try:
        await asyncio.wait((serving, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


class _Channel:
    """A forwarded port in WebSocket, as a `Duplex`."""

    def __init__(self, websocket: WebSocket, form: channels.Form, number: int) -> None:
        self.exhausted = asyncio.Event()
        """Set when everything that the client sent has been read."""
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue(_BUFFERED)
        self._stopped = False
        self._websocket = websocket
        self._form = form
        self._number = number

    async def put(self, data: bytes) -> None:
        """Take the client's bytes; empty at the end. Waits for room, unless the port has ended."""
        if not self._stopped:
            await self._arrived.put(data)

    def stop(self) -> None:
        """The port has ended: what is sent to it is dropped, and does not hold up other ports."""
        self._stopped = True
        while not self._arrived.empty():
            self._arrived.get_nowait()

    async def read(self) -> bytes:
        data = b"" if self.exhausted.is_set() else await self._arrived.get()
        if not data:
            self.exhausted.set()
        return data

    def write(self, data: bytes) -> None:
        self._websocket.send(channels.encode(self._form, self._number, data), text=self._form.text)

    async def drain(self) -> None:
        await self._websocket.drain()

    async def flush(self) -> None:
        await self._websocket.flush()

    def close(self) -> None:
        """There is no end of a channel; the connection ends with the last of them."""


async def _forward_by_websocket(request: Request, ports: Sequence[int], forward: Forward) -> None:
    forms = {name: FORMS[name] for name in ("", "v4.channel.k8s.io", "v4.base64.channel.k8s.io")}
    try:
        protocol, head = accept(request, forms)
    except HandshakeError as error:
        raise Refused(error.answer()) from None
    websocket = WebSocket(Upgraded(request.connection, head))
    form = forms[protocol]
    data = {2 * index: _Channel(websocket, form, 2 * index) for index in range(len(ports))}
    errors = [_Channel(websocket, form, 2 * index + 1) for index in range(len(ports))]
    for index, port in enumerate(ports):
        data[2 * index].write(struct.pack("<H", port))
        errors[index].write(struct.pack("<H", port))

    async def one(port: int, channel: _Channel, error: _Channel) -> None:
        try:
            problem = await forward(port, channel)
        finally:
            channel.stop()
        if problem:
            error.write(problem.encode())

    async def receive() -> None:
        try:
            while (message := await websocket.receive()) is not None:
                try:
                    number, content = channels.decode(form, message[1])
                except channels.BadMessage:
                    continue
                if content and number in data:
                    await data[number].put(content)
        except (ProtocolError, ConnectionError):
            pass

    receiving = asyncio.create_task(receive())
    serving = [asyncio.create_task(one(*each)) for each in zip(ports, data.values(), errors, strict=True)]
    ended = asyncio.create_task(_all(serving))
    try:
        await asyncio.wait((receiving, ended), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():  # the client has gone; its ports get everything that it sent
            for channel, task in zip(data.values(), serving, strict=True):
                await channel.put(b"")
                await _delivered(task, channel.exhausted)
    finally:
        for each in (receiving, ended, *serving):
            each.cancel()
        websocket.close()


async def _all(tasks: Sequence[asyncio.Task[None]]) -> None:
    for each in tasks:
        await asyncio.wait((each,))
