"""Time and timers behind one small interface, so that a test need not wait five minutes to see what happens then.

`SystemClock` is the machine's. `FakeClock` stands still until it is moved: exact, for cores that do no IO.
`JumpingClock` flows like the machine's and can be moved ahead on top: for tests in which real servers answer in real
time while the controller believes that an hour has passed.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

from pybernetes.api import times


class Timer(Protocol):
    """A call that will happen."""

    def cancel(self) -> None:
        """Make it not happen; nothing if it already has."""
        ...


class Clock(times.Clock, Protocol):
    """Where the time comes from, and who wakes us."""

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> Timer:
        """Call from the event loop when so much time has passed."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when so much time has passed."""
        ...


class SystemClock(times.SystemClock):
    """The machine's clock, and the event loop's timers."""

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> Timer:
        """Call from the event loop when so much time has passed."""
        return asyncio.get_running_loop().call_later(max(0.0, seconds), callback, *args)

    async def sleep(self, seconds: float) -> None:
        """Return when so much time has passed."""
        await asyncio.sleep(seconds)


class _FakeTimer:
    __slots__ = ("args", "callback", "cancelled")

    def __init__(self, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.callback, self.args, self.cancelled = callback, args, False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock(times.FakeClock):
    """A clock that the test moves; it calls due timers while it moves, in the order of time."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        super().__init__(now)
        self._timers: list[tuple[float, int, _FakeTimer]] = []  # a heap by (due, order of registration)
        self._order = count()

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> Timer:
        """Call during the `advance` that reaches the moment; never before `advance`, not even for 0 seconds."""
        timer = _FakeTimer(callback, args)
        heapq.heappush(self._timers, (self.monotonic() + max(0.0, seconds), next(self._order), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        """Return when the clock has been moved so far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, _finish, done)
        try:
            await done
        finally:
            timer.cancel()

    def advance(self, seconds: float) -> None:
        """Let time pass; each timer that becomes due sees its own moment as the present."""
        target = self.monotonic() + seconds
        while self._timers and self._timers[0][0] <= target:
            due, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled:
                super().advance(max(0.0, due - self.monotonic()))
                timer.callback(*timer.args)
        super().advance(max(0.0, target - self.monotonic()))

    @property
    def timers(self) -> int:
        """How many timers are waiting."""
        return sum(not timer.cancelled for _, _, timer in self._timers)


class _JumpingTimer:
    __slots__ = ("args", "callback", "cancelled", "due", "handle")

    def __init__(self, due: float, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.due, self.callback, self.args, self.cancelled = due, callback, args, False
        self.handle: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        self.cancelled = True
        if self.handle:
            self.handle.cancel()


class JumpingClock:
    """The machine's clock, plus what `advance` has added; timers that a jump makes due are called at once."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._timers: set[_JumpingTimer] = set()

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time() + self._ahead

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return time.monotonic() + self._ahead

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> Timer:
        """Call when so much time has passed or been jumped over."""
        timer = _JumpingTimer(self.monotonic() + max(0.0, seconds), callback, args)
        self._timers.add(timer)
        timer.handle = asyncio.get_running_loop().call_later(max(0.0, seconds), self._fire, timer)
        return timer

    async def sleep(self, seconds: float) -> None:
        """Return when so much time has passed or been jumped over."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, _finish, done)
        try:
            await done
        finally:
            timer.cancel()

    def advance(self, seconds: float) -> None:
        """Jump ahead."""
        self._ahead += seconds
        now = self.monotonic()
        self._timers = {timer for timer in self._timers if not timer.cancelled}
        for timer in sorted((each for each in self._timers if each.due <= now), key=lambda each: each.due):
            self._fire(timer)

    def _fire(self, timer: _JumpingTimer) -> None:
        self._timers.discard(timer)
        if not timer.cancelled:
            timer.cancel()
            timer.callback(*timer.args)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
