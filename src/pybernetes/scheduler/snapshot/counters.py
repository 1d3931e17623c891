"""How many pods on each row match something, kept up to date as pods come and go.

Spreading and affinity ask 'how many pods of these namespaces with such labels are on each node?' for every pod. Counted
from nothing that is a walk over all pods; kept, it is one addition when a pod comes or goes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..framework.podinfo import PodInfo

if TYPE_CHECKING:
    from .snapshot import Snapshot

Amount = Callable[[PodInfo], int]


class PodCounter:
    """`counts[row]` is the sum of `amount(pod)` over the pods on the row."""

    __slots__ = ("amount", "counts", "followers", "namespaces", "version")

    def __init__(self, amount: Amount, namespaces: frozenset[str] | None, capacity: int) -> None:
        self.amount = amount
        self.namespaces = namespaces
        """None = pods of all namespaces."""
        self.counts: npt.NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self.version = 0
        """Goes up whenever a count changes."""
        self.followers: list[Callable[[int, int], None]] = []
        """Called for each change: the row, and the increase of its count."""


class PodCounters:
    """All counters that were asked for lately, by key."""

    MOST = 1024
    """Counters kept; the one not asked for longest goes first."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._counters: OrderedDict[Hashable, PodCounter] = OrderedDict()
        self._by_namespace: dict[str | None, dict[Hashable, PodCounter]] = {}

    def get(self, key: Hashable, amount: Amount, namespaces: Iterable[str] | None = None) -> PodCounter:
        """The counter under this key, made (by one walk over the pods) if there is none.

        Equal keys must mean equal `amount` and `namespaces`. `amount` is asked only for pods of these namespaces.
        """
        counter = self._counters.get(key)
        if counter is None:
            counter = self._make(key, amount, None if namespaces is None else frozenset(namespaces))
        else:
            self._counters.move_to_end(key)
        return counter

    def drop(self, key: Hashable) -> None:
        """Forget a counter, for instance because what it counts by has changed (a namespace's labels)."""
        counter = self._counters.pop(key, None)
        if counter is not None:
            for namespace in _buckets(counter):
                del self._by_namespace[namespace][key]

    def _make(self, key: Hashable, amount: Amount, namespaces: frozenset[str] | None) -> PodCounter:
        counter = PodCounter(amount, namespaces, self._snapshot.capacity)
        for info in self._snapshot.infos():
            for pod in info.pods.values():
                if namespaces is None or pod.namespace in namespaces:
                    counter.counts[info.row] += amount(pod)
        while len(self._counters) >= self.MOST:
            self.drop(next(iter(self._counters)))
        self._counters[key] = counter
        for namespace in _buckets(counter):
            self._by_namespace.setdefault(namespace, {})[key] = counter
        return counter

    # -- the snapshot's Tracker

    def grow(self, capacity: int) -> None:
        for counter in self._counters.values():
            counter.counts = np.concatenate((counter.counts, np.zeros(capacity - len(counter.counts), dtype=np.int64)))

    def pod_added(self, pod: PodInfo, row: int) -> None:
        self._count(pod, row, 1)

    def pod_removed(self, pod: PodInfo, row: int) -> None:
        self._count(pod, row, -1)

    def node_changed(self, row: int) -> None:
        pass

    def _count(self, pod: PodInfo, row: int, sign: int) -> None:
        for bucket in (self._by_namespace.get(pod.namespace), self._by_namespace.get(None)):
            if bucket:
                for counter in bucket.values():
                    amount = counter.amount(pod)
                    if amount:
                        counter.counts[row] += sign * amount
                        counter.version += 1
                        for follower in counter.followers:
                            follower(row, sign * amount)


def _buckets(counter: PodCounter) -> Iterable[str | None]:
    return (None,) if counter.namespaces is None else counter.namespaces
