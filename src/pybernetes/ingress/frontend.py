"""Clients' connections: requests one after another, bodies as they come, answers as fast as the client takes them.

The server of `net.http` reads whole bodies, which a proxy must not; this one streams. A connection is served by one
task at a time. What it takes care of:

- a head is refused that others could read in another way (`net.request_heads`, and the parser's own rules);
- who sends on while the body or the requests before are not yet taken is not read any more;
- a client that is slow with a head or a body, takes nothing of an answer, or is silent is closed; others do not notice;
- when a client goes away, the task that serves it is cancelled;
- after `drain` connections are closed when their answers are there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import httptools
import msgspec

from pybernetes.net.fair_turns import Pace
from pybernetes.net.request_heads import problem_of

from .headers import Client, Pairs

log = logging.getLogger(__name__)
MOST_HEAD = 64 * 1024
BUFFER = 256 * 1024
"""Bytes of a body that wait for the endpoint."""
UNSENT = 256 * 1024
"""Bytes of an answer that wait for the client."""
PIPELINED, MOST_PIPELINED = 16, 1024
"""Requests behind the one that is served: from how many on the client is not read, and how many there may be (some
arrive together)."""
LINGER = 2.0
"""Seconds in which the rest of an unwanted body is read."""
KEEPALIVE = 60
"""Seconds of silence after which a client that has left HTTP is asked whether it is there."""
_HELLO_GAP = 0.001
_JUDGED = frozenset((b"host", b"transfer-encoding", b"expect", b"content-length", b"upgrade"))


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds that a client may take; up to a half more pass until the next check."""

    header: float = 30.0
    body: float = 60.0
    """Between two pieces of a body."""
    idle: float = 75.0
    write: float = 60.0
    """Without taking anything of an answer."""


class ClientGone(ConnectionResetError):
    """The client closed its connection, or sent what is no request in the middle of a body."""


class Request:
    """One request; its body arrives while it is served."""

    def __init__(self, connection: Frontend) -> None:
        self.connection = connection
        self.method = b""
        self.target = b""
        self.headers: Pairs = []
        self.host = ""
        self.length: int | None = None
        self.chunked = False
        self.upgrade = b""
        self.expects = False
        self.keep_alive = True
        self.version = "1.1"
        self.complete = False
        self.received = 0
        self._pieces: deque[bytes] = deque()
        self._unread = 0
        self._waiter: asyncio.Future[None] | None = None

    @property
    def has_body(self) -> bool:
        """Whether anything follows the head."""
        return self.chunked or bool(self.length)

    def push(self, piece: bytes) -> None:
        """A piece of the body has arrived."""
        self._pieces.append(piece)
        self._unread += len(piece)
        self.received += len(piece)
        self.wake()

    @property
    def full(self) -> bool:
        """Whether the client should wait."""
        return self._unread > BUFFER

    def wake(self) -> None:
        """Something has changed for who reads."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take(self) -> bytes:
        """Take the part of the body that has arrived, without waiting."""
        piece = b"".join(self._pieces)
        self._pieces.clear()
        self._unread = 0
        self.connection.read_on()
        return piece

    async def read(self) -> bytes:
        """The next piece of the body; empty at its end. Raises ClientGone."""
        while not self._pieces and not self.complete:
            if self.connection.broken:
                raise ClientGone("the client sent no valid body")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self.take()


Serve = Callable[[Request], Awaitable[None]]


class Frontend(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.transport: asyncio.Transport
        self.client = Client("", 0, False)
        self.broken = False
        """The last bytes were no request; nothing after them is read."""
        self.tunnel: asyncio.Transport | None = None
        """The endpoint's transport, once both have left HTTP."""
        self._loop = server.loop
        self._parser: Any = httptools.HttpRequestParser(self)
        self._request: Request | None = None  # the one that arrives
        self._queue: deque[Request] = deque()
        self._serving: Request | None = None
        self._task: asyncio.Task[None] | None = None
        self._refusal: tuple[int, str] | None = None
        self._after: bytes | None = None  # what came behind a request to leave HTTP
        self._paused = False
        self._head_bytes = 0
        self._head_done = False
        self._facts: dict[str, str] = {}
        self._repeated: set[str] = set()
        self._resume: asyncio.Future[None] | None = None
        self._stuck_since = 0.0
        self._active = 0.0
        self._watchdog: asyncio.TimerHandle | None = None

    # -- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.server.connections.add(self)
        self.transport.set_write_buffer_limits(high=UNSENT)
        self._active = self._loop.time()
        self._watchdog = self._loop.call_later(self.server.look_every, self._look)
        peer, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        secure = transport.get_extra_info("ssl_object") is not None
        self.client = Client(
            peer[0] if isinstance(peer, tuple) else "", local[1] if isinstance(local, tuple) else 0, secure
        )
        if self.server.draining or len(self.server.connections) > self.server.most_connections:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        self.broken = True
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self._resume is not None and not self._resume.done():
            self._resume.set_exception(ClientGone("the client went away"))
            self._resume.exception()  # there may be no waiter
        if self.tunnel is not None:
            self.tunnel.close()
        if self._task is not None:
            self._task.cancel()
        self._queue.clear()
        self._parser = None  # it holds us

    def data_received(self, data: bytes) -> None:
        self._active = self._loop.time()
        if self.tunnel is not None:
            self.tunnel.write(data)
            return
        if self.broken or self._refusal is not None:
            return
        if self._after is not None:
            self._after += data
            return self._pause(len(self._after) > BUFFER)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._after = data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as error:
            refused = error.__context__
            self._refuse(*(refused.args if isinstance(refused, _Refused) else (400, "Bad Request")))
        except httptools.HttpParserError:
            self._refuse(400, "Bad Request")
        else:
            self._pause(len(self._queue) > PIPELINED or (self._request is not None and self._request.full))

    def pause_writing(self) -> None:
        self._stuck_since = self._loop.time()
        if self.tunnel is not None:
            self.tunnel.pause_reading()
        else:
            self._resume = self._loop.create_future()

    def resume_writing(self) -> None:
        self._stuck_since = 0.0
        resume, self._resume = self._resume, None
        if resume is not None and not resume.done():
            resume.set_result(None)
        if self.tunnel is not None:
            self.tunnel.resume_reading()

    # -- the parser's side

    def on_message_begin(self) -> None:
        self._request = Request(self)
        self._head_bytes = 0
        self._head_done = False
        self._facts, self._repeated = {}, set()

    def on_url(self, url: bytes) -> None:
        assert self._request is not None
        self._request.target += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        assert self._request is not None
        self._count(len(name) + len(value))
        if self._head_done:
            return  # behind the body: not passed on
        value = value.rstrip(b" \t")
        key = name.lower()
        if key in _JUDGED:
            text = key.decode()
            if text in self._facts:
                self._repeated.add(text)
            self._facts[text] = value.decode("latin-1")
        self._request.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._head_done = True
        request, facts, parser = self._request, self._facts, self._parser
        assert request is not None
        request.version = parser.get_http_version()
        problem = problem_of(request.version, facts, self._repeated)
        if problem is not None:
            raise _Refused(*problem)
        if "transfer-encoding" in self._repeated or ("transfer-encoding" in facts and "content-length" in facts):
            raise _Refused(400, "Bad Request")
        request.method = parser.get_method()
        request.keep_alive = parser.should_keep_alive()
        request.host = _host(facts.get("host", ""))
        request.chunked = "transfer-encoding" in facts
        if (length := facts.get("content-length")) is not None:
            if not length.isdecimal() or not length.isascii():
                raise _Refused(400, "Bad Request")
            request.length = int(length)
        request.expects = "expect" in facts and request.has_body
        if parser.should_upgrade():
            if request.has_body:
                # The parser would take the body for what comes behind the request, and so for another request.
                raise _Refused(400, "Bad Request: a body and an upgrade in one request are not supported")
            request.upgrade = facts.get("upgrade", "").encode("latin-1")
        if len(self._queue) > MOST_PIPELINED:
            raise _Refused(429, "Too Many Requests: at once, on one connection")
        self._queue.append(request)
        self._serve()

    def on_body(self, body: bytes) -> None:
        assert self._request is not None
        self._request.push(body)

    def on_message_complete(self) -> None:
        assert self._request is not None
        self._request.complete = True
        self._request.wake()
        self._request = None

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MOST_HEAD:
            raise _Refused(431, "Request Header Fields Too Large")

    # -- serving

    def _serve(self) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._queue:
                request = self._serving = self._queue.popleft()
                await self.server.serve(request)
                self._serving = None
                self._active = self._loop.time()
                if self.tunnel is not None:
                    return
                if self._after is not None and not self._queue:
                    self._stay()
                if not request.keep_alive or self.server.draining or not request.complete:
                    self._end(request)
                    return
                self.read_on()
            if self._refusal is not None:
                self._answer_refusal()
        except ConnectionError:
            self.transport.abort()
        except asyncio.CancelledError:
            if not self.transport.is_closing():
                self.transport.abort()
            raise
        except Exception:  # of ours: the client must not wait for an answer that never comes
            log.exception("a request cannot be served")
            self.transport.abort()
        finally:
            self._task = self._serving = None

    def _end(self, request: Request) -> None:
        """Close. What is left of a body is read and forgotten for a while: a client that still sends when its
        connection is closed may lose the answer."""
        if request.complete or self.transport.is_closing():
            return self.transport.close()
        self.broken = True
        request.take()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._loop.call_later(LINGER, self.transport.close)

    def _stay(self) -> None:
        """The request to leave HTTP was answered without leaving it: what came behind it is the next request."""
        data, self._after = self._after, None
        self._parser = httptools.HttpRequestParser(self)
        self._request = None
        self.read_on()
        if data:
            self._loop.call_soon(self.data_received, data)

    def write(self, data: bytes) -> None:
        """Send bytes; does not wait."""
        self.transport.write(data)

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written. Raises ClientGone."""
        if self.transport.is_closing():
            raise ClientGone("the client went away")
        if self._resume is not None:
            await asyncio.shield(self._resume)

    def leave_http(self, endpoint: asyncio.Transport) -> bytes:
        """From now on all that arrives goes to the endpoint; what has arrived already is returned."""
        rest, self._after = self._after or b"", None
        self.tunnel = endpoint
        connection = self.transport.get_extra_info("socket")
        if connection is not None:  # the only way to notice that a silent client has lost its power
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE // 4)
        self.read_on()
        return rest

    def read_on(self) -> None:
        """Resume reading once there is room again."""
        full = len(self._queue) > PIPELINED or (self._request is not None and self._request.full)
        if self._paused and not full and not self.transport.is_closing():
            self._paused = False
            self.transport.resume_reading()

    def _pause(self, full: bool) -> None:
        if full and not self._paused:
            self._paused = True
            self.transport.pause_reading()

    def _refuse(self, status: int, message: str) -> None:
        """Refuse an invalid request with a status, in its turn; an incomplete body before it counts as broken."""
        self._refusal = status, message
        if self._request is not None and (self._serving is self._request or self._request in self._queue):
            self.broken = True
            self._request.wake()
        if self._task is None:
            self._answer_refusal()

    def _answer_refusal(self) -> None:
        assert self._refusal is not None
        status, message = self._refusal
        self.server.refused(status)
        body = message.encode() + b"\n"
        self.write(
            b"HTTP/1.1 %d %b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"
            b"Connection: close\r\n\r\n%b" % (status, message.partition(":")[0].encode(), len(body), body)
        )
        self.transport.close()

    def _look(self) -> None:
        """Close the connection if the client is stuck; look again when it could become so."""
        timeouts, now = self.server.timeouts, self._loop.time()
        silent = now - self._active
        arriving = self._request is not None and not self._paused
        limit = timeouts.body if self._head_done else timeouts.header
        stuck_reading = arriving and silent >= limit
        stuck_writing = self._stuck_since and now - self._stuck_since >= timeouts.write
        if self.tunnel is None and (stuck_reading or stuck_writing):
            return self.transport.abort()
        if self.tunnel is None and self._task is None and self._request is None and silent >= timeouts.idle:
            return self.transport.close()
        self._watchdog = self._loop.call_later(self.server.look_every, self._look)

    def shut(self) -> None:
        """Close now if nothing is being served, else after the answer."""
        if self._task is None and self.tunnel is None:
            self.transport.close()


class Server:
    """All clients' connections."""

    def __init__(
        self,
        serve: Serve,
        *,
        timeouts: Timeouts | None = None,
        most_connections: int = 4096,
        refused: Callable[[int], object] = lambda _: None,
    ) -> None:
        """`refused` is called with the status of what was no request."""
        self.serve, self.refused = serve, refused
        self.timeouts = timeouts or Timeouts()
        each = self.timeouts
        self.look_every = min(each.header, each.body, each.idle, each.write) / 2
        self.most_connections = most_connections
        self.loop = asyncio.get_running_loop()
        self.connections: set[Frontend] = set()
        self.draining = False
        self.hellos = Pace(self.loop, _HELLO_GAP)
        """For handshakes (`net.acceptor`)."""

    def __call__(self) -> Frontend:
        return Frontend(self)

    async def drain(self, seconds: float) -> None:
        """Let the requests in flight finish, at most this long; then close what is left."""
        self.draining = True
        for connection in list(self.connections):
            connection.shut()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    if all(each.tunnel is not None for each in self.connections):
                        break
                    await asyncio.sleep(0.02)
        for connection in list(self.connections):
            connection.transport.abort()


class _Refused(Exception):
    """Raised inside a parser callback: status and message."""


def _host(text: str) -> str:
    """The host without its port, in lower case."""
    if text.startswith("["):
        return text.partition("]")[0].lower() + "]"
    return text.partition(":")[0].rstrip(".").lower()
