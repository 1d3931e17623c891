"""One HTTP request on a connection of its own, with redirects, and Go's words for what goes wrong.

`client.http` is for servers that are asked again and again and believed; this is for those of whom nothing is known:
any certificate will do, as much is read as is needed, and nothing is kept.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Final

import httptools

from pybernetes.net.dialer import open_streams

from .dialing import DialFailed, dial, insecure_tls, words
from .request import HTTPRequest

MAX_REDIRECTS: Final = 10
MAX_HEAD: Final = 1 << 20
_REDIRECTS: Final = (301, 302, 303, 307, 308)
NOT_TLS: Final = "http: server gave HTTP response to HTTPS client"


class ExchangeFailed(Exception):
    """There was no answer; the text is Go's."""


class BodyFailed(Exception):
    """There was an answer, but not all of it."""


@dataclass(slots=True)
class Answer:
    """An HTTP answer: the first part of its body, no more than was asked for."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


async def exchange(request: HTTPRequest, within: float | None, max_body: int) -> Answer:
    """Send, and follow redirects on the same host. Raises ExchangeFailed, or BodyFailed if the body breaks off."""
    first = request
    progress = _Progress()
    try:
        async with asyncio.timeout(within):
            for _ in range(MAX_REDIRECTS):
                try:
                    answer = await _once(request, max_body, progress)
                except (DialFailed, _Broken) as error:
                    raise ExchangeFailed(f'Get "{request.url}": {error}') from None
                location = answer.headers.get("location")
                if answer.status not in _REDIRECTS or not location:
                    return answer
                try:
                    following = request.redirected(location)
                except ValueError as error:
                    raise ExchangeFailed(f'Get "{location}": {error}') from None
                if following.host != first.host:
                    return answer
                request = following
            raise ExchangeFailed(f'Get "{request.url}": stopped after {MAX_REDIRECTS} redirects')
    except TimeoutError:
        if progress.head:
            raise BodyFailed(
                "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
            ) from None
        raise ExchangeFailed(
            f'Get "{request.url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
        ) from None


class _Broken(Exception):
    """The connection or the answer is no good."""


@dataclass(slots=True)
class _Progress:
    head: bool = False


class _Parsed:
    """The parsed part of a response."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.body: list[bytes] = []
        self.length = 0
        self.head = self.complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self.head = True

    def on_body(self, body: bytes) -> None:
        self.body.append(body)
        self.length += len(body)

    def on_message_complete(self) -> None:
        self.complete = True


async def _once(request: HTTPRequest, max_body: int, progress: _Progress) -> Answer:
    progress.head = False
    connection = await dial(request.host, request.port, 3600.0)  # the exchange as a whole has the time limit
    secure = request.scheme == "https"
    try:
        reader, writer = await open_streams(
            tls=insecure_tls() if secure else None, server_name=request.host, sock=connection
        )
    except ssl.SSLError as error:
        plain = error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST")
        raise _Broken(NOT_TLS if plain else f"tls: {(error.reason or str(error)).lower().replace('_', ' ')}") from None
    except OSError as error:
        raise _Broken("EOF" if isinstance(error, ConnectionResetError) else words(error)) from None
    try:
        writer.write(request.head())
        return await _read(reader, max_body, progress)
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader, max_body: int, progress: _Progress) -> Answer:
    parsed = _Parsed()
    parser = httptools.HttpResponseParser(parsed)
    total = 0
    while not parsed.complete and parsed.length < max_body:
        try:
            data = await reader.read(65536)
        except OSError as error:
            if parsed.head:
                raise BodyFailed(f"read: {words(error)}") from None
            raise _Broken(f"read: {words(error)}") from None
        if not data:
            if not parsed.head:
                raise _Broken("EOF" if not total else "unexpected EOF")
            if "content-length" in parsed.headers or "transfer-encoding" in parsed.headers:
                raise BodyFailed("unexpected EOF")
            break
        try:
            parser.feed_data(data)
        except httptools.HttpParserError:
            if parsed.head:
                break  # an answer to HEAD-like requests, or bytes behind its end: what counts is there
            line = data.split(b"\n", 1)[0].decode("latin-1").strip()
            raise _Broken(f'net/http: HTTP/1.x transport connection broken: malformed HTTP response "{line}"') from None
        total += len(data)
        if not parsed.head and total > MAX_HEAD:
            raise _Broken("net/http: server response headers exceeded 1048576 bytes; aborted")
        if parsed.head and parser.get_status_code() < 200:  # 100 Continue: the answer is still to come
            parsed.__init__()  # type: ignore[misc]
            continue
        progress.head = parsed.head
    return Answer(parser.get_status_code(), parsed.headers, b"".join(parsed.body)[:max_body])
