"""Nodes that wait to be tainted, at a limited rate; one such queue for each zone. No IO."""

from __future__ import annotations

from pybernetes.client.clock import Clock
from pybernetes.client.ratelimit import TokenBucket


class Evictor:
    """A queue in the order of arrival in which a node is once."""

    def __init__(self, rate: float, clock: Clock) -> None:
        self._clock = clock
        self._rate = rate
        self._bucket = TokenBucket(rate, 1, clock) if rate > 0 else None
        self._waiting: dict[str, None] = {}
        self._known: set[str] = set()
        """Those waiting, and those that were handed out and not removed: they do not come again."""

    def add(self, node: str) -> bool:
        """Let a node wait; False if it does already, or has had its turn."""
        if node in self._known:
            return False
        self._known.add(node)
        self._waiting[node] = None
        return True

    def remove(self, node: str) -> bool:
        """The node need not wait, and may come again; whether it was known."""
        self._waiting.pop(node, None)
        if node not in self._known:
            return False
        self._known.discard(node)
        return True

    def retry(self, node: str) -> None:
        """The node that was handed out comes again, after the others."""
        if node in self._known:
            self._waiting[node] = None

    def take(self) -> str | None:
        """The next node if there is one and the rate allows it."""
        if not self._waiting or self._bucket is None or not self._bucket.try_take():
            return None
        node = next(iter(self._waiting))
        del self._waiting[node]
        return node

    @property
    def rate(self) -> float:
        """Nodes per second; 0 = none."""
        return self._rate

    @rate.setter
    def rate(self, rate: float) -> None:
        if rate == self._rate:
            return
        # Who has just used up the old limit must not get a node for free by changing to another.
        exhausted = self._bucket is None or not self._bucket.try_take()
        self._rate = rate
        self._bucket = TokenBucket(rate, 1, self._clock) if rate > 0 else None
        if exhausted and self._bucket is not None:
            self._bucket.try_take()

    def __contains__(self, node: str) -> bool:
        """Whether the node waits or has had its turn."""
        return node in self._known

    def __len__(self) -> int:
        return len(self._waiting)
