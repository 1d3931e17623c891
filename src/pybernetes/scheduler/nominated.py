"""Sums the requests of nominated pods, as columns: so that pods of their priority or lower leave them room.

A preempting pod is nominated to its node until its victims are gone and it is bound. Many pods may be on their way at
once, and every other pod's attempt has to count them; node by node that would be most of the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from .framework.plugin import FilterPlugin, Mask, RowArray, Scope
from .framework.podinfo import PodInfo
from .framework.state import CycleState
from .framework.status import Code, Status

if TYPE_CHECKING:
    from .framework.handle import Nominator
    from .snapshot.snapshot import Snapshot

Int64 = npt.NDArray[np.int64]
FIT: Final = "NodeResourcesFit"
PODS: Final = "pods"
"""The column with the number of nominated pods."""


class NominatedSums:
    """By priority, and then by resource: how much the pods nominated to each row ask for.

    Invariant: the sums are of exactly the pods in the nominator whose node has a row, as rows were at `_position` of
    the journal of nodes; `of` catches up with nodes that came or went.
    """

    def __init__(self, snapshot: Snapshot, nominator: Nominator) -> None:
        self._snapshot = snapshot
        self._nominator = nominator
        self._by_priority: dict[int, dict[str, Int64]] = {}
        self._numbers: dict[int, int] = {}
        self._position = snapshot.node_changes.position
        nominator.followers.append(self._moved)
        for name in nominator.nodes():
            for pod in nominator.on_node(name):
                self._moved(1, pod, name)

    def of(self, pod: PodInfo) -> Mapping[str, Int64] | None:
        """The amounts this pod has to leave free, by resource; None if no nominated pod matters to it."""
        if not self._numbers:
            return None
        self._catch_up()
        found = [sums for priority, sums in self._by_priority.items() if priority >= pod.priority]
        own = self._nominator.node_of(pod.uid)
        if not found or (own is None and len(found) == 1):
            return found[0] if found else None
        total: dict[str, Int64] = {}
        for sums in found:
            for name, column in sums.items():
                total[name] = total[name] + column if name in total else column.copy()
        row = self._snapshot.row_of.get(own) if own is not None else None
        if row is not None:
            for name, amount in (*pod.requests.items(), (PODS, 1)):
                if name in total:
                    total[name][row] -= amount
        return total

    def _moved(self, sign: int, pod: PodInfo, node_name: str) -> None:
        row = self._snapshot.row_of.get(node_name)
        if row is None:
            return
        number = self._numbers.get(pod.priority, 0) + sign
        if not number:
            self._numbers.pop(pod.priority, None)
            self._by_priority.pop(pod.priority, None)
            return
        self._numbers[pod.priority] = number
        sums = self._by_priority.setdefault(pod.priority, {})
        for name, amount in (*pod.requests.items(), (PODS, 1)):
            column = sums.get(name)
            if column is None:
                column = sums[name] = np.zeros(self._snapshot.capacity, dtype=np.int64)
            elif len(column) < self._snapshot.capacity:
                column = sums[name] = np.concatenate(
                    (column, np.zeros(self._snapshot.capacity - len(column), dtype=np.int64))
                )
            column[row] += sign * amount

    def _catch_up(self) -> None:
        """Rows may belong to other nodes now. Rare, and nominated pods are few then."""
        position = self._snapshot.node_changes.position
        if position == self._position:
            return
        self._position = position
        self._numbers.clear()
        self._by_priority.clear()
        for name in self._nominator.nodes():
            for pod in self._nominator.on_node(name):
                self._moved(1, pod, name)


def numbers_decide(state: CycleState) -> bool:
    """Whether what NodeResourcesFit says about the pod of this state is plain arithmetic."""
    fit = state.get(FIT)
    return fit is not None and not fit[1]  # resources that a DeviceClass provides are no plain numbers


def only_resources(filters: Sequence[FilterPlugin], state: CycleState) -> bool:
    """Whether the coming or going of pods changes nothing for the pod of this state but resources."""
    return numbers_decide(state) and all(
        each.scope == Scope.NODE or each.name == FIT for each in filters if each.name not in state.skip_filter
    )


def short_of(
    snapshot: Snapshot, asked: Sequence[tuple[str, int]], sums: Mapping[str, Int64], rows: RowArray
) -> list[tuple[str, Mask]]:
    """By reason: on which of the rows there is no room for the pod beside those nominated there."""
    found: list[tuple[str, Mask]] = [
        ("Too many pods", snapshot.pod_count[rows] + sums[PODS][rows] >= snapshot.allowed_pods[rows])
    ]
    for name, amount in asked:
        free = snapshot.allocatable(name)[rows] - snapshot.requested(name)[rows]
        if name in sums:
            free = free - sums[name][rows]
        found.append((f"Insufficient {name}", free < amount))
    return found


def by_reason(short: Sequence[tuple[str, Mask]], rows: RowArray) -> list[tuple[Status, RowArray]]:
    """The rows that are short of something, those with the same reasons together."""
    bits = np.zeros(len(rows), dtype=np.int64)
    for index, (_, where) in enumerate(short):
        bits |= where.astype(np.int64) << index
    return [
        (
            Status(
                Code.UNSCHEDULABLE,
                *(reason for index, (reason, _) in enumerate(short) if combination >> index & 1),
                plugin=FIT,
            ),
            rows[bits == combination],
        )
        for combination in np.unique(bits).tolist()
        if combination
    ]
