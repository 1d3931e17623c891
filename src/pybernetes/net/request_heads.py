"""Heads of requests: which are none, and those that came before, taken apart once.

A client of an API server sends the same request again and again: same path, same headers, only the body differs. The
bytes of such a head are looked up as a whole, which saves the parser's calls for each header and taking the path apart.
It is kept if the body's length is said in it, the connection stays, and nothing is to be agreed on beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

import msgspec

MOST = 512  # heads that are kept; the oldest goes first
LONGEST = 4096  # bytes of a head worth keeping
_FOR_OTHERS = ("impersonate-", "x-remote-")
_NOT_KEPT = ("transfer-encoding", "upgrade", "expect", "connection", "te", "trailer")
TRACE = b"traceparent: "
"""A header that is different in every request. Where it is the last one, the head is looked up without it."""
TRACE_SIZE = 72
"""Bytes from there to the end of the head: name, value of 55 characters, end of the line, end of the head."""
_HOST = re.compile(r"[!$%&'()*+,\-.:;=@\[\]_~0-9A-Za-z]*")  # what Go lets stand in a Host header


def problem_of(version: str, headers: dict[str, str], repeated: Container[str]) -> tuple[int, str] | None:
    """Status and message for a head that a proxy in front could read in another way than we do; Go's rules."""
    if version not in ("1.1", "1.0"):
        return (505, "HTTP Version Not Supported") if version == "2.0" else (400, "Bad Request")
    host = headers.get("host")
    if host is None:
        if version == "1.1":
            return 400, "Bad Request: missing required Host header"
    elif "host" in repeated:
        return 400, "Bad Request: too many Host headers"
    elif not _HOST.fullmatch(host):
        return 400, "Bad Request: malformed Host header"
    if headers.get("transfer-encoding", "chunked").lower() != "chunked":
        return 501, "Unsupported transfer encoding"
    if headers.get("expect", "").lower() not in ("100-continue", ""):
        return 417, "Expectation Failed"
    return None


class Head(msgspec.Struct, gc=False):
    """A request but for its body; shared by requests, so nothing in it may be changed."""

    method: str
    path: str
    query_string: str
    headers: dict[str, str]
    length: int
    """Of the body, in bytes."""
    plain: bool = False
    """Whether no header speaks for another user (`Impersonate-*`, `X-Remote-*`), so that no filter need look again."""
    info: Any = None
    """The request info of the path and query, once it was computed."""
    cached_options: Any = None
    """The options in the headers and the query, once the verb has parsed them."""
    route: Any = None
    """The handler of such requests, once one was answered."""
    flow: Any = None
    """The flow of such requests in `turns`, once flow control has found it."""
    series: Any = None
    """Where such requests are counted, once one was."""


class Heads:
    """The heads that are known."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}
        self.get = self._known.get

    def add(self, raw: bytes, head: Head) -> None:
        """Keep a head, if it can be."""
        if len(raw) > LONGEST or any(name in head.headers for name in _NOT_KEPT):
            return
        if "traceparent" in head.headers:
            if not raw.startswith(TRACE, len(raw) - TRACE_SIZE):
                return
            raw = raw[:-TRACE_SIZE] + b"\r\n"
            del head.headers["traceparent"]
        head.plain = not any(name.startswith(_FOR_OTHERS) for name in head.headers)
        if len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        self._known[raw] = head

    def forget(self) -> None:
        """Drop all heads: what was found out for them may be out of date, and holds what it is about in memory."""
        self._known.clear()
