"""A request as it came in, and the answer to it; and what may answer one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from .request_heads import Head

if TYPE_CHECKING:
    from .http import Connection

WARNINGS = 4096  # characters of all warnings in an answer, and if they are more,
WARNING = 256  # of each of them; upstream's truncateAtTotalRunes and truncateItemRunes

Headers = Iterable[tuple[str, str]]


def as_utf8(header: str) -> str:
    """The value of a header as the UTF-8 that clients mean; headers are kept as Latin-1, which any bytes are."""
    return header if header.isascii() else header.encode("latin-1").decode("utf-8", "replace")


class Response(msgspec.Struct, eq=False):
    """An answer whose body is known."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: list[tuple[str, str]] | None = None


class Request(msgspec.Struct, eq=False):
    """One request as it came in, and what the filters found out about it."""

    connection: Connection
    method: str
    path: str
    query_string: str
    headers: dict[str, str]
    body: bytes
    head: Head | None = None
    """The head that it shares with other requests, where that is known."""
    repeated: dict[str, list[str]] | None = None
    """Headers that came more than once, each value by itself."""
    annotations: tuple[tuple[str, str], ...] = ()
    """The audit annotations of the credential."""
    audit: Any = None
    """Its audit recorder (`audit.recorder.Recorder`), where it is audited."""
    audit_id: str = ""
    """Set by a filter that needs it before the response is sent."""
    read: Any = None
    """The body, where it was read before its verb began."""
    user: Any = None
    info: Any = None
    initialized: Callable[[], None] | None = None
    """To be called when a watch has sent its initial events."""
    traceparent: str = ""
    """The span that the client makes the request for, as the header has it."""
    extra_head: bytes = b""
    """Complete header lines for the answer."""
    warnings: list[str] = []
    response_headers: list[tuple[str, str]] = []

    def first(self, name: str) -> str:
        """The first value of a header (its name in lower case); empty if there is none."""
        if self.repeated is not None and name in self.repeated:
            return self.repeated[name][0]
        return self.headers.get(name, "")

    def wanted_audit_id(self) -> str:
        """The audit ID that the client asks for; empty if it does not."""
        return as_utf8(self.first("audit-id")) if "audit-id" in self.headers else ""

    def values(self, name: str) -> list[str]:
        """Every value of a header (its name in lower case), where a comma belongs to a value and does not part two."""
        if self.repeated is not None and name in self.repeated:
            return self.repeated[name]
        value = self.headers.get(name)
        return [] if value is None else [value]

    def accepts_gzip(self) -> bool:
        """Whether the answer may be compressed. As upstream, weights are not understood: `gzip` must stand alone."""
        return any(each.strip() == "gzip" for each in self.headers.get("accept-encoding", "").split(","))


NOSNIFF = ("X-Content-Type-Options", "nosniff")
"""A header: browsers are not to guess what an answer is. Go's server sends it with errors in plain text."""

Answer = Awaitable[Response | None]
"""A Response, or None when the answer was streamed or the connection taken over."""

Handler = Callable[[Request], Answer]
"""Answers a request. A filter that has nothing to wait for, nor to do afterwards, is no coroutine: those cost time."""

Refusal = Callable[[int, str], Response]
"""Makes the answer for a request that never reached the handler, from its status code and message."""


def warning_headers(texts: list[str]) -> Headers:
    """The `Warning` headers of a response."""
    return [("Warning", f'299 - "{_quoted(text)}"') for text in _fitting(texts)]


def _fitting(texts: list[str]) -> Iterable[str]:
    """Each once; if they are too much for headers, the beginnings of the first of them, in upstream's measures."""
    different = dict.fromkeys(texts)
    if sum(map(len, different)) <= WARNINGS:
        return different
    chosen, length = [], 0
    for text in different:
        if length >= WARNINGS:
            break
        chosen.append(text[:WARNING])
        length += len(chosen[-1])
    return chosen


def _quoted(text: str) -> str:
    cleaned = "".join(c if c.isprintable() else " " for c in text)
    return cleaned.replace("\\", "\\\\").replace('"', '\\"')
