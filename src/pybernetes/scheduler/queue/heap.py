"""A heap of pods from which any pod can be taken, by key."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from pybernetes.client.keys import Key

from ..framework.queued import QueuedPodInfo


class PodHeap:
    """Pods by a sort key; of equal ones, the one that came first.

    Invariant: `_entries` has one entry for each pod in the heap; entries in `_heap` that it does not have are dead.
    """

    def __init__(self, sort_key: Callable[[QueuedPodInfo], Any]) -> None:
        self._sort_key = sort_key
        self._heap: list[tuple[Any, int, QueuedPodInfo]] = []
        self._entries: dict[Key, tuple[Any, int, QueuedPodInfo]] = {}
        self._order = count()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (entry[2] for entry in self._entries.values())

    def get(self, key: Key) -> QueuedPodInfo | None:
        """The pod, if it is in the heap."""
        entry = self._entries.get(key)
        return None if entry is None else entry[2]

    def add(self, queued: QueuedPodInfo) -> None:
        """Put it in, or in its new place."""
        entry = (self._sort_key(queued), next(self._order), queued)
        self._entries[queued.info.key] = entry
        heapq.heappush(self._heap, entry)

    def remove(self, key: Key) -> QueuedPodInfo | None:
        """Take it out, if it is there."""
        entry = self._entries.pop(key, None)
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._entries):
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)
        return None if entry is None else entry[2]

    def peek(self) -> QueuedPodInfo | None:
        """The first one."""
        heap = self._heap
        while heap:
            entry = heap[0]
            if self._entries.get(entry[2].info.key) is entry:
                return entry[2]
            heapq.heappop(heap)
        return None

    def pop(self) -> QueuedPodInfo | None:
        """Take the first one out."""
        first = self.peek()
        if first is not None:
            heapq.heappop(self._heap)
            del self._entries[first.info.key]
        return first
