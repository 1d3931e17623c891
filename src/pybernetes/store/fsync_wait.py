"""Whether the event loop waits a moment for the sync of a write, or goes on and hears of it later.

While the disk works beside the loop (`fsync`), others are served; that is right for a batch of many writes. But a
lone write pays for it: its client then waits for two more rounds of the loop, in each of which every other request is
served first. So the loop waits for a lone write, `sqlite.WAIT`
seconds at most; where the disk was slower than that, it does not wait for the next ones, twice as many each time.

A write is alone if no other write is about to come, or if the others have not written for a while (they may only say
what they would write); but never right behind another. So who writes one after another on one connection is alone,
those who write on many connections are not, and gather: few large batches cost less than many small ones. And where
one write follows another while the server has no moment of rest, no write is waited for: it has better to do.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, thread_time

APART = 0.0002
"""Seconds. One client needs longer to read an answer and ask again, on the same machine; a server with other requests
at hand does not."""
RARE = 0.005
"""Seconds in which at most one write, or batch of writes, was acknowledged, though several are under way."""
BUSY = 0.95
"""The share of time at work since the last write from which on there was no rest. One client who writes without a
pause takes 0.75 to 0.9, and gets a fifth more done for being waited for."""
PUT_OFF = 256
"""Lone writes that are not waited for, at most, when the disk was found to be slow several times in a row."""


class Patience:
    """Knows when writes came, and whether the disk was quick."""

    def __init__(self, writing: Callable[[], int]) -> None:
        """`writing`: how many writes there are, with the one that comes now, but for those that wait for another."""
        self._writing = writing
        self._put_off = 0  # lone writes that are not waited for from now on
        self._slow = 0  # how many were not when the disk was found to be slow last
        self._before = self._last = 0.0  # when the last writes but one, and the last, were acknowledged
        self._worked = 0.0  # how long our thread had worked until the last

    def has(self) -> bool:
        """Whether to wait for a write that comes now."""
        now = monotonic()
        since = now - self._last
        if since < APART:
            return False
        if now - self._before < RARE and (self._writing() > 1 or thread_time() - self._worked > BUSY * since):
            return False
        if self._put_off:
            self._put_off -= 1
            return False
        return True

    def expects(self, queued: int) -> bool:
        """Whether so many writes are less than half of those who write now, one batch after another.

        Half, because while one half of them waits for the disk the server works for the other.
        """
        return 2 * queued < self._writing() and monotonic() - self._before < RARE

    def acknowledged(self) -> None:
        """Writes are durable."""
        self._before, self._last = self._last, monotonic()
        self._worked = thread_time()

    def waited(self, *, in_time: bool) -> None:
        """The loop has waited for the disk, which was quick enough or not."""
        self._slow = 0 if in_time else min(2 * self._slow + 1, PUT_OFF)
        self._put_off = self._slow
