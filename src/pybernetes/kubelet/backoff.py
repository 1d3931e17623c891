"""Waiting before the next try, longer each time, forgotten after a time without trouble: containers and image pulls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from pybernetes.client.clock import Clock

# upstream's numbers
CRASH_LOOP_BASE: Final = 10.0
CRASH_LOOP_LONGEST: Final = 300.0
IMAGE_BASE: Final = 10.0
IMAGE_LONGEST: Final = 300.0

SKEW: Final = 1.0
"""Seconds that a moment may lie in the future by rounding."""


@dataclass(slots=True)
class _Entry:
    delay: float
    updated: float


class BackOff:
    """How long each key has to wait. Times are seconds since 1970, as the runtime's are."""

    def __init__(self, clock: Clock, base: float, longest: float) -> None:
        self._clock = clock
        self._base = base
        self._longest = longest
        self._entries: dict[str, _Entry] = {}

    def delay(self, key: str) -> float:
        """The present delay of a key."""
        entry = self._entries.get(key)
        return entry.delay if entry else 0.0

    def is_waiting(self, key: str, since: float) -> bool:
        """Whether a key that failed at this moment still has to wait."""
        entry = self._entries.get(key)
        return entry is not None and not self._is_old(entry, since) and self._elapsed(since) < entry.delay

    def is_waiting_since_update(self, key: str) -> bool:
        """Whether a key still has to wait, counted from its last failure."""
        entry = self._entries.get(key)
        return entry is not None and self._elapsed(entry.updated) < entry.delay

    def next(self, key: str, since: float) -> None:
        """One more try is made, after a failure at this moment: the next one has to wait twice as long."""
        entry = self._entries.get(key)
        delay = self._base if entry is None or self._is_old(entry, since) else min(2 * entry.delay, self._longest)
        self._entries[key] = _Entry(delay, self._clock.now())

    def reset(self, key: str) -> None:
        """Forget a key."""
        self._entries.pop(key, None)

    def collect(self) -> None:
        """Forget all keys that have been quiet for long."""
        now = self._clock.now()
        self._entries = {key: each for key, each in self._entries.items() if not self._is_old(each, now)}

    def _elapsed(self, since: float) -> float:
        """Seconds since a moment; infinite if it lies in the future, because the clock was set back."""
        elapsed = self._clock.now() - since
        return elapsed if elapsed > -SKEW else math.inf

    def _is_old(self, entry: _Entry, since: float) -> bool:
        """Twice the longest delay without another failure is recovery."""
        return since - entry.updated > 2 * self._longest
