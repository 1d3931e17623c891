"""Large work of many connections, one piece in each round of the loop.

An event loop serves all sockets that are ready, then whatever that has woken, then looks at the sockets again. A
hundred clients who open connections, send large bodies or take large answers would make each round as long as a hundred
handshakes, or as many quarters of a megabyte to encrypt; and all others wait for the end of the round. So such
work asks here first. Those who ask are called one in a round, `who` (a flow, an address) by turns; and between two of
them all sockets are looked at once more, so that a small request never waits for more than one piece.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Pace:
    """Says when the next piece may be worked on."""

    def __init__(self, loop: asyncio.AbstractEventLoop, gap: float = 0.0) -> None:
        """`gap`: seconds in which nothing of this is done after each piece."""
        self._loop = loop
        self._gap = gap
        self._free = 0.0  # when the last gap ends
        self._waiting: dict[str, deque[Callable[[], object]]] = {}
        """By who asked; the first of them is next."""
        self._scheduled = False

    def ask(self, who: str, go: Callable[[], object]) -> None:
        """Call `go` when it is its turn."""
        self._waiting.setdefault(who, deque()).append(go)
        self._schedule()

    async def turn(self, who: str) -> None:
        """Return when it is our turn."""
        future: asyncio.Future[None] = self._loop.create_future()
        self.ask(who, lambda: None if future.done() else future.set_result(None))
        await future

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            if self._gap and self._loop.time() < self._free:
                self._loop.call_at(self._free, self._look_around)
            else:
                self._loop.call_soon(self._look_around)

    def _look_around(self) -> None:
        """Serve ready sockets before the next piece."""
        self._loop.call_soon(self._round)

    def _round(self) -> None:
        self._scheduled = False
        who = next(iter(self._waiting))
        pieces = self._waiting.pop(who)
        go = pieces.popleft()
        if pieces:
            self._waiting[who] = pieces  # behind all others
        try:
            go()
        finally:
            self._free = self._loop.time() + self._gap
            if self._waiting:
                self._schedule()
