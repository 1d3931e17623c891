"""Connections to endpoints, and those that are kept open for the next request.

One request at a time on a connection. It is used again after a complete answer to a complete request, the warmest
first, and never after an error. An endpoint that is no longer sent new requests loses its idle connections at once.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import httptools

from pybernetes.client.connection import Connection, ConnectionFailed
from pybernetes.net.dialer import connect

from .headers import Pairs

IDLE_TIMEOUT = 50.0
"""Seconds that a connection is kept; servers usually close theirs after 60 or more."""
MOST_IDLE = 32
"""For each endpoint."""
BUFFER = 256 * 1024
"""Unread bytes of an answer before the endpoint has to wait."""
MOST_HEAD = 64 * 1024

Address = tuple[str, int, bool]
"""Host, port, and whether TLS is spoken."""


class ConnectFailed(ConnectionFailed):
    """The endpoint could not be connected to: it has seen nothing of the request."""


class Upstream(Connection):
    """A connection to an endpoint."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.used = False
        """Whether it has answered before."""
        self.tunnel: asyncio.Transport | None = None
        """The client's transport, once both have left HTTP."""
        self._resume: asyncio.Future[None] | None = None
        super().__init__()

    def _begin(self) -> None:
        super()._begin()
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)  # as CGI programs write
        self.headers: Pairs = []
        self.length: int | None = None
        self.chunked = False
        self.upgraded = b""
        self.rest = b""
        self._bare = False
        self._head_bytes = 0

    def begin(self, head_only: bool) -> None:
        """The next request is about to be sent; `head_only`: its answer has no body (HEAD)."""
        self._begin()
        self._bare = head_only

    @property
    def head_done(self) -> bool:
        """Whether the answer's head is there."""
        return self._head_done

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the end of the connection ends the answer's body."""
        return self.length is None and not self.chunked

    async def head(self) -> None:
        """Return when the answer's head is there. Raises ConnectionFailed."""
        while not self._head_done:
            await self._wait()

    def write(self, data: bytes) -> None:
        """Send; does not wait."""
        self.transport.write(data)

    async def drain(self) -> None:
        """Wait until the endpoint has taken most of what was written. Raises ConnectionFailed."""
        if self.transport.is_closing():
            raise self.failure or ConnectionFailed("the endpoint closed the connection")
        if self._resume is not None:
            await asyncio.shield(self._resume)

    async def more(self) -> None:
        """Return when something of the body has arrived, or its end. Raises ConnectionFailed."""
        while not self._pieces and not self.complete:
            await self._wait()

    @property
    def pending(self) -> bool:
        """Whether something has arrived that was not taken."""
        return bool(self._pieces) or self.complete

    def read_on(self) -> None:
        """Resume reading once there is room again."""
        if self._paused and not self.transport.is_closing():
            self._paused = False
            self.transport.resume_reading()

    def take(self) -> bytes:
        """Take the part of the body that has arrived, without waiting."""
        if not self._pieces:
            return b""
        piece = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._unread = 0
        if self._paused:
            self._paused = False
            self.transport.resume_reading()
        return piece

    # -- asyncio's side

    def pause_writing(self) -> None:
        if self.tunnel is not None:
            self.tunnel.pause_reading()
        else:
            self._resume = self._loop.create_future()

    def resume_writing(self) -> None:
        resume, self._resume = self._resume, None
        if resume is not None and not resume.done():
            resume.set_result(None)
        if self.tunnel is not None:
            self.tunnel.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        resume, self._resume = self._resume, None
        if resume is not None and not resume.done():
            resume.set_exception(ConnectionFailed("the endpoint closed the connection"))
            resume.exception()  # there may be no waiter
        if self.tunnel is not None:
            self.tunnel.close()
        if self._head_done and not self.complete and self.ends_with_connection and error is None:
            self.complete = True
            self._wake()
        elif not self.complete:
            self._fail(ConnectionFailed(f"the endpoint closed the connection{f': {error}' if error else ''}"))

    def data_received(self, data: bytes) -> None:
        if self.tunnel is not None:
            self.tunnel.write(data)
            return
        if self.upgraded:
            self.rest += data
            if len(self.rest) > BUFFER and not self._paused:
                self._paused = True
                self.transport.pause_reading()
            return
        self.answered = True
        if self.complete:  # a response without a request
            self.reusable = False
            self.abort()
            return
        if not self._head_done:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.rest = data[upgrade.args[0] :]
            if not self.upgraded:  # e.g. to HTTP/2, without an Upgrade request
                self._fail(ConnectionFailed("the endpoint left HTTP without being asked"))
                self.abort()
            return
        except httptools.HttpParserError as error:
            self._fail(ConnectionFailed(f"not an HTTP answer: {error.__context__ or error}"))
            self.abort()
            return
        if not self._head_done and self._head_bytes > MOST_HEAD:
            self._fail(ConnectionFailed(f"the head of the answer is longer than {MOST_HEAD} bytes"))
            self.abort()
        self._pause_if_full(BUFFER)

    # -- the parser's side

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_done:  # not those behind the body
            self.headers.append((name, value))

    def on_status(self, reason: bytes) -> None:
        self.reason = reason

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status < 200 and self.status != 101:
            return
        for name, value in self.headers:
            key = name.lower()
            if key == b"content-length":
                self.length = int(value)
            elif key == b"transfer-encoding":
                self.chunked = True
            elif key == b"upgrade" and self.status == 101:
                self.upgraded = value
        self._head_done = True
        if self._bare:
            self.complete = True
            self.reusable = self._parser.should_keep_alive()
        self._wake()

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._unread += len(body)
        self._wake()

    def on_message_complete(self) -> None:
        if self.status < 200 and self.status != 101:
            self.headers = []
            return
        if self.status in (204, 304):
            self.length = 0
        self.complete = True
        self.reusable = self._parser.should_keep_alive()
        self._wake()

    reason = b""


class Pool:
    """Idle connections by endpoint. Invariant: every one in it is open and has answered completely."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: dict[Address, list[Upstream]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._tls: ssl.SSLContext | None = None

    def take(self, address: Address) -> Upstream | None:
        """One that is still open; None if there is none."""
        idle = self._idle.get(address)
        while idle:
            found = idle.pop()
            if found.still_open():
                return found
        return None

    async def connect(self, address: Address, within: float) -> Upstream:
        """A new one. Raises ConnectFailed."""
        host, port, secure = address
        made: Any = Upstream(address)
        try:
            async with asyncio.timeout(within):
                await connect(made, tls=self._context() if secure else None, server_name=host, host=host, port=port)
        except TimeoutError:
            raise ConnectFailed(f"{host}:{port} did not answer in {within:.0f} s") from None
        except OSError as error:
            raise ConnectFailed(f"cannot connect to {host}:{port}: {error}") from None
        return made  # type: ignore[no-any-return]

    def give(self, connection: Upstream) -> None:
        """It has answered completely."""
        idle = self._idle.setdefault(connection.address, [])
        if not connection.reusable or connection.transport.is_closing() or len(idle) >= MOST_IDLE:
            connection.transport.close()
            return
        connection.used = True
        connection.idle_since = self._loop.time()
        idle.append(connection)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(IDLE_TIMEOUT, self._sweep)

    def retire(self, gone: Callable[[Address], bool]) -> None:
        """Close the idle connections to endpoints that are gone."""
        for address in [each for each in self._idle if gone(each)]:
            for connection in self._idle.pop(address):
                connection.transport.close()

    def close(self) -> None:
        """Close all."""
        self.retire(lambda _: True)
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    @property
    def idle(self) -> int:
        """How many are kept."""
        return sum(map(len, self._idle.values()))

    def _context(self) -> ssl.SSLContext:
        """Endpoints have certificates of their own making: they are not verified, as is usual behind an Ingress."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.check_hostname = False
            self._tls.verify_mode = ssl.CERT_NONE
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    def _sweep(self) -> None:
        self._sweeper = None
        oldest = self._loop.time() - IDLE_TIMEOUT
        for address, idle in list(self._idle.items()):
            for connection in idle:
                if connection.idle_since <= oldest:
                    connection.transport.close()
            kept = [each for each in idle if each.idle_since > oldest and not each.transport.is_closing()]
            if kept:
                self._idle[address] = kept
            else:
                del self._idle[address]
        first = min((each[0].idle_since for each in self._idle.values()), default=None)
        if first is not None:
            self._sweeper = self._loop.call_later(max(1.0, first + IDLE_TIMEOUT - self._loop.time()), self._sweep)
