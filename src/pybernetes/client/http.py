"""HTTP/1.1 towards one server: requests with a known body, answers whole or piece by piece.

Own protocol on `httptools`, for the reason the server has its own (docs/design.md, 'HTTP'): a framework costs more to
import than all of this component. What it promises:

- at most `limit` connections carry requests; who comes later waits in line. Streams (watches) do not count: they
  last, and would starve everything else;
- a connection is used again after a complete answer, the warmest one first, and never after an error;
- connections are opened one after another: a handshake costs both sides more than most requests, and while it lasts
  others may become free. Who has waited for long opens one of its own;
- a cancelled request closes its connection: the server sees that the client has gone;
- a GET that finds its kept connection closed by the server in that very moment is sent again on a new one; other
  methods are not, because it is unknown whether the server has acted.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from urllib.parse import urlsplit

import httptools

from pybernetes.net.dialer import connect

from .connection import Connection, ConnectionFailed

__all__ = [
    "CONNECT_TIMEOUT",
    "REQUEST_TIMEOUT",
    "ConnectionFailed",
    "HTTPClient",
    "Headers",
    "Response",
    "Stream",
    "TooLarge",
]

CONNECT_TIMEOUT = 10.0
REQUEST_TIMEOUT = 65.0  # the server gives up after 60 s and says so
LIMIT = 64
IDLE_TIMEOUT = 45.0  # well below the 90 s after which servers close
DIAL_PATIENCE = 0.1  # seconds; on one machine a handshake takes 2 ms
BUFFER_LIMIT = 1 << 20  # unread bytes of a stream before the socket is no longer read


Headers = Mapping[str, str | Sequence[str]]
"""Names to values; several values are several lines."""


class TooLarge(ConnectionFailed):
    """The answer is longer than the client wants to read."""


class Response:
    """A complete answer. Header names are in lower case."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class Stream:
    """An answer whose body arrives piece by piece. Close it; a complete one gives its connection back."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self.status = connection.status
        self.headers = connection.headers

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces()

    async def _pieces(self) -> AsyncIterator[bytes]:
        while True:
            piece = await self._connection.read()
            if not piece:
                return
            yield piece

    async def read(self) -> bytes:
        """The rest of the body."""
        return b"".join([piece async for piece in self])

    def close(self) -> None:
        """Stop reading."""
        self._connection.abort()


class HTTPClient:
    """A pool of connections to one server."""

    def __init__(
        self,
        url: str,
        tls: ssl.SSLContext | None = None,
        *,
        server_hostname: str | None = None,
        limit: int = LIMIT,
        max_body: int = 0,
        dial: Callable[[], Awaitable[tuple[str, int]]] | None = None,
        replay: bool = False,
    ) -> None:
        """`max_body` bounds answers that are read whole (0 = no bound); `dial` says where each new connection goes;
        `replay` sends any method again, not only GET, when a kept connection turns out to be closed."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not a server's URL: {url!r}")
        self.secure = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.secure else 80)
        self.base_path = parts.path.rstrip("/")
        self._tls = (tls or ssl.create_default_context()) if self.secure else None
        self._server_hostname = server_hostname
        self.host_header = parts.netloc.rpartition("@")[2]
        self._slots = limit
        self.max_body = max_body
        self._dial = dial
        self._replay = replay
        self._slots_line = _Line()
        self._dialing = False
        self._connections_line = _Line()
        self._idle: list[_Connection] = []  # the warmest last; every one is open and has no answer pending
        self._open: set[_Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The TLS settings of new connections; None: in the clear."""
        return self._tls

    async def request(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes = b"",
        within: float | None = REQUEST_TIMEOUT,
    ) -> Response:
        """Send a request and read the whole answer. `ConnectionFailed` or `TimeoutError` if there is none.

        `within` covers everything: waiting for one of the connections, the request and the answer.
        """
        async with asyncio.timeout(within):
            await self._acquire()
            try:
                return await self._request(method, target, headers, body)
            finally:
                self._release()

    async def stream(
        self, method: str, target: str, headers: Headers, body: bytes = b"", within: float = REQUEST_TIMEOUT
    ) -> Stream:
        """Send a request on a connection of its own and return when the head of the answer has arrived."""
        async with asyncio.timeout(within):
            connection = await self._connect()
            try:
                await connection.send(self._message(method, target, headers, body), streaming=True)
            except BaseException:
                connection.abort()
                raise
        return Stream(connection)

    def retire_connections(self) -> None:
        """Use no connection again that is open now: the next ones are made with today's TLS settings."""
        for connection in self._open:
            connection.retired = True
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.abort()

    async def close(self) -> None:
        """Close all connections; requests in flight fail."""
        self._closed = True
        if self._sweeper:
            self._sweeper.cancel()
        connections = list(self._open)
        for connection in connections:
            connection.abort()
        self._idle.clear()
        if connections:
            await asyncio.wait([connection.lost for connection in connections], timeout=1.0)

    async def _request(self, method: str, target: str, headers: Headers, body: bytes) -> Response:
        message = self._message(method, target, headers, body)
        while True:
            connection, reused = await self._take()
            try:
                await connection.send(message, streaming=False)
            except ConnectionFailed:
                if reused and (method == "GET" or self._replay) and not connection.answered:
                    continue
                raise
            except BaseException:
                connection.abort()
                raise
            response = Response(connection.status, connection.headers, connection.body())
            self._give_back(connection)
            return response

    def _message(self, method: str, target: str, headers: Headers, body: bytes) -> bytes:
        lines = [f"{method} {self.base_path}{target} HTTP/1.1\r\nHost: {self.host_header}\r\n"]
        if body or method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(body)}\r\n")
        for name, value in headers.items():
            values = (value,) if isinstance(value, str) else value
            lines += [f"{name}: {each}\r\n" for each in values]
        return "".join(lines).encode() + b"\r\n" + body

    async def _acquire(self) -> None:
        if self._closed:
            raise ConnectionFailed("the client is closed")
        if self._slots:
            self._slots -= 1
        else:
            await self._slots_line.wait(self._release)

    def _release(self) -> None:
        if not self._slots_line.next():
            self._slots += 1

    async def _take(self) -> tuple[_Connection, bool]:
        """A connection, and whether it was used before."""
        while True:
            while self._idle:
                connection = self._idle.pop()
                if connection.still_open():
                    if not self._dialing:
                        self._connections_line.next()  # may open one
                    return connection, True
            if not self._dialing:
                return await self._dial_alone(), False
            try:
                async with asyncio.timeout(DIAL_PATIENCE):
                    await self._connections_line.wait(self._connections_line.next)
            except TimeoutError:
                return await self._connect(), False

    async def _dial_alone(self) -> _Connection:
        self._dialing = True
        try:
            return await self._connect()
        finally:
            self._dialing = False
            self._connections_line.next()

    async def _connect(self) -> _Connection:
        if self._closed:
            raise ConnectionFailed("the client is closed")
        host, port = (self.host, self.port) if self._dial is None else await self._dial()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                name = self._server_hostname or self.host
                return await connect(_Connection(self), tls=self._tls, server_name=name, host=host, port=port)
        except TimeoutError as error:
            raise ConnectionFailed(f"{host}:{port} did not answer in {CONNECT_TIMEOUT:.0f} s") from error
        except OSError as error:
            raise ConnectionFailed(f"cannot connect to {host}:{port}: {error}") from error

    def _give_back(self, connection: _Connection) -> None:
        if not connection.reusable or connection.retired or self._closed:
            connection.transport.close()
            return
        connection.idle_since = asyncio.get_running_loop().time()
        self._idle.append(connection)
        self._connections_line.next()
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(IDLE_TIMEOUT, self._sweep)

    def _sweep(self) -> None:
        """Close what has not been used for long. Runs only while something is idle."""
        self._sweeper = None
        loop = asyncio.get_running_loop()
        keep = []
        for connection in self._idle:
            if connection.transport.is_closing():
                continue
            if loop.time() - connection.idle_since >= IDLE_TIMEOUT:
                connection.abort()
            else:
                keep.append(connection)
        self._idle = keep
        if keep:
            self._sweeper = loop.call_later(keep[0].idle_since + IDLE_TIMEOUT - loop.time(), self._sweep)

    def opened(self, connection: _Connection) -> None:
        """A connection has been made (called by it)."""
        self._open.add(connection)

    def lost(self, connection: _Connection) -> None:
        """A connection is gone (called by it)."""
        self._open.discard(connection)


class _Line:
    """Those who wait for their turn, in order."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self, pass_on: Callable[[], object]) -> None:
        """Return when it is our turn. A waiter that is cancelled in the round in which its turn comes passes it on."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                pass_on()
            raise

    def next(self) -> bool:
        """It is the next one's turn; whether there is one."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return True
        return False


class _Connection(Connection):
    """A connection of the pool; the headers of an answer by name, in lower case."""

    def __init__(self, client: HTTPClient) -> None:
        self._client = client
        self._streaming = False
        self.retired = False
        super().__init__()
        self.lost: asyncio.Future[None] = self._loop.create_future()

    def _begin(self) -> None:
        super()._begin()
        self.headers: dict[str, str] = {}

    async def send(self, message: bytes, *, streaming: bool) -> None:
        """Send; return when the answer is there (all of it, or its head when streaming)."""
        if self.transport.is_closing():
            raise ConnectionFailed("the server closed the connection")
        self._begin()
        self._streaming = streaming
        self.transport.write(message)
        while not (self._head_done if streaming else self.complete):
            await self._wait()

    def body(self) -> bytes:
        """The body that has arrived."""
        return b"".join(self._pieces)

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._client.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._client.lost(self)
        if not self.lost.done():
            self.lost.set_result(None)
        if not self.complete:
            if self._head_done and "content-length" not in self.headers and "transfer-encoding" not in self.headers:
                self.complete = True  # the body ends with the connection
                self._wake()
            else:
                failed = ConnectionFailed(f"the server closed the connection{f': {error}' if error else ''}")
                failed.__cause__ = error
                self._fail(failed)

    def data_received(self, data: bytes) -> None:
        self.answered = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionFailed(f"not an HTTP answer: {error}"))
            self.abort()
        if self._streaming:
            self._pause_if_full(BUFFER_LIMIT)

    # -- the parser's side

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status >= 200:
            self._head_done = True
            if self._streaming:
                self._wake()

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._unread += len(body)
        if self._streaming:
            self._wake()
        elif self._unread > self._client.max_body > 0:
            self._fail(TooLarge(f"the answer is longer than {self._client.max_body} bytes"))
            self.abort()

    def on_message_complete(self) -> None:
        if self.status < 200:  # 100 Continue: the answer is still to come
            self.headers = {}
            return
        self.complete = True
        self.reusable = self._parser.should_keep_alive() and not self._streaming
        self._wake()
