"""When those whom a priority level has refused should come again: later, the more of them there are. Upstream's rule.

As TCP does it: the time doubles when, over as many seconds as it has, three requests a second were refused, and shrinks
by a second when there was less than one.
"""

from __future__ import annotations

from collections import deque

MOST = 32  # seconds


class RetryAfter:
    """The time for one level."""

    __slots__ = ("_changed", "_count", "_history", "_second", "seconds")

    def __init__(self, now: int) -> None:
        self.seconds = 1
        """The `Retry-After` for clients."""
        self._changed = now  # when the time last grew
        self._second = now
        self._count = 0  # refused in this second
        self._history: deque[tuple[int, int]] = deque()  # seconds before it, and how many were refused in them

    def refused(self, now: int) -> int:
        """Count a refusal; when to come again."""
        if now == self._second:
            self._count += 1
            return self.seconds
        self._remember()
        self._second, self._count = now, 1
        self._update(now)
        return self.seconds

    def _remember(self) -> None:
        self._history.append((self._second, self._count))
        while self._second - self._history[0][0] > min(2 * self.seconds, MOST):
            self._history.popleft()

    def _update(self, now: int) -> None:
        seconds = self.seconds
        refused = sum(count for second, count in self._history if now - second <= seconds)
        if now - self._changed >= seconds and refused >= 3 * seconds:
            self.seconds = min(2 * seconds, MOST)
            self._changed = now
        elif refused < seconds and seconds > 1:
            self.seconds = seconds - 1
