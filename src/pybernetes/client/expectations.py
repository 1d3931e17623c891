"""Tracks a controller's own writes that its cache has not seen yet.

A cache lags behind. A controller that has created three pods and looks again too early sees none of them, and would
create three more. So it notes what it expects before it asks, the informer's handlers cross it out, and until all is
crossed out, or five minutes have passed (a lost event must not stop a controller for ever), it does not act again.

Deletions are expected by uid, so that one seen twice (deletionTimestamp set, then gone) counts once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from .clock import Clock

T = TypeVar("T", bound=Hashable)

TIMEOUT = 300.0  # upstream's ExpectationsTimeout


class _Expected:
    """`creations` may fall below zero: an event may be seen before the answer to the request that caused it."""

    __slots__ = ("creations", "deletions", "since")

    def __init__(self, since: float) -> None:
        self.creations = 0
        self.deletions: set[str] = set()
        self.since = since


class Expectations(Generic[T]):
    """Expectations by the key of the object that a controller works for."""

    def __init__(self, clock: Clock, timeout: float = TIMEOUT) -> None:
        self._clock = clock
        self._timeout = timeout
        self._expected: dict[T, _Expected] = {}

    def expect_creations(self, key: T, number: int) -> None:
        """So many are about to be created. Call before the first request."""
        self._fresh(key).creations = number

    def expect_deletions(self, key: T, uids: Iterable[str]) -> None:
        """These are about to be deleted. Call before the first request."""
        self._fresh(key).deletions = set(uids)

    def expect(self, key: T, creations: int, deletions: Iterable[str]) -> None:
        """Both at once."""
        expected = self._fresh(key)
        expected.creations = creations
        expected.deletions = set(deletions)

    def creation_observed(self, key: T, number: int = 1) -> None:
        """One was seen, or will never be because its request failed."""
        expected = self._expected.get(key)
        if expected is not None:
            expected.creations -= number

    def deletion_observed(self, key: T, uid: str) -> None:
        """It was seen to go, or its request failed."""
        expected = self._expected.get(key)
        if expected is not None:
            expected.deletions.discard(uid)

    def satisfied(self, key: T) -> bool:
        """Whether the cache shows all that was asked for, or it is no use waiting any longer."""
        expected = self._expected.get(key)
        if expected is None:
            return True
        if expected.creations <= 0 and not expected.deletions:
            return True
        return self._clock.monotonic() - expected.since > self._timeout

    def pending(self, key: T) -> tuple[int, frozenset[str]]:
        """How many creations and which deletions are still to be seen."""
        expected = self._expected.get(key)
        return (max(0, expected.creations), frozenset(expected.deletions)) if expected else (0, frozenset())

    def forget(self, key: T) -> None:
        """The object is gone, and with it all expectations."""
        self._expected.pop(key, None)

    def _fresh(self, key: T) -> _Expected:
        expected = self._expected[key] = _Expected(self._clock.monotonic())
        return expected
