"""A request on its way to an extension server, and the answer on its way back.

The user was authenticated and authorized before: headers tell the other server whose request it is
(`identity`), and sees none of the client's credentials. The path it gets is the one that was decided about, taken apart
once and not read a second time. Answers are passed on as they come: a watch event at once, a long list in pieces.

Errors on the way are reported as upstream reports them: in plain text, with 503.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

from pybernetes.api.errors import Timeout
from pybernetes.api.randomness import new_uid
from pybernetes.api.times import parse_duration
from pybernetes.net.http import Request, Response
from pybernetes.net.messages import NOSNIFF, as_utf8

from ..webhooks.client import words
from ..webhooks.services import Unresolved
from .identity import user_headers
from .transport import Address, Backend

if TYPE_CHECKING:
    from .service import RemoteService

log = logging.getLogger(__name__)

TIMEOUT = 60.0  # seconds for what is not long by nature; upstream's --request-timeout
DISCOVERY_TIMEOUT = 5.0  # seconds; upstream's, so that one that hangs does not make every client hang
UPGRADE_TIMEOUT = 30.0
WHOLE = 64 * 1024  # bytes; an answer that is known to be short is passed on at once
_LONG = frozenset(("exec", "attach", "portforward", "proxy", "log"))
HOP = frozenset(
    (
        *("connection", "proxy-connection", "keep-alive", "proxy-authenticate", "proxy-authorization"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    )
)
_OURS = frozenset(("host", "content-length", "authorization", "expect", "audit-id", "x-forwarded-for"))
_SET = frozenset(("x-forwarded-uri", "x-forwarded-host", "x-forwarded-proto"))
_SAID = frozenset(("content-type", "content-length", "date", "audit-id"))  # of an answer; written by our own server
_REDIRECTED = b"the backend attempted to redirect this request, which is not permitted"
PATH = "/:@!$&'()*+,;=-._~"  # what may stand in a path as it is


async def proxy(service: RemoteService, request: Request) -> Response | None:
    """Pass a request on and its answer back."""
    if not service.available:
        return failure("service unavailable")
    if service.problem:
        return failure(service.problem, 500)
    try:
        address = random.choice(await service.addresses())
    except Unresolved as error:
        log.warning("resolving the service of %s: %s", service.name, error)
        return failure("service unavailable")
    if "upgrade" in request.headers and "upgrade" in request.headers.get("connection", "").lower():
        return await _upgrade(service, request, address)
    try:
        message = _message(request, address)
        async with asyncio.timeout(_within(request)):
            backend = await service.transport.request(
                address, message, repeatable=request.method == "GET", bodyless=request.method == "HEAD"
            )
    except TimeoutError:
        if _is_discovery(request):
            return failure("error trying to reach service: context deadline exceeded")
        raise Timeout("request did not complete within the allotted timeout") from None
    except (OSError, ssl.SSLError, ValueError) as error:
        return failure(f"error trying to reach service: {words(error)}")
    if 300 <= backend.status < 400 and _first(backend.headers, "location") and not service.passes_redirects:
        service.transport.abort(backend)
        return Response(_REDIRECTED, 502, "text/plain; charset=utf-8")
    try:
        answer = await pass_back(request, backend)
    except BaseException:
        service.transport.abort(backend)
        raise
    service.transport.release(address, backend)
    return answer


def failure(text: str, status: int = 503) -> Response:
    """An answer of the proxy itself."""
    return Response(f"{text}\n".encode(), status, "text/plain; charset=utf-8", [NOSNIFF])


def _within(request: Request) -> float | None:
    """How long the answer may take to begin."""
    info = request.info
    if info.verb == "watch" or info.subresource in _LONG:
        return None
    if _is_discovery(request):
        return DISCOVERY_TIMEOUT
    try:
        asked = parse_duration(info.query.get("timeout") or "0") / 1e9
    except ValueError:
        return TIMEOUT
    return min(asked, TIMEOUT) if asked > 0 else TIMEOUT


def _is_discovery(request: Request) -> bool:
    return not request.info.is_resource and request.info.path.strip("/").count("/") == 2


async def pass_back(request: Request, backend: Backend) -> Response | None:
    """Pass an answer on: a short one as a whole, others piece by piece."""
    kind = _first(backend.headers, "content-type")
    hop = HOP | _named(_first(backend.headers, "connection"))
    headers = [pair for pair in backend.headers if pair[0].lower() not in hop and pair[0].lower() not in _SAID]
    length = _first(backend.headers, "content-length")
    if backend.complete or (length.isdecimal() and int(length) <= WHOLE):
        body = b""
        while piece := await backend.read():
            body += piece
        request.audit_id = request.audit_id or _first(backend.headers, "audit-id")
        return Response(body, backend.status, kind, _cased(headers))
    request.response_headers += _cased(headers)
    stream = request.connection.stream(request, backend.status, kind)
    while piece := await backend.read():
        stream.write(piece)
        await stream.drain()
    stream.end()
    return None


def _cased(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """As our own server writes headers: two names that it looks for, and values in UTF-8."""
    known = {"cache-control": "Cache-Control", "content-encoding": "Content-Encoding"}
    return [(known.get(name.lower(), name), as_utf8(value)) for name, value in headers]


def _message(request: Request, address: Address, upgrade: bool = False) -> bytes:
    """The request as the extension server gets it. Raises ValueError for what cannot stand in a header."""
    info = request.info
    target = quote(info.path, safe=PATH)
    if request.query_string:
        target += "?" + quote(request.query_string, safe=PATH + "%?")
    gone = HOP | _OURS | _SET | _named(request.headers.get("connection", ""))
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    lines: list[tuple[str, str]] = [("Host", f"{host}:{address[1]}")]
    for name in request.headers:
        if name not in gone and not name.startswith(("x-remote-", "impersonate-")):
            lines += [(name, value) for value in request.values(name)]
    request.audit_id = request.audit_id or request.wanted_audit_id() or new_uid()
    lines.append(("Audit-Id", request.audit_id.encode().decode("latin-1")))
    before = request.headers.get("x-forwarded-for", "")
    peer = request.connection.peer_address
    lines.append(("X-Forwarded-For", f"{before}, {peer}" if before else peer))
    if upgrade:
        lines += [("Connection", "Upgrade"), ("Upgrade", request.headers["upgrade"])]
    else:
        lines.append(("X-Forwarded-Uri", quote(info.path, safe=PATH)))
        lines.append(("X-Forwarded-Host", request.headers.get("host", "")))
        lines.append(("X-Forwarded-Proto", "https"))
    lines += user_headers(request.user)
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        lines.append(("Content-Length", str(len(request.body))))
    return f"{request.method} {target} HTTP/1.1\r\n".encode() + _written(lines) + request.body


def request_bytes(target: str, address: Address, headers: Iterable[tuple[str, str]]) -> bytes:
    """A request of our own."""
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return f"GET {target} HTTP/1.1\r\n".encode() + _written([("Host", f"{host}:{address[1]}"), *headers])


def _written(headers: list[tuple[str, str]]) -> bytes:
    for name, value in headers:
        if "\r" in value or "\n" in value or "\0" in value:
            raise ValueError(f'net/http: invalid header field value for "{name}"')
    return "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1") + b"\r\n"


def _first(headers: list[tuple[str, str]], wanted: str) -> str:
    return next((value for name, value in headers if name.lower() == wanted), "")


def _named(connection: str) -> frozenset[str]:
    return frozenset(part.strip().lower() for part in connection.split(","))


# -- streams that are no HTTP any more ----------------------------------------------------------------------------


async def _upgrade(service: RemoteService, request: Request, address: Address) -> Response | None:
    """Ask the other server for the protocol that the client wants, and join the two connections."""
    try:
        async with asyncio.timeout(UPGRADE_TIMEOUT):
            backend = await service.transport.connect(address)
    except (OSError, ssl.SSLError, TimeoutError) as error:
        return failure(f"error dialing backend: {words(error)}")
    try:
        try:
            async with asyncio.timeout(UPGRADE_TIMEOUT):
                head = await backend.send_raw(_message(request, address, upgrade=True))
        except (OSError, TimeoutError, ValueError) as error:
            return failure(words(error))
        status = _status(head)
        if status != 101 and status < 400:
            return failure(f"invalid upgrade response: status code {status}")
        if status != 101:
            return await _refused(head, status, backend)
        await _join(request, backend, head)
        return None
    finally:
        service.transport.abort(backend)


def _status(head: bytes) -> int:
    parts = head.split(None, 2)
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0


async def _refused(head: bytes, status: int, backend: Backend) -> Response:
    """The other server's reason, as far as it comes soon."""
    headers = [line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:] if ": " in line]
    length = next((value for name, value in headers if name.lower() == "content-length"), "")
    kind = next((value for name, value in headers if name.lower() == "content-type"), "text/plain; charset=utf-8")
    body = b""
    try:
        async with asyncio.timeout(10.0):
            while not length.isdecimal() or len(body) < int(length):
                piece = await backend.read()
                if not piece:
                    break
                body += piece
    except (TimeoutError, OSError):
        pass
    return Response(body, status, kind)


async def _join(request: Request, backend: Backend, head: bytes) -> None:
    """Copy both ways until one side ends."""
    connection = request.connection
    transport = connection.transport

    async def when_taken() -> None:
        await backend.drain()
        if not transport.is_closing():
            transport.resume_reading()

    resuming: set[asyncio.Task[None]] = set()

    def received(data: bytes) -> None:
        backend.write(data)
        if backend.full and not resuming:
            transport.pause_reading()
            task = asyncio.get_running_loop().create_task(when_taken())
            resuming.add(task)
            task.add_done_callback(resuming.discard)

    if request.audit is not None:
        request.audit.started(101)
    connection.upgrade(head, received)
    try:
        while piece := await backend.read():
            connection.write(piece)
            await connection.drain()
    except ConnectionError:
        pass
    finally:
        transport.close()
