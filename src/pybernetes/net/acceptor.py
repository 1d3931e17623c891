"""New connections: TLS begins when the client has said something, and one handshake after another.

A handshake costs as much as several requests, and its client is still unknown. `create_server(ssl=...)` would do all
that are waiting in one round of the loop; here each waits for its turn (`pacing`), by address, so a flood of new
connections holds up only other new ones from the same address. A client that connects and stays silent costs a timer.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any, Protocol

from .fair_turns import Pace

HANDSHAKE = 10.0
"""Seconds for the first byte of a handshake, and then for the rest of it. Go's server has 10 s for all."""
_HELLO = 1 << 16  # bytes that are taken before its turn; hellos have a few hundred


class Server(Protocol):
    """Makes the protocol of a connection; handshakes take turns in its `hellos`."""

    loop: asyncio.AbstractEventLoop
    hellos: Pace
    draining: bool

    def __call__(self) -> asyncio.Protocol: ...


class Contexts(Protocol):
    """Has the context with which those are greeted who have come to an address."""

    def at(self, address: str) -> ssl.SSLContext: ...


def securely(server: Server, tls: Contexts) -> Callable[[], asyncio.Protocol]:
    """The protocol factory for `create_server` (without `ssl`) to serve by TLS."""
    return lambda: _Hello(server, tls)


class _Hello(asyncio.Protocol):
    """A connection until it is its turn; then TLS takes its place."""

    def __init__(self, server: Server, tls: Contexts) -> None:
        self._server = server
        self._tls = tls
        self._said = b""
        self._gone = False
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._timer = self._server.loop.call_later(HANDSHAKE, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        if not self._said:
            self._timer.cancel()
            peer = self._transport.get_extra_info("peername")
            self._server.hellos.ask(peer[0] if isinstance(peer, tuple) else "", self._begin)
        self._said += data
        if len(self._said) > _HELLO:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        self._timer.cancel()

    def _begin(self) -> None:
        """Hand the connection over to TLS, with what came so far."""
        transport = self._transport
        if self._gone or transport.is_closing():
            return
        if self._server.draining:
            transport.abort()
            return
        loop, local = self._server.loop, transport.get_extra_info("sockname")
        context = self._tls.at(local[0] if isinstance(local, tuple) else "")
        protocol: Any = _sslproto(loop)(loop, self._server(), context, None, True, ssl_handshake_timeout=HANDSHAKE)
        transport.set_protocol(protocol)
        transport.resume_reading()
        protocol.connection_made(transport)
        view = memoryview(self._said)
        while view and not transport.is_closing():
            buffer = memoryview(protocol.get_buffer(len(view)))
            size = min(len(buffer), len(view))
            buffer[:size] = view[:size]
            protocol.buffer_updated(size)
            view = view[size:]


def _sslproto(loop: asyncio.AbstractEventLoop) -> Any:
    """TLS above a connection, as this kind of loop does it."""
    if type(loop).__module__.startswith("uvloop"):
        import uvloop

        return uvloop.loop.SSLProtocol  # type: ignore[attr-defined]
    return SSLProtocol
