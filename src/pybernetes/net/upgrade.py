"""A client that wants to leave HTTP, and the server behind us that it wants to talk to.

The request is passed on as it came, but for credentials, which are for this server alone. If that server agrees, its
answer goes back and the two connections are joined; if not, its refusal does.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterable

import msgspec

from .messages import Request, Response
from .streams.duplex import CONNECT_TIMEOUT, Dialed, Head, Upgraded, dial, join, request_head

ANSWER_TIMEOUT = 30.0  # seconds for the other server to answer the Upgrade request
MOST_REFUSAL = 1 << 20  # bytes of a refusal's body that are passed on
CREDENTIALS = ("authorization", "impersonate-", "x-remote-")
_ENDS_HERE = frozenset(("connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "date"))


class Target(msgspec.Struct):
    """Where a connection goes."""

    host: str
    port: int
    path: str
    """With the query, escaped."""
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    within: float = CONNECT_TIMEOUT
    """Seconds for a connection to come about."""

    @property
    def authority(self) -> str:
        """Host and port as a URL has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class UpgradeFailed(Exception):
    """There is no connection to the other server, or no answer that means anything."""


async def pass_on(request: Request, target: Target, words: Callable[[BaseException], str] = str) -> Response | None:
    """Pass on an Upgrade request, and join the connections: returns when they have ended. Raises UpgradeFailed.

    `words` tells why a server cannot be reached.
    """
    backend = await connect(target, words)
    with contextlib.ExitStack() as failing:
        failing.callback(backend.abort)
        head = await ask(backend, request_head(request.method, target.path, headers_of(request)), words)
        if head.status != 101:
            return await refusal(backend, head)
        if request.audit is not None:
            request.audit.started(101)
        client = Upgraded(request.connection, head.raw)
        failing.pop_all()  # from here on `join` ends the connection, when everything is passed on
    await join(client, backend)
    return None


async def connect(target: Target, words: Callable[[BaseException], str] = str) -> Dialed:
    """A connection to the other server. Raises UpgradeFailed."""
    try:
        return await dial(target.host, target.port, target.tls, target.server_name, target.within)
    except TimeoutError:
        raise UpgradeFailed(f"error dialing backend: dial tcp {target.authority}: i/o timeout") from None
    except OSError as error:
        told = ConnectionError(f"cannot connect to {target.authority}: {error}")
        told.__cause__ = error
        raise UpgradeFailed(f"error dialing backend: {words(told)}") from None


async def ask(backend: Dialed, message: bytes, words: Callable[[BaseException], str] = str) -> Head:
    """Send the request; the head of the response, which is 101 or a refusal. Raises UpgradeFailed."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT):
            head = await backend.request(message)
    except TimeoutError:
        raise UpgradeFailed("context deadline exceeded") from None
    except OSError as error:
        raise UpgradeFailed(words(error)) from None
    if head.status != 101 and head.status < 400:
        raise UpgradeFailed(f"invalid upgrade response: status code {head.status}")
    return head


async def refusal(backend: Dialed, head: Head) -> Response:
    """The other server's refusal, to be passed on."""
    body = await backend.body(head, MOST_REFUSAL)
    headers = [
        (name, value)
        for name, value in head.headers
        if name.lower() not in _ENDS_HERE and name.lower() != "content-type"
    ]
    return Response(body, head.status, head.get("content-type"), headers)


def spdy_request(request: Request, target: Target, protocols: Iterable[str]) -> bytes:
    """The request for SPDY to the other server where the client asks us for WebSocket."""
    gone = ("connection", "upgrade", "content-length", "x-stream-protocol-version")
    lines = headers_of(request, (*gone, *(name for name in request.headers if name.startswith("sec-websocket-"))))
    lines += [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"), ("Content-Length", "0")]
    lines += [("X-Stream-Protocol-Version", each) for each in protocols]
    return request_head("POST", target.path, lines)


def headers_of(request: Request, without: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """The headers to pass on: none that says who the client is, and where the request came from."""
    lines = [("Host", request.headers.get("host", ""))]
    for name in request.headers:
        if name not in ("host", "x-forwarded-for") and not name.startswith(CREDENTIALS) and name not in without:
            lines += [(_cased(name), value) for value in request.values(name)]
    before = request.headers.get("x-forwarded-for", "")
    peer = request.connection.peer_address
    if peer:
        lines.append(("X-Forwarded-For", f"{before}, {peer}" if before else peer))
    return lines


def _cased(name: str) -> str:
    """As Go writes names of headers: there are servers that look at it."""
    return "-".join(part.capitalize() for part in name.split("-"))
