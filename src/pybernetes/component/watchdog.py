"""Measures how late the event loop is, and says what held it.

A timer on the loop notes the time twice a second; a thread looks whether it did. When the loop is more than a second
late the thread logs the stack of what runs on it, once for each stall, and the loop logs how long it took. A process
that was stopped as a whole (SIGSTOP, a suspended machine) is recognized: then the thread was late as well.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback

PERIOD = 0.5
LIMIT = 1.0
log = logging.getLogger(__name__)


class LoopWatchdog:
    """Watches the running event loop between `start()` and `stop()`."""

    def __init__(self, limit: float = LIMIT, period: float = PERIOD) -> None:
        self.stalls = 0
        """How often the loop was later than the limit."""
        self.lag = 0.0
        """How late the last tick was, in seconds."""
        self.max_lag = 0.0
        """The latest tick since `take_max_lag` was last called."""
        self._limit, self._period = limit, period
        self._ticked = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def start(self) -> None:
        """Watch the running loop, from the thread that it runs in."""
        self._loop = asyncio.get_running_loop()
        self._ticked = time.monotonic()
        self._timer = self._loop.call_later(self._period, self._tick)
        self._thread = threading.Thread(
            target=self._watch, args=(threading.get_ident(),), name="event loop watchdog", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the timer and the thread."""
        self._ended.set()
        if self._timer:
            self._timer.cancel()

    def take_max_lag(self) -> float:
        """The largest lag since the last call."""
        found, self.max_lag = self.max_lag, 0.0
        return found

    def _tick(self) -> None:
        now = time.monotonic()
        self.lag = max(0.0, now - self._ticked - self._period)
        self.max_lag = max(self.max_lag, self.lag)
        if self.lag > self._limit:
            self.stalls += 1
            log.warning("the event loop was blocked for %.1f s", self.lag)
        self._ticked = now
        assert self._loop
        self._timer = self._loop.call_later(self._period, self._tick)

    def _watch(self, loop_thread: int) -> None:
        reported = 0.0
        before = time.monotonic()
        while not self._ended.wait(self._limit):
            now = time.monotonic()
            suspended = now - before > 2 * self._limit + self._period
            before = now
            if suspended or self._ticked == reported or now - self._ticked < self._limit + self._period:
                continue
            reported = self._ticked
            frame = sys._current_frames().get(loop_thread)
            stack = "".join(traceback.format_stack(frame, limit=20)) if frame else ""
            log.warning("the event loop has been blocked for %.1f s by\n%s", now - self._ticked, stack.rstrip())
