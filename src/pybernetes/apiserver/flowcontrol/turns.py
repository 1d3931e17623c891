"""Who comes first on our one thread.

Seats say how many requests are under way; but all of them share one thread, and an event loop serves whoever is ready
in the order of their sockets. A user with hundreds of connections would be served hundreds of times before another is
once. So only a few requests begin in each round of the loop, and when there are more, the flows take turns.
"""

from __future__ import annotations

import asyncio
from collections import deque

PER_ROUND = 8  # requests that begin in a round; fewer would cost rounds, more would make others wait for them


class Turns:
    """Lets requests begin."""

    def __init__(self, loop: asyncio.AbstractEventLoop, per_round: int = PER_ROUND) -> None:
        self._loop = loop
        self._per_round = per_round
        self._left = per_round
        self._flows: dict[str, deque[asyncio.Future[None]]] = {}
        self._scheduled = False
        self.waited = 0

    def immediate(self) -> bool:
        """Whether a request may begin at once; if so it counts."""
        if self._left <= 0 or self._flows:
            return False
        self._left -= 1
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._round)
        return True

    async def wait(self, flow: str) -> None:
        """Return when it is the turn of this flow."""
        self.waited += 1
        future: asyncio.Future[None] = self._loop.create_future()
        self._flows.setdefault(flow, deque()).append(future)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._round)
        await future

    def _round(self) -> None:
        self._left = self._per_round
        flows = self._flows
        while self._left and flows:
            flow = next(iter(flows))
            futures = flows.pop(flow)
            future = futures.popleft()
            if futures:
                flows[flow] = futures  # behind all others
            if not future.done():
                future.set_result(None)
                self._left -= 1
        self._scheduled = bool(flows) or self._left < self._per_round
        if self._scheduled:
            self._loop.call_soon(self._round)
