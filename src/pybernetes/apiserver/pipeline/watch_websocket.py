"""A watch over WebSocket: the server talks, a message for each event, and the client listens."""

from __future__ import annotations

import asyncio
import contextlib

from pybernetes.net.http import Request, Response
from pybernetes.net.streams.duplex import Upgraded
from pybernetes.net.streams.websocket import HandshakeError, ProtocolError, WebSocket, accept, protocols


class WatchSocket:
    """To be written to as to `net.http.Stream`."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._listener = asyncio.get_running_loop().create_task(self._listen())
        watch = asyncio.current_task()
        assert watch is not None
        watch.add_done_callback(lambda _: self._listener.cancel())  # it is cancelled when the client is gone

    async def _listen(self) -> None:
        """Answer pings and overhear everything else; when the client says goodbye, the connection closes."""
        with contextlib.suppress(ProtocolError):
            while await self._socket.receive() is not None:
                pass

    def write(self, data: bytes) -> None:
        """Send events, which are a line each; does not wait."""
        for line in data.splitlines(keepends=True):
            self._socket.send(line, text=True)

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written."""
        await self._socket.drain()

    async def send(self, data: bytes) -> None:
        """Send events and wait as `drain` does."""
        self.write(data)
        await self._socket.drain()

    def end(self) -> None:
        """Say that this was all."""
        self._listener.cancel()
        self._socket.close()


def watch_socket(request: Request) -> WatchSocket | Response:
    """Leave HTTP; a Response if this is no handshake that can be agreed to."""
    if not request.headers.get("origin"):
        return Response(b"", 403, "")  # golang.org/x/net/websocket refuses requests without `Origin`
    try:
        _, head = accept(request, (protocols(request) or [""])[:1])
    except HandshakeError as error:
        return Response(b"", error.status, "", error.headers)
    if request.audit is not None:
        request.audit.started(101)
    return WatchSocket(WebSocket(Upgraded(request.connection, head, cancel=True)))
