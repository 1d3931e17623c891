"""When keys with a time to live are due: a heap and one timer for the earliest of them."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

LONGEST_SLEEP = 60.0
"""Seconds: the wall clock may be set while we wait, so we look at it at least this often."""


class Expiries:
    """Calls `expire(key, revision)` when a key is due. It does not know whether the key is still at that revision."""

    def __init__(self, expire: Callable[[str, int], None], clock: Callable[[], float]) -> None:
        self._expire = expire
        self._clock = clock
        self._heap: list[tuple[float, str, int]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def add(self, when: float, key: str, revision: int) -> None:
        """Expire `key` at `when` (wall clock)."""
        heapq.heappush(self._heap, (when, key, revision))
        if self._heap[0][0] == when:
            self._arm()

    def close(self) -> None:
        """Forget all."""
        self._closed = True
        self._heap = []
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap and not self._closed:
            delay = min(max(0.0, self._heap[0][0] - self._clock()), LONGEST_SLEEP)
            self._timer = asyncio.get_running_loop().call_later(delay, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = self._clock()
        while self._heap and self._heap[0][0] <= now:
            _, key, revision = heapq.heappop(self._heap)
            self._expire(key, revision)
        self._arm()
