"""Heads of requests that came before, taken apart once.

Whoever talks to an API server asks the same way again and again: same path, same headers, only the body differs. The
bytes of such a head are looked up as a whole, which saves the parser's calls for each header and taking the path
apart.
A head is kept if it is plain: the body's length said in it, the connection kept, nothing to be agreed on beforehand.
"""

from __future__ import annotations

from typing import Any

import msgspec

MOST = 512  # heads that are kept; the oldest goes first
LONGEST = 4096  # bytes of a head worth keeping
_NOT_PLAIN = ("transfer-encoding", "upgrade", "expect", "connection", "te", "trailer")


class Head(msgspec.Struct, gc=False):
    """A request but for its body; shared by requests, so nothing in it may be changed."""

    method: str
    path: str
    query_string: str
    headers: dict[str, str]
    length: int
    """Of the body, in bytes."""
    info: Any = None
    """What the path and query ask for, once somebody has found out."""


class Heads:
    """The heads that are known."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}
        self.get = self._known.get

    def add(self, raw: bytes, head: Head) -> None:
        """Keep a head, if it is plain."""
        if len(raw) > LONGEST or any(name in head.headers for name in _NOT_PLAIN):
            return
        if len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        self._known[raw] = head
