"""Delays that double."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Generic, TypeVar

from .clock import Clock

T = TypeVar("T", bound=Hashable)


class ItemBackoff(Generic[T]):
    """How long an item that keeps failing waits: 5 ms, 10 ms, 20 ms ... 1000 s (client-go's numbers)."""

    def __init__(self, base: float = 0.005, longest: float = 1000.0) -> None:
        self._base = base
        self._longest = longest
        self._failures: dict[T, int] = {}

    def when(self, item: T) -> float:
        """The delay after one more failure."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        return min(self._base * 2.0 ** min(failures, 64), self._longest)

    def failures(self, item: T) -> int:
        """How often the item has failed since it was forgotten."""
        return self._failures.get(item, 0)

    def forget(self, item: T) -> None:
        """The item has succeeded, or is no longer needed."""
        self._failures.pop(item, None)


class Backoff:
    """How long to wait before the next attempt at something of which there is only one.

    Doubles from `base` to `longest`, each with up to as much again at random so that many do not come back at once;
    starts over after `reset` seconds without an attempt.
    """

    def __init__(
        self,
        clock: Clock,
        base: float = 0.8,
        longest: float = 30.0,
        reset: float = 120.0,
        jitter: float = 1.0,
    ) -> None:
        self._clock, self._base, self._longest, self._reset, self._jitter = clock, base, longest, reset, jitter
        self._delay = base
        self._last = clock.monotonic()

    def next(self) -> float:
        """The delay before the next attempt."""
        now = self._clock.monotonic()
        if now - self._last > self._reset:
            self._delay = self._base
        self._last = now
        delay = self._delay * (1 + random.random() * self._jitter)
        self._delay = min(self._delay * 2, self._longest)
        return delay

    def succeeded(self) -> None:
        """Start over."""
        self._delay = self._base
