"""The way of one request: rule, endpoint, answer.

An endpoint that cannot be connected to has seen nothing, so the next one is tried. A connection that was kept open and
turns out to be closed is replaced by a new one, if the request may be sent twice (RFC 9110, idempotent methods) and its
body is still here. After the first byte of an answer nothing is sent again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from pybernetes.client.connection import ConnectionFailed

from . import headers
from .endpoints import Endpoints, Host
from .frontend import ClientGone, Frontend, Request
from .metrics import Metrics
from .routes import BadPath, Routes, normal, rewritten
from .rules import Rule
from .upstream import ConnectFailed, Pool, Upstream

log = logging.getLogger(__name__)
TRIES = 5
"""How often a request is sent at most."""
_AGAIN = frozenset((b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE", b"TRACE"))
_PAUSE = 0.1
"""Seconds before a round over endpoints that have all refused; the second one is twice as long, and so on."""
_SMALL = 64 * 1024
"""A body that is complete and not longer is kept until the answer begins."""
ACCESS = 3
"""Verbosity from which on each request is logged."""
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}


class TookTooLong(ConnectionFailed):
    """The endpoint gave no answer, or no more of it, in time."""


class Forwarder:
    """Serves requests. Shared by all connections."""

    def __init__(
        self,
        routes: Routes,
        endpoints: Endpoints,
        pool: Pool,
        metrics: Metrics,
        *,
        has_certificate: Callable[[str], bool] = lambda host: False,
        https_port: Callable[[], int] = lambda: 0,
        verbosity: int = 0,
    ) -> None:
        """`has_certificate`: whether a host is served by TLS; `https_port`: where, 0 = nowhere."""
        self._routes, self._endpoints, self._pool, self._metrics = routes, endpoints, pool, metrics
        self._has_certificate, self._https_port = has_certificate, https_port
        self._access_log = verbosity >= ACCESS

    async def serve(self, request: Request) -> None:
        """Answer one request."""
        began = time.monotonic()
        rule: Rule | None = None
        status = 499  # nginx's: the client went away
        try:
            path, query = _split(request)
            clean = normal(path)
            rule = self._routes.find(request.host, clean)
            status = await self._serve(request, rule, path, clean, query)
        except BadPath as error:
            status = self._say(request, 400, f"Bad Request: {error}")
        finally:
            label = rule.label if rule is not None else ""
            self._metrics.answered(label, status, time.monotonic() - began)
            if self._access_log:
                log.info(
                    '%s "%s %s%s" %d %.1f ms %s',
                    request.connection.client.address,
                    request.method.decode("latin-1"),
                    request.host,
                    request.target[:1024].decode("latin-1"),
                    status,
                    (time.monotonic() - began) * 1000,
                    label or "-",
                )

    async def _serve(self, request: Request, rule: Rule | None, path: str, clean: str, query: str) -> int:
        if rule is None:
            return self._say(request, 404, "Not Found: no Ingress has a rule for this host and path")
        options = rule.options
        if options.sources is not None and not _allowed(request.connection.client.address, options.sources):
            return self._say(request, 403, "Forbidden")
        if (location := self._redirect(request, rule, path, clean)) is not None:
            return self._say(request, location[0], "", location[1])
        if options.body_size and (request.length or 0) > options.body_size:
            return self._say(request, 413, f"Request Entity Too Large: the limit is {options.body_size} bytes")
        if rule.backend is None:
            return self._say(request, 503, "Service Unavailable: the backend is not a port of a Service")
        target = rewritten(rule, clean) if options.rewrite_target else path
        if query:
            target += f"{'&' if '?' in target else '?'}{query}"
        try:
            return await self._forward(request, rule, target.encode("latin-1", "replace"))
        except _TooLarge:
            return self._fail(request, 413, f"Request Entity Too Large: the limit is {options.body_size} bytes")

    def _redirect(self, request: Request, rule: Rule, path: str, clean: str) -> tuple[int, str] | None:
        """Status and place that a client is sent to instead."""
        options = rule.options
        if not request.connection.client.secure:
            wanted = options.force_ssl_redirect or (options.ssl_redirect and self._has_certificate(request.host))
            if wanted and request.host:
                port = self._https_port()
                where = f":{port}" if port not in (0, 443) else ""
                return 308, f"https://{request.host}{where}{request.target.decode('latin-1')}"
        if options.redirect:
            return options.redirect_code, options.redirect
        if options.app_root and clean == "/":
            return 302, options.app_root
        return None

    async def _forward(self, request: Request, rule: Rule, target: bytes) -> int:
        backend, options = rule.backend, rule.options
        assert backend is not None
        hosts = self._endpoints.of(backend)
        if not hosts:
            return self._say(request, 503, f"Service Unavailable: {self._endpoints.why_none(backend)}")
        if request.expects and request.version != "1.0":
            request.connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = request.take() if request.complete and request.received <= _SMALL else None
        if options.body_size and request.received > options.body_size:
            raise _TooLarge
        failure: ConnectionFailed = ConnectFailed("no endpoint was tried")
        tried: set[Host] = set()
        stale: Host | None = None
        for number in range(TRIES):
            if number:
                self._metrics.retries.inc(rule.label)
                hosts = self._endpoints.of(backend) or hosts
            host = stale or next((each for each in hosts if each not in tried), None)
            if host is None:  # all refused: they may be starting, or others may take their place
                await asyncio.sleep(_PAUSE * number)
                hosts = self._endpoints.of(backend) or hosts
                host = hosts[0]
            tried.add(host)
            address = (*host, options.https_backend)
            upstream: Upstream | None = None
            try:
                upstream = None if stale else self._pool.take(address)
                stale = None
                if upstream is None:
                    upstream = await self._pool.connect(address, options.connect_timeout)
                return await self._exchange(request, rule, upstream, target, body)
            except ConnectFailed as error:
                failure = error
                log.info("%s: %s", rule.label, error)
            except ClientGone:
                if upstream is not None:
                    upstream.abort()
                raise
            except ConnectionFailed as error:
                assert upstream is not None
                upstream.abort()
                failure = error
                log.info("%s: %s:%d: %s", rule.label, *host, error)
                if upstream.head_done and upstream.status != 101:
                    raise ClientGone("the answer is cut off") from error  # the client sees that by its framing
                late = upstream.answered or isinstance(error, TookTooLong)
                if late or body is None or request.method not in _AGAIN:
                    self._metrics.failures.inc(rule.label)
                    break
                stale = host if upstream.used else None
            except BaseException:
                if upstream is not None:
                    upstream.abort()
                raise
            self._metrics.failures.inc(rule.label)
        if isinstance(failure, TookTooLong):
            return self._fail(request, 504, "Gateway Timeout")
        return self._fail(request, 502, "Bad Gateway: no endpoint gave an answer")

    async def _exchange(
        self, request: Request, rule: Rule, upstream: Upstream, target: bytes, body: bytes | None
    ) -> int:
        """Send the request and pass on the answer. Until the answer's head nothing has been sent to the client."""
        options, client = rule.options, request.connection
        upstream.begin(head_only=request.method == b"HEAD")
        upgrade = request.upgrade if request.upgrade.lower() not in (b"", b"h2c") else b""
        framing = b""
        if request.chunked:
            framing = b"Content-Length: %d\r\n" % len(body) if body is not None else b"Transfer-Encoding: chunked\r\n"
        elif request.length is not None:
            framing = b"Content-Length: %d\r\n" % request.length
        head = headers.request_head(
            request.method,
            target,
            request.headers,
            host=_host_header(request),
            client=client.client,
            upstream_host=options.upstream_host,
            prefix=options.forwarded_prefix,
            framing=framing,
            upgrade=upgrade,
        )
        pump: asyncio.Task[None] | None = None
        if body is None and request.has_body:
            upstream.write(head)
            pump = asyncio.create_task(_pump(request, upstream, options.body_size, options.send_timeout))
        else:
            upstream.write(head + (body or b""))
        try:
            await self._head(upstream, pump, options.read_timeout)
            if upstream.status == 101:
                if not upgrade or not upstream.upgraded:
                    raise ConnectionFailed("the endpoint left HTTP without being asked")
                return self._join(client, upstream)
            await self._answer(request, upstream, options.read_timeout)
        finally:
            if pump is not None:
                pump.cancel()
                await asyncio.wait([pump])
        if pump is None or (not pump.cancelled() and pump.exception() is None):
            self._pool.give(upstream)
        else:  # the endpoint has answered without reading all: what it would take for a request is a body
            upstream.abort()
            request.keep_alive = False
        return upstream.status

    async def _head(self, upstream: Upstream, pump: asyncio.Task[None] | None, within: float) -> None:
        """Wait for the answer's head. While the body is on its way the endpoint may take its time."""
        if pump is None:
            return await _within(upstream.head(), within)
        waiting = asyncio.create_task(upstream.head())
        try:
            await asyncio.wait((waiting, pump), return_when=asyncio.FIRST_COMPLETED)
            if pump.done() and not waiting.done():
                error = pump.exception()
                # An endpoint that refuses a body answers first and then closes: its answer may be there in a moment.
                if error is not None and not isinstance(error, ConnectionFailed):
                    raise error
                await _within(asyncio.shield(waiting), within)
            else:
                await waiting
        finally:
            waiting.cancel()

    async def _answer(self, request: Request, upstream: Upstream, within: float) -> None:
        client = request.connection
        bare = request.method == b"HEAD" or upstream.status in (204, 304)
        chunked = False
        if upstream.length is not None and (upstream.status != 204 or upstream.length):
            framing = b"Content-Length: %d\r\n" % upstream.length
        elif bare:
            framing = b""
        elif request.version == "1.0":
            framing, request.keep_alive = b"", False
        else:
            framing, chunked = b"Transfer-Encoding: chunked\r\n", True
        if not request.keep_alive or client.server.draining or (request.has_body and not request.complete):
            framing += b"Connection: close\r\n"
        elif request.version == "1.0":
            framing += b"Connection: keep-alive\r\n"
        head = headers.answer_head(upstream.status, upstream.reason or b"", upstream.headers, framing)
        while True:
            piece = upstream.take()
            done = upstream.complete
            if chunked:
                made = (b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"") + (b"0\r\n\r\n" if done else b"")
            else:
                made = piece
            if head or made:
                client.write(head + made)
                head = b""
            if done:
                return
            await client.drain()
            if upstream.pending:
                continue
            await _within(upstream.more(), within)

    def _join(self, client: Frontend, upstream: Upstream) -> int:
        """Both leave HTTP: bytes are passed on as they come, until one of them ends."""
        head = headers.answer_head(101, b"Switching Protocols", upstream.headers, b"", upgrade=upstream.upgraded)
        client.write(head + upstream.take() + upstream.rest)
        upstream.tunnel = client.transport
        rest = client.leave_http(upstream.transport)
        if rest:
            upstream.write(rest)
        upstream.read_on()
        return 101

    def _say(self, request: Request, status: int, text: str, location: str = "") -> int:
        """An answer of our own."""
        # What is left of a body is not read: the connection ends with it.
        keep = request.keep_alive and (request.complete or not request.has_body)
        request.keep_alive = keep
        body = f"{text}\n".encode() if text else b""
        lines = [b"HTTP/1.1 %d %b\r\n" % (status, _REASONS.get(status, b""))]
        if location:
            lines.append(b"Location: %b\r\n" % location.encode("latin-1", "replace"))
        lines.append(b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n" % len(body))
        if not keep:
            lines.append(b"Connection: close\r\n")
        elif request.version == "1.0":
            lines.append(b"Connection: keep-alive\r\n")
        request.connection.write(b"".join([*lines, b"\r\n", body if request.method != b"HEAD" else b""]))
        return status

    def _fail(self, request: Request, status: int, text: str) -> int:
        """An answer of our own after a part of the body may have been taken."""
        if request.has_body and not request.complete:
            request.keep_alive = False
        return self._say(request, status, text)


class _TooLarge(Exception):
    """The body is longer than the Ingress allows."""


async def _pump(request: Request, upstream: Upstream, most: int, within: float) -> None:
    """Pass on the body as it comes, no faster than the endpoint takes it."""
    while True:
        piece = await request.read()
        if most and request.received > most:
            raise _TooLarge
        if not piece:
            if request.chunked:
                upstream.write(b"0\r\n\r\n")
            return
        upstream.write(b"%x\r\n%b\r\n" % (len(piece), piece) if request.chunked else piece)
        await _within(upstream.drain(), within)


async def _within(waiting, seconds: float) -> None:  # type: ignore[no-untyped-def]
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        raise TookTooLong(f"no answer within {seconds:.0f} s") from None


def _allowed(address: str, sources: tuple[object, ...]) -> bool:
    try:
        client = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    client = getattr(client, "ipv4_mapped", None) or client
    return any(client in network for network in sources)  # type: ignore[operator]


def _host_header(request: Request) -> bytes:
    return next((value for name, value in request.headers if name.lower() == b"host"), b"")


def _split(request: Request) -> tuple[str, str]:
    """Path and query of a request's target; of the absolute form, too."""
    text = request.target.decode("latin-1")
    if not text.startswith("/"):
        if text == "*":
            return "/", ""
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https"):
            raise BadPath("the target is neither a path nor a URL")
        if parts.netloc.encode("latin-1").lower() != _host_header(request).lower():
            raise BadPath("the target names another host than the Host header")
        return parts.path or "/", parts.query
    path, _, query = text.partition("?")
    return path.partition("#")[0], query
