"""HTTP/1.1 on asyncio: one `Connection` for each client, its requests one after another, answers in one write.

Why not a framework: see docs/design.md, 'HTTP'. What it takes care of, so that handlers need not:

- a request is handed on only when its body is complete and within the limit; a body is never streamed in;
- pipelined requests wait for their turn; answers leave in the order of the requests;
- a client that stops sending in the middle of a request, stops reading its answer, or stays silent is closed; but who
  follows a log, or has left HTTP, may pause as long as they like;
- when the client goes away, the task that serves it is cancelled, so what it held is freed;
- a large answer is handed to the transport in pieces, as the client takes them: the transport encrypts at once whatever
  it is given, which holds up others and takes the memory of the answer once more; large bodies are read in the same
  way, and the pieces of all connections one after another (`pacing`);
- after `drain()` every answer says `Connection: close`, and a connection is closed when its answer has arrived.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import zlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import httptools
import msgspec

from pybernetes.api.randomness import serial_uids

from .fair_turns import Pace
from .messages import Answer, Handler, Headers, Refusal, Request, Response, warning_headers
from .outbox import Outbox
from .request_heads import TRACE, TRACE_SIZE, Head, Heads, problem_of
from .tcp import confirmed, unconfirmed
from .tls_handshakes import unverified

__all__ = [
    "PIECE",
    "Answer",
    "Connection",
    "HTTPServer",
    "Handler",
    "Refusal",
    "Request",
    "Response",
    "Stream",
    "Timeouts",
]

log = logging.getLogger(__name__)

MAX_HEADER_BYTES = 1 << 20  # upstream: Go's http.DefaultMaxHeaderBytes
GZIP_MINIMUM = 128 * 1024  # upstream compresses answers from this size on
PIECE = 256 * 1024  # what is written of a large answer before looking whether the client takes it
UNSENT = 64 * 1024  # bytes of a stream that wait in the transport for a slow client, about
_BULK = 64 * 1024  # what is read of a body at once; the rest by turns
_HELLO_GAP = 0.001  # seconds between two handshakes, which take half of that: the rest is for those who are known
_DRAIN_STEP = 0.01  # seconds between looks at the connections that are left
_DRAIN_STUCK = 5.0  # seconds in which a client must take something then
_THREAD_FROM = 1 << 20  # compress in a thread from this size on: zlib frees the GIL


class _Reasons(dict[int, bytes]):
    """Reason phrases; codes without one (a webhook may refuse with 450) have the words that Go uses for them."""

    def __missing__(self, code: int) -> bytes:
        return b"status code %d" % code


_REASON = _Reasons((status.value, status.phrase.encode()) for status in HTTPStatus)

STRANGERS_BODIES = 32 << 20
"""Bytes of large bodies that all connections together may hold before it is known whose they are."""
_CACHING = "no-cache, private"  # of API responses, unless the response sets its own


class _Heads(dict[int, bytes]):
    """The first lines of the usual answers by code, made when first needed. No code takes more than three digits."""

    def __missing__(self, code: int) -> bytes:
        head = b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\nCache-Control: %b\r\nAudit-Id: " % (
            *status_line(code),
            _CACHING.encode(),
        )
        if 100 <= code <= 999:
            self[code] = head
        return head


def status_line(code: int) -> tuple[int, bytes]:
    """A code and its reason phrase; 500 for what is no code."""
    return (code, _REASON[code]) if 100 <= code <= 999 else (500, _REASON[500])


_HEAD = _Heads()

OVERDUE = "the answer takes too long"
"""Why the task of a request was cancelled, if it was not because the client is gone."""
_METHOD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,255}) ")
_STAND_IN = b"SOURCE"  # a method that the parser knows and no client uses
_BAD_ESCAPE = re.compile(rb"%(?![0-9a-fA-F]{2})")

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds that a client may take; twice as long passes at most until the next check."""

    header: float = 32.0
    """For the head of a request to arrive; upstream's ReadHeaderTimeout."""
    request: float = 60.0
    """For all of a request to arrive; upstream's --request-timeout."""
    idle: float = 90.0
    """Without a request; upstream's IdleTimeout."""
    answer: float = 60.0
    """For us to answer, unless what is asked for lasts; upstream's --request-timeout."""
    write: float = 60.0
    """Without reading anything of what is waiting for it."""
    lasting: float = 1800.0
    """For which what goes on and on is served at least, and twice as long at most; upstream's --min-request-timeout."""


class Stream:
    """An answer whose body is sent piece by piece (chunked)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        """Send one piece; does not wait."""
        if data:
            self._connection.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written."""
        await self._connection.drain()

    async def send(self, data: bytes) -> None:
        """Send one piece and wait as `drain` does.

        A long one is given to the transport part by part: what a slow client has not taken yet stays here, where all
        who are sent the same bytes share them.
        """
        if len(data) <= UNSENT:
            self.write(data)
            await self._connection.drain()
            return
        connection = self._connection
        connection.write(b"%x\r\n" % len(data))
        whole = memoryview(data)
        for start in range(0, len(data), UNSENT):
            connection.write(whole[start : start + UNSENT])
            await connection.drain()
        connection.write(b"\r\n")

    def end(self) -> None:
        """Say that this was all."""
        self._connection.write(b"0\r\n\r\n")


class Connection(asyncio.Protocol):
    """One client connection."""

    def __init__(self, server: HTTPServer) -> None:
        self.server = server
        self.transport: asyncio.Transport
        self.peer_certificate: Any = None
        self.peer_verified = False
        self.peer_address = ""
        self.flow = ""
        """The user of this connection, as far as a filter has reported it: large requests of one user take turns with
        others'."""
        self.stranger = True
        """Whether the user of this connection is still unknown to the handlers."""
        self._held = 0  # bytes of large bodies that count against STRANGERS_BODIES
        self._loop = server.loop
        self._parser: Any = httptools.HttpRequestParser(self)
        self._whole: bytes | None = None  # what arrived, when it began a request: perhaps all of one
        self._url = b""
        self._method = ""  # if the parser does not know it
        self._headers: dict[str, str] = {}
        self._repeated: dict[str, list[str]] | None = None
        self._head_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._waiting: list[tuple[Request, bool]] = []  # complete requests behind the one being served
        self._task: asyncio.Task[None] | None = None
        self._request: Request | None = None  # what the task serves
        self._keep_alive = True
        self._streaming = False
        self._upgraded: Callable[[bytes], None] | None = None
        self._ended: Callable[[], None] | None = None  # called instead of cancelling the task when the client goes
        self.lasting = False
        """Whether the response goes on for as long as the client likes: at its pace, and a shutdown does not wait for
        its end."""
        self._after: bytes | None = None  # bytes behind an Upgrade request without a response yet
        self._refused: tuple[int, str] | None = None  # what came last is no request; nothing after it is read
        self._resume: asyncio.Future[None] | None = None  # set while the write buffer is too full
        self._receiving = False  # between the first byte of a request and its end
        self._head_complete = False
        self._active = 0.0  # when something last arrived or was last answered
        self._taken = 0  # what the client had taken at the last look
        self._taken_at = 0.0  # when it last had taken something, or all
        self._watchdog: asyncio.TimerHandle | None = None

    # -- the transport's side -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.server.connections.add(self)
        self._active = self._loop.time()
        self._look_later()
        if self.server.draining:
            transport.close()
        peer = transport.get_extra_info("peername")
        self.peer_address = peer[0] if isinstance(peer, tuple) else ""
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self.peer_certificate = transport.get_extra_info("peercert")
            self.peer_verified = not unverified(tls)
            self.stranger = not (self.peer_certificate and self.peer_verified)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        # The parser holds us, and we hold a transport with large buffers: not to be left for the garbage collector.
        self._parser = None
        if self._watchdog:
            self._watchdog.cancel()
            self._watchdog = None
        if self._resume and not self._resume.done():
            self._resume.set_exception(ConnectionResetError("the client went away"))
            self._resume.exception()  # there may be no waiter
        self._resume = None
        self._waiting.clear()
        self._release()
        if self._ended is not None and not self.server.draining:
            self._ended()
        elif self._task:
            self._task.cancel()
        if self._upgraded is not None:  # the new owner of the connection refers to us, too
            self._upgraded, self._ended = _ignore, None

    def data_received(self, data: bytes) -> None:
        if self._upgraded:
            return self._upgraded(data)
        if self._refused:
            return None
        if self._after is not None:
            self._after += data
            return self._limit_after()
        if self._receiving:
            self._whole = None
        else:
            cut = data.find(b"\r\n\r\n") + 4
            head = self.server.heads.get(data[:cut])
            trace = ""
            if head is None and cut > TRACE_SIZE and data.startswith(TRACE, cut - TRACE_SIZE):
                head = self.server.heads.get(data[: cut - TRACE_SIZE] + b"\r\n")
                trace = data[cut - TRACE_SIZE + len(TRACE) : cut - 4].decode("latin-1")
            if head is not None and len(data) - cut == head.length:
                return self._known(head, data[cut:], trace)
            self._whole = data
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._after = data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as error:
            refused = error.__context__
            self._refuse(*(refused.args if isinstance(refused, _Refused) else (400, "Bad Request")))
        except httptools.HttpParserInvalidMethodError:
            self._foreign_method(data)
        except httptools.HttpParserError:
            self._refuse(400, "Bad Request")
        else:
            if self._receiving and self._body_bytes >= _BULK:
                self.transport.pause_reading()
                self.server.pace.ask(self.flow, self._read_on)

    def _foreign_method(self, data: bytes) -> None:
        """Read a request whose method the parser does not know, but which may be one: its handler answers 405."""
        found = _METHOD.match(data) if self._whole is data and not self._method else None
        if found is None:
            return self._refuse(400, "Bad Request")
        self._method = found[1].decode("ascii")
        self._parser = httptools.HttpRequestParser(self)
        self._receiving = True  # such heads are not worth remembering
        return self.data_received(_STAND_IN + data[found.end(1) :])

    def _read_on(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        self._resume = self._loop.create_future()

    def resume_writing(self) -> None:
        resume, self._resume = self._resume, None
        if resume and not resume.done():
            resume.set_result(None)

    # -- the parser's side --------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = {}
        self._repeated = None
        self._body = []
        self._head_bytes = self._body_bytes = 0
        self._receiving = True
        self._head_complete = False
        self._active = self._loop.time()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        if self._head_complete:
            return  # behind the body: a proxy that has judged the head may not have looked there
        key = name.decode("latin-1").lower()
        text = value.rstrip(b" \t").decode("latin-1")
        if key in self._headers:
            repeated = self._repeated = self._repeated or {}
            repeated.setdefault(key, [self._headers[key]]).append(text)
            text = f"{self._headers[key]},{text}"
        self._headers[key] = text

    def on_headers_complete(self) -> None:
        self._head_complete = True
        headers = self._headers
        problem = problem_of(self._parser.get_http_version(), headers, self._repeated or ())
        if problem is not None:
            raise _Refused(*problem)
        length = headers.get("content-length")
        if self._parser.should_upgrade() and (length not in (None, "0") or "transfer-encoding" in headers):
            # The parser would take the body for what comes behind the request, and so for another request.
            raise _Refused(400, "Bad Request: a body and an upgrade in one request are not supported")
        if length is not None and length.isdecimal() and int(length) > self.server.max_body:
            raise _Refused(413, f"Request entity too large: limit is {self.server.max_body}")
        if headers.get("expect", "").lower() == "100-continue" and not self._task:
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self.server.max_body:
            raise _Refused(413, f"Request entity too large: limit is {self.server.max_body}")
        if self.stranger and self._body_bytes > _BULK:
            self._hold(len(body))
        self._body.append(body)

    def _hold(self, size: int) -> None:
        """Counts a part of a large body; 429 if strangers hold as much as they may together."""
        if self.server.strangers_bytes + size > STRANGERS_BODIES:
            self._release()
            raise _Refused(429, "Too many large requests of unknown clients, please try again later.")
        self._held += size
        self.server.strangers_bytes += size

    def _release(self) -> None:
        self.server.strangers_bytes -= self._held
        self._held = 0

    def on_message_complete(self) -> None:
        self._receiving = False
        raw, _, query = self._url.partition(b"?")
        if raw[:1] != b"/":  # an absolute form, or CONNECT's authority
            parsed = httptools.parse_url(self._url)
            raw = parsed.path or b"/"
        if b"%" in raw and _BAD_ESCAPE.search(raw):
            raise _Refused(400, "Bad Request")
        path = raw.decode("utf-8", "replace")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        method, self._method = self._method or self._parser.get_method().decode(), ""
        request = Request(self, method, path, query.decode("utf-8", "replace"), self._headers, body)
        request.repeated = self._repeated
        request.traceparent = self._headers.get("traceparent", "")
        keep_alive = self._parser.should_keep_alive()
        if self._whole is not None:
            if keep_alive:
                self._learn(request, self._whole)
            self._whole = None  # this request is taken, and must not be again when what follows cannot be read
        self._take(request, keep_alive)

    def _known(self, head: Head, body: bytes, trace: str) -> None:
        """A request whose head was seen before and whose body is complete."""
        self._active = self._loop.time()
        request = Request(self, head.method, head.path, head.query_string, dict(head.headers), body, head)
        request.traceparent = trace
        if self._task:
            self._take(request, True)
        else:
            self._serve(request, True)

    def _learn(self, request: Request, whole: bytes) -> None:
        """Remember the head, if the request is all that arrived."""
        if request.repeated is not None:
            return  # each value counts by itself: groups of a user, for example
        length = len(request.body)
        if request.headers.get("content-length", "0") == str(length) and whole.endswith(b"\r\n\r\n" + request.body):
            raw = whole[: len(whole) - length]
            if raw.find(b"\r\n\r\n") + 4 == len(raw):
                headers = dict(request.headers)
                request.head = Head(request.method, request.path, request.query_string, headers, length)
                self.server.heads.add(raw, request.head)

    def _take(self, request: Request, keep_alive: bool) -> None:
        if self._task:
            self._waiting.append((request, keep_alive))
            self.transport.pause_reading()
        else:
            self._serve(request, keep_alive)

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEADER_BYTES:
            raise _Refused(431, "Request Header Fields Too Large")

    # -- serving ------------------------------------------------------------------------------------------------

    def _serve(self, request: Request, keep_alive: bool) -> None:
        self._keep_alive = keep_alive
        self._request = request
        self._task = self._loop.create_task(self._run(request))

    async def _run(self, request: Request) -> None:
        server = self.server
        server.serving += 1
        try:
            response = await server.handler(request)
            if response is not None:
                body = response.body if request.method != "HEAD" else b""
                if len(body) < GZIP_MINIMUM:
                    answer = self._head_of(request, response, len(body)) + body
                    if server.serving > 1 and self._keep_alive:
                        server.outbox.post(self.transport, answer)
                    else:
                        self.write(answer)
                else:
                    await self._send_large(request, response)
        except ConnectionError:
            self.transport.abort()
        except asyncio.CancelledError as cancelled:
            if self._streaming or cancelled.args == (OVERDUE,):
                self.transport.abort()
            raise
        except Exception:  # there is no answer, or it cannot be written: the client must not wait for it
            log.exception("%s %s cannot be answered", request.method, request.path)
            self.transport.abort()
        finally:
            if not self._streaming and not self._upgraded:
                server.serving -= 1
            self._task = self._request = None
        if self._held and not self._waiting and not self._receiving:
            self._release()
        self._streaming = self.lasting = False
        self._active = self._loop.time()
        if self._upgraded:
            return
        if self._after is not None and not self._waiting:
            self._go_on()
        if self._task:
            return
        if not self._keep_alive or self.server.draining:
            self.transport.close()
        elif self._waiting:
            self._serve(*self._waiting.pop(0))
            if not self._waiting:
                self.transport.resume_reading()
        elif self._refused:
            self._close_with_refusal(*self._refused)

    def _go_on(self) -> None:
        """The Upgrade request was refused: the bytes behind it are the next request."""
        data, self._after = self._after, None
        self.transport.resume_reading()
        if self._keep_alive and not self.server.draining:
            self._parser = httptools.HttpRequestParser(self)
            if data:
                self.data_received(data)

    def _limit_after(self) -> None:
        """Stop reading from a client that sends too much before its Upgrade request is answered."""
        if self._after is not None and len(self._after) > MAX_HEADER_BYTES:
            self.transport.pause_reading()

    def _head_of(self, request: Request, response: Response, length: int) -> bytes:
        """Everything before the body."""
        headers = response.headers
        fast = headers is None and response.content_type == "application/json" and not request.response_headers
        if fast and self._keep_alive and not self.server.draining and not request.warnings:
            wanted = request.wanted_audit_id() if "audit-id" in request.headers else ""
            audit_id = request.audit_id or wanted or self.server.new_audit_id()
            return b"%b%b\r\nDate: %b\r\n%bContent-Length: %d\r\n\r\n" % (
                _HEAD[response.status],
                audit_id.encode("utf-8", "replace"),
                self.server.date(),
                request.extra_head,
                length,
            )
        lines = self._head(request, response.status, response.content_type, headers)
        lines.append(b"Content-Length: %d\r\n\r\n" % length)
        return b"".join(lines)

    async def _send_large(self, request: Request, response: Response) -> None:
        body = response.body
        if request.accepts_gzip() and not _encoded(response.headers):
            body = await self._gzip(body)
            response.headers = [*(response.headers or ()), ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
        self.write(self._head_of(request, response, len(body)))
        whole = memoryview(body)
        for start in range(0, len(body), PIECE):
            self.write(whole[start : start + PIECE])
            await self.drain()
            await self.turn()

    def _head(self, request: Request, status: int, content_type: str, headers: Headers | None) -> list[bytes]:
        lines = [b"HTTP/1.1 %d %b\r\n" % status_line(status)]
        pairs = [("Content-Type", content_type)] if content_type else []
        pairs += headers or ()
        pairs += request.response_headers
        pairs.append(("Date", self.server.date().decode()))
        if self.server.audited:
            audit_id = request.audit_id or request.wanted_audit_id() or self.server.new_audit_id()
            pairs.append(("Audit-Id", audit_id))
            if all(name != "Cache-Control" for name, _ in pairs):
                pairs.append(("Cache-Control", _CACHING))
        pairs += warning_headers(request.warnings)
        if not self._keep_alive or self.server.draining:
            self._keep_alive = False
            pairs.append(("Connection", "close"))
        lines += [f"{name}: {value}\r\n".encode("utf-8", "replace") for name, value in pairs]
        lines.append(request.extra_head)
        return lines

    async def _gzip(self, body: bytes) -> bytes:
        def compress() -> bytes:
            packer = zlib.compressobj(1, zlib.DEFLATED, 31)  # upstream's level; 31: gzip framing
            return packer.compress(body) + packer.flush()

        if len(body) < _THREAD_FROM:
            return compress()
        return await self._loop.run_in_executor(None, compress)

    def stream(self, request: Request, status: int = 200, content_type: str = "application/json") -> Stream:
        """Begin an answer whose body comes piece by piece."""
        self._streaming = True
        self.server.serving -= 1
        if request.audit is not None:
            request.audit.started(status)
        lines = self._head(request, status, content_type, (("Transfer-Encoding", "chunked"),))
        self.transport.set_write_buffer_limits(high=UNSENT)
        self.write(b"".join(lines) + b"\r\n")
        return Stream(self)

    def upgrade(self, head: bytes, receiver: Callable[[bytes], None], ended: Callable[[], None] | None = None) -> None:
        """Leave HTTP: send `head` (a 101 answer), and hand everything that arrives from now on to `receiver`.

        When the connection ends `ended` is called; without it the task that serves the client is cancelled.
        """
        self._upgraded = receiver
        self._ended = ended
        self.server.serving -= 1
        self.lasting = True
        self.write(head)
        rest, self._after = self._after, None
        self.transport.resume_reading()
        if rest:
            receiver(rest)

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes; does not wait."""
        if self.server.outbox.posted:
            self.server.outbox.deliver()
        self.transport.write(data)

    async def drain(self) -> None:
        """Wait until the transport's buffer has room. Raises ConnectionResetError when the client is gone."""
        if self.transport.is_closing():
            raise ConnectionResetError("the client went away")
        if self._resume:
            await asyncio.shield(self._resume)

    async def turn(self) -> None:
        """Wait until another large piece may be sent."""
        await self.server.pace.turn(self.flow)

    def _refuse(self, status: int, message: str) -> None:
        """Answer what is not a request, or is too large to be one, when its turn has come, and close."""
        self._refused = status, message
        self._receiving = False
        self._body = []
        if not self._task:
            self._close_with_refusal(status, message)

    def _close_with_refusal(self, status: int, message: str) -> None:
        self._keep_alive = False
        response = self.server.refusal(status, message)
        request = Request(self, "", "", "", {}, b"")
        lines = self._head(request, status, response.content_type, response.headers)
        self.write(b"".join([*lines, b"Content-Length: %d\r\n\r\n" % len(response.body), response.body]))
        self.transport.close()

    def _look_later(self) -> None:
        timeouts = self.server.timeouts
        soon = min(timeouts.header, timeouts.write, timeouts.idle) / 2
        if self._task:
            left = self._active + timeouts.answer - self._loop.time()
            soon = left if 0 < left < soon else soon
        self._watchdog = self._loop.call_later(soon, self._look)

    def _look(self) -> None:
        """Close the connection if the client is stuck; look again when it could become so."""
        timeouts = self.server.timeouts
        now = self._loop.time()
        silent = now - self._active
        stuck_writing = not self.lasting and self.stuck(now) >= timeouts.write
        stuck_reading = self._receiving and silent >= (timeouts.request if self._head_complete else timeouts.header)
        idle = not self._task and not self._upgraded and not self._receiving and silent >= timeouts.idle
        if stuck_writing or stuck_reading:
            self.transport.abort()
        elif idle:
            self.transport.close()
        else:
            if self._task and silent >= timeouts.answer and not self._may_last():
                self._task.cancel(OVERDUE)
            self._look_later()

    def _may_last(self) -> bool:
        """Whether the running response is endless, so that a shutdown does not wait for it."""
        return self._streaming or self.lasting or self._request is None or self.server.lasts(self._request)

    def stuck(self, now: float) -> float:
        """For how long the client has taken nothing of what is waiting for it, as far as was looked."""
        taken = confirmed(self.transport)
        if taken != self._taken or not unconfirmed(self.transport):
            self._taken, self._taken_at = taken, now
        return now - self._taken_at

    def delivered(self) -> bool:
        """Whether nothing is being served, and the client's machine has confirmed all that was sent."""
        return not self._task and not unconfirmed(self.transport)

    def shut(self) -> None:
        """Close now if nothing is being served, else after the answer."""
        self._keep_alive = False
        if not self._task:
            self.transport.close()


class HTTPServer:
    """The connections, what serves them, and how they end."""

    def __init__(
        self,
        handler: Handler,
        refusal: Refusal,
        *,
        max_body: int,
        timeouts: Timeouts | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        audited: bool = True,
        lasts: Callable[[Request], bool] = lambda request: True,
    ) -> None:
        """`audited`: answers say which entry of the audit log is theirs. One without headers of its own always does.

        `lasts`: which requests may take as long as they like; the task of another one is cancelled with OVERDUE.
        """
        self.lasts = lasts
        self.audited = audited
        self.handler = handler
        self.refusal = refusal
        self.max_body = max_body
        self.timeouts = timeouts or Timeouts()
        self.loop = loop or asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self.heads = Heads()
        self.pace = Pace(self.loop)
        """For large bodies and answers."""
        self.hellos = Pace(self.loop, _HELLO_GAP)
        """For handshakes."""
        self._date = (0, b"")
        self.new_audit_id = serial_uids().__next__
        self.serving = 0
        """Requests that are being worked on; not those whose answer goes on and on."""
        self.outbox = Outbox(self.loop)
        self.strangers_bytes = 0
        """Of large bodies on connections of strangers."""
        self.draining = False

    def __call__(self) -> Connection:
        return Connection(self)

    def date(self) -> bytes:
        """The time of an answer, as HTTP writes it; worked out once a second."""
        second = int(time.time())
        if self._date[0] != second:
            now = time.gmtime(second)  # not strftime, which would speak the user's language
            day, month = _DAYS[now.tm_wday], _MONTHS[now.tm_mon - 1]
            clock = f"{now.tm_hour:02}:{now.tm_min:02}:{now.tm_sec:02}"
            self._date = (second, f"{day}, {now.tm_mday:02} {month} {now.tm_year} {clock} GMT".encode())
        return self._date[1]

    async def drain(self, seconds: float) -> None:
        """Let the requests in flight finish and their answers arrive, at most this long; then close what is left.

        Closing politely is not enough: TLS waits for the client to say goodbye too, and an idle one is not listening.
        """
        self.draining = True
        self.outbox.deliver()
        for connection in list(self.connections):
            connection.shut()
        deadline = self.loop.time() + seconds
        while self.connections:
            now = self.loop.time()
            late = now >= deadline
            for connection in list(self.connections):
                if late or connection.lasting or connection.delivered() or connection.stuck(now) >= _DRAIN_STUCK:
                    connection.transport.abort()
            if late:
                return
            await asyncio.sleep(_DRAIN_STEP)


def _ignore(_: bytes) -> None:
    """Drops bytes without a receiver."""


class _Refused(Exception):
    """Raised inside a parser callback: (status, message)."""


def _encoded(headers: Headers | None) -> bool:
    return headers is not None and any(name == "Content-Encoding" for name, _ in headers)
