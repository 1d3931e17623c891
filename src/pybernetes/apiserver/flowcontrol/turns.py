"""Schedules requests on the one thread of the event loop.

Seats limit how many requests are under way; but all of them share one thread, and an event loop serves ready sockets
in the order of their sockets. A user with hundreds of connections would be served hundreds of times before another is
once. So in each round of the loop a flow begins one request, or more if no other flow has any; and while there are
others, only so many of a flow are under way: writes wait for the disk together and go on together. Between two
rounds all sockets are looked at once more: who has come during a long request is not behind the next.

A flow alone has the server for itself, but for a look at the sockets now and then.
"""

from __future__ import annotations

import asyncio
from collections import deque

PER_ROUND = 1  # requests that begin in a round while others wait; more makes those wait longer, and gains nothing
ALONE = 8  # requests that begin in a round while no other flow was seen for a while
AT_ONCE = 12  # requests of a flow under way while there are other flows
MEMORY = 1.0  # seconds for which another flow is remembered


class Turns:
    """Lets requests begin. In each round every flow may begin at least one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, per_round: int = PER_ROUND, at_once: int = AT_ONCE) -> None:
        self._loop = loop
        self._per_round = per_round
        self._at_once = at_once
        self._left = per_round
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._running: dict[str, int] = {}
        self._served: set[str] = set()  # flows that have begun something in this round
        self._now = 0.0  # when a flow alone last had its `ALONE` requests
        self._last = ""  # the flow that came last
        self._shared_until = 0.0  # flows are limited until then
        self._scheduled = False

    def begin(self, flow: str) -> bool:
        """Whether a request may begin at once; if so it counts until `end`."""
        running = self._running.get(flow, 0)
        now = self._loop.time()
        if flow != self._last:
            self._last = flow
            self._shared_until = now + MEMORY
        elif now >= self._shared_until and flow not in self._waiting:
            if now != self._now:
                self._now, self._left = now, ALONE
            if self._left <= 0:
                return False
            self._left -= 1
            self._running[flow] = running + 1
            return True
        if (self._left <= 0 or self._waiting) and (flow in self._served or flow in self._waiting):
            return False
        if running >= self._at_once:
            return False
        self._left -= 1
        self._served.add(flow)
        self._running[flow] = running + 1
        self._schedule()
        return True

    async def once(self, flow: str) -> None:
        """Wait for a turn of the flow and give it back: for answers that are quickly made, such as refusals."""
        if not self.begin(flow):
            await self.wait(flow)
        self.end(flow)

    async def wait(self, flow: str) -> None:
        """Return when it is the turn of this flow; counts until `end`."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.setdefault(flow, deque()).append(future)
        self._schedule()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():  # it was our turn already
                self.end(flow)
            raise

    def end(self, flow: str) -> None:
        """A request has ended."""
        running = self._running[flow] - 1
        if running:
            self._running[flow] = running
        else:
            del self._running[flow]
        if flow in self._waiting:
            self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._look_around)

    def _look_around(self) -> None:
        """End the round after the next poll, so that requests which arrived meanwhile take part in the next one."""
        self._loop.call_soon(self._round)

    def _round(self) -> None:
        """A new round: flows that wait begin, one after another, as far as they may."""
        self._scheduled = False
        shared = self._loop.time() < self._shared_until
        self._left = self._per_round if shared else ALONE
        self._served.clear()
        waiting, held = self._waiting, 0
        limit = self._at_once if shared else 1 << 30
        while self._left > 0 and held < len(waiting):
            flow = next(iter(waiting))
            futures = waiting.pop(flow)
            running = self._running.get(flow, 0)
            while futures and futures[0].done():  # who waited has gone
                futures.popleft()
            if futures and running < limit:
                self._running[flow] = running + 1
                self._served.add(flow)
                self._left -= 1
                futures.popleft().set_result(None)
                held = 0
            elif futures:
                held += 1
            if futures:
                waiting[flow] = futures  # behind all others
        if self._left <= 0:  # something has begun: the next round follows this one
            self._schedule()
