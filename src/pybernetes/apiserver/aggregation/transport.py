"""Connections to an extension server: requests with a known body, answers piece by piece, upgraded streams.

`client.http` is for responses that are read here; this is for responses that are passed on: all headers as
they came, a body of any length, and the protocol that follows an upgrade. A connection is used again after a complete
answer. One that turns out to be closed is replaced, if the request can be sent twice.
"""

from __future__ import annotations

import asyncio
import ssl

import httptools

from pybernetes.client.connection import Connection, ConnectionFailed
from pybernetes.client.http import CONNECT_TIMEOUT
from pybernetes.net.dialer import connect

_BUFFER = 1 << 18  # unread bytes of an answer before the socket is no longer read
_IDLE = 45.0  # seconds; well below the 90 s after which servers close
_KEPT = 32  # idle connections

Address = tuple[str, int]
Headers = list[tuple[str, str]]


class Backend(Connection):
    """One connection."""

    def __init__(self) -> None:
        self._room: asyncio.Future[None] | None = None  # set while the other side does not take what we write
        self._raw = self._bodyless = False
        super().__init__()

    def _begin(self) -> None:
        super()._begin()
        self.headers: Headers = []

    async def send(self, message: bytes, *, bodyless: bool = False) -> None:
        """Send a request; return when the head of its answer is there. `bodyless`: the answer to HEAD has no body."""
        if self.transport.is_closing():
            raise ConnectionFailed("EOF")
        self._begin()
        self._bodyless = bodyless
        self.transport.write(message)
        while not self._head_done:
            await self._wait()

    async def send_raw(self, message: bytes) -> bytes:
        """Send a request for an upgrade; the head of the answer as it is, and what follows it is for `read`."""
        self._begin()
        self._raw = True
        self.transport.write(message)
        head = b""
        while b"\r\n\r\n" not in head:
            piece = await self.read()
            if not piece:
                raise ConnectionFailed("unexpected EOF")
            head += piece
        head, _, rest = head.partition(b"\r\n\r\n")
        if rest:
            self._pieces.appendleft(rest)
        return head + b"\r\n\r\n"

    def write(self, data: bytes) -> None:
        """Send what belongs to an upgraded stream."""
        self.transport.write(data)

    @property
    def full(self) -> bool:
        """Whether the other side does not take what is written."""
        return self._room is not None

    async def drain(self) -> None:
        """Wait until it does."""
        if self._room is not None:
            await self._room

    # -- asyncio's side

    def connection_lost(self, error: Exception | None) -> None:
        self.resume_writing()
        names = {name.lower() for name, _ in self.headers}
        ends_with_connection = self._head_done and not names & {"content-length", "transfer-encoding"}
        if self._raw or ends_with_connection:
            self.complete = True
            self._wake()
        elif not self.complete:
            self._fail(ConnectionFailed("unexpected EOF" if self._head_done else str(error or "EOF")))

    def data_received(self, data: bytes) -> None:
        self.answered = True
        if self._raw:
            self._take(data)
        else:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade:
                self._fail(ConnectionFailed("the server changed the protocol without being asked to"))
                self.abort()
            except httptools.HttpParserError:
                text = data[:64].split(b"\n")[0].decode("latin-1").strip()
                self._fail(ConnectionFailed(f"net/http: HTTP/1.x transport connection broken: malformed {text!r}"))
                self.abort()
        self._pause_if_full(_BUFFER)

    def pause_writing(self) -> None:
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def _take(self, data: bytes) -> None:
        self._pieces.append(data)
        self._unread += len(data)
        self._wake()

    # -- the parser's side

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status >= 200:
            self._head_done = True
            self.complete = self._bodyless
            self._wake()

    def on_body(self, body: bytes) -> None:
        self._take(body)

    def on_message_complete(self) -> None:
        if self.status < 200:  # 100 Continue: the answer is still to come
            self.headers = []
            return
        self.complete = True
        self.reusable = self._parser.should_keep_alive() and not self._bodyless
        self._wake()


class Transport:
    """The connections to one server, which may have several addresses; or to many, each by its address."""

    def __init__(self, tls: ssl.SSLContext | None, server_name: str, connect_timeout: float = CONNECT_TIMEOUT) -> None:
        """Without `tls` in the clear; without a name of its own a server goes by its address."""
        self._connect_timeout = connect_timeout
        self._tls = tls
        self._server_name = server_name
        self._idle: dict[Address, list[Backend]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    async def request(self, address: Address, message: bytes, *, repeatable: bool, bodyless: bool = False) -> Backend:
        """Send a request; the answer's head is there. Give the connection back with `release`, or `abort` it."""
        while True:
            kept = self._warm(address)
            used = kept is not None
            backend = kept or await self.connect(address)
            try:
                await backend.send(message, bodyless=bodyless)
            except ConnectionFailed:
                self.abort(backend)
                if not used or not repeatable or backend.answered:
                    raise
            except BaseException:
                self.abort(backend)
                raise
            else:
                return backend

    def _warm(self, address: Address) -> Backend | None:
        """A connection that was used before and is open still."""
        kept = self._idle.get(address) or []
        while kept:
            backend = kept.pop()
            if backend.still_open():
                return backend
        return None

    async def connect(self, address: Address) -> Backend:
        """A new connection. Raises ConnectionFailed."""
        host, port = address
        name = self._server_name or host
        try:
            async with asyncio.timeout(self._connect_timeout):
                return await connect(Backend(), tls=self._tls, server_name=name, host=host, port=port)
        except TimeoutError as error:
            raise ConnectionFailed(f"cannot connect to {host}:{port}: i/o timeout") from error
        except OSError as error:
            raise ConnectionFailed(f"cannot connect to {host}:{port}: {error}") from error

    def release(self, address: Address, backend: Backend) -> None:
        """Keep a connection whose answer was read to its end for the next request."""
        kept = self._idle.setdefault(address, [])
        if not backend.reusable or backend.transport.is_closing() or self._closed or len(kept) >= _KEPT:
            backend.transport.close()
            return
        loop = asyncio.get_running_loop()
        backend.idle_since = loop.time()
        kept.append(backend)
        if self._sweeper is None:
            self._sweeper = loop.call_later(_IDLE, self._sweep)

    def abort(self, backend: Backend) -> None:
        """Close a connection in the middle of something."""
        backend.abort()

    def close(self) -> None:
        """Close what is idle; requests under way go on."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for kept in self._idle.values():
            for backend in kept:
                backend.abort()
        self._idle.clear()

    def _sweep(self) -> None:
        """Close what has not been used for long. Runs only while something is idle."""
        self._sweeper = None
        loop = asyncio.get_running_loop()
        for address, kept in list(self._idle.items()):
            for backend in [each for each in kept if loop.time() - each.idle_since >= _IDLE]:
                backend.abort()
                kept.remove(backend)
            if not kept:
                del self._idle[address]
        if self._idle:
            self._sweeper = loop.call_later(_IDLE, self._sweep)
