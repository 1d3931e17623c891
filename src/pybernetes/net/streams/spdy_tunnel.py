"""SPDY in WebSocket: how new clients forward ports through proxies that know WebSocket and no SPDY.

Each binary message is a piece of the SPDY connection, wherever it is cut. The client offers `SPDY/3.1+` and the name of
the protocol inside; the server behind us is asked for that by SPDY itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from ..messages import Request, Response
from ..upgrade import Target, UpgradeFailed, ask, connect, refusal, spdy_request
from .duplex import Upgraded, join
from .websocket import HandshakeError, Opcode, ProtocolError, WebSocket, accept, is_websocket, protocols

PREFIX, SUFFIX = "SPDY/3.1+", ".k8s.io"


class Tunnel:
    """A WebSocket as a `Duplex`."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def read(self) -> bytes:
        """The next message; other messages than binary ones end the connection."""
        while True:
            try:
                message = await self._websocket.receive()
            except ProtocolError:
                return b""
            if message is None:
                return b""
            opcode, data = message
            if opcode is not Opcode.BINARY:
                self._websocket.close(1003)
                return b""
            if data:
                return data

    def write(self, data: bytes) -> None:
        """Send a message."""
        self._websocket.send(data)

    async def drain(self) -> None:
        """Wait until most of it is taken."""
        await self._websocket.drain()

    async def flush(self) -> None:
        """Wait until all of it has arrived."""
        await self._websocket.flush()

    def close(self) -> None:
        """Say goodbye."""
        self._websocket.close()


def tunneled(request: Request) -> list[str]:
    """The protocols that a client wants to speak in SPDY in WebSocket; none if it does not."""
    if not is_websocket(request):
        return []
    names = [each for each in protocols(request) if each.startswith(PREFIX) and each.endswith(SUFFIX)]
    return [each.removeprefix(PREFIX) for each in names]


async def pass_tunnel(request: Request, target: Target, words: Callable[[BaseException], str] = str) -> Response | None:
    """Ask the other server for SPDY and join it with the client's WebSocket. Raises UpgradeFailed."""
    backend = await connect(target, words)
    with contextlib.ExitStack() as failing:
        failing.callback(backend.abort)
        head = await ask(backend, spdy_request(request, target, tunneled(request)), words)
        if head.status != 101:
            return await refusal(backend, head)
        if "upgrade" not in head.get("connection").lower() or "spdy/3.1" not in head.get("upgrade").lower():
            raise UpgradeFailed("unable to upgrade: missing upgrade headers in response")
        protocol = head.get("x-stream-protocol-version")
        try:
            _, answer = accept(request, (f"{PREFIX}{protocol}",) if protocol else ("", *protocols(request)))
        except HandshakeError as error:
            return error.answer()
        if request.audit is not None:
            request.audit.started(101)
        client = Tunnel(WebSocket(Upgraded(request.connection, answer)))
        failing.pop_all()  # from here on `join` ends the connection, when everything is passed on
    await join(client, backend)
    return None
