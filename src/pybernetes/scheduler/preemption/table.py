"""The pods of many rows as arrays, the most important first, so that victims are chosen on all rows at once.

Rows are read in at their first use and again after their pods have changed; who never preempts pays nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ..framework.plugin import RowArray
from ..framework.podinfo import PodInfo
from ..snapshot.snapshot import Snapshot
from .victims import importance, start_time

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]

NO_POD: Final = np.int64(1) << 40
"""The priority of an empty slot: above all priorities, so that it is never a victim."""


class VictimTable:
    """`priority[row, k]` and the like are of the k-th most important pod on the row.

    Invariant: for rows that were loaded and whose pods have not changed since, columns are as the snapshot is; `lowest`
    is so for all rows after `refresh`.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._position = -1
        self._width = 8
        self.lowest: Int64 = np.full(0, NO_POD)
        """The lowest priority on each row."""
        self.priority: Int64 = np.full((0, self._width), NO_POD)
        self.start: Float64 = np.zeros((0, self._width))
        """When pods were started, seconds since 1970; inf = not yet."""
        self.pods: list[tuple[PodInfo, ...]] = []
        self._requests: dict[str, Int64] = {}
        self._stale = np.ones(0, dtype=np.bool_)

    def refresh(self) -> None:
        """Catch up with the pods that came and went; `lowest` is right then."""
        snapshot = self._snapshot
        journal = snapshot.pod_changes
        if self._position == journal.position:
            return
        if len(self.lowest) < snapshot.capacity:
            self._grow(snapshot.capacity)
        rows = journal.since(self._position)
        self._position = journal.position
        if rows is None:
            self._stale[:] = True
            self.lowest[:] = NO_POD
            for info in snapshot.infos():
                self._set_lowest(info.row, info.pods)
            return
        for row in set(rows):
            self._stale[row] = True
            self._set_lowest(row, snapshot.info(row).pods if snapshot.names[row] else {})

    def load(self, rows: RowArray) -> None:
        """Read these rows in."""
        for row in rows[self._stale[rows]].tolist():
            self._load(row)

    def requests(self, resource: str) -> Int64:
        """How much of a resource each pod asks for."""
        found = self._requests.get(resource)
        if found is None:
            found = self._requests[resource] = np.zeros_like(self.priority)
            for row, pods in enumerate(self.pods):
                for k, pod in enumerate(pods):
                    found[row, k] = pod.requests.get(resource, 0)
        return found

    def _set_lowest(self, row: int, pods: dict[str, PodInfo]) -> None:
        self.lowest[row] = min((pod.priority for pod in pods.values()), default=NO_POD)

    def _load(self, row: int) -> None:
        pods = tuple(sorted(self._snapshot.info(row).pods.values(), key=importance))
        if len(pods) > self._width:
            self._widen(len(pods))
        count = len(pods)
        self.pods[row] = pods
        self.priority[row] = NO_POD
        self.priority[row, :count] = [pod.priority for pod in pods]
        self.start[row, :count] = [start_time(pod) for pod in pods]
        for resource, column in self._requests.items():
            column[row] = 0
            column[row, :count] = [pod.requests.get(resource, 0) for pod in pods]
        self._stale[row] = False

    def _grow(self, capacity: int) -> None:
        more = capacity - len(self.lowest)
        self.lowest = np.concatenate((self.lowest, np.full(more, NO_POD)))
        self.priority = np.concatenate((self.priority, np.full((more, self._width), NO_POD)))
        self.start = np.concatenate((self.start, np.zeros((more, self._width))))
        self._stale = np.concatenate((self._stale, np.ones(more, dtype=np.bool_)))
        self.pods.extend([()] * more)
        for resource, column in self._requests.items():
            self._requests[resource] = np.concatenate((column, np.zeros((more, self._width), dtype=np.int64)))

    def _widen(self, width: int) -> None:
        rows, more = len(self.lowest), max(width, 2 * self._width) - self._width
        self._width += more
        self.priority = np.concatenate((self.priority, np.full((rows, more), NO_POD)), axis=1)
        self.start = np.concatenate((self.start, np.zeros((rows, more))), axis=1)
        for resource, column in self._requests.items():
            self._requests[resource] = np.concatenate((column, np.zeros((rows, more), dtype=np.int64)), axis=1)
