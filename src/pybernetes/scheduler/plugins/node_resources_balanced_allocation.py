"""Prefers nodes on which the pod makes the use of resources more even (CPU and memory used by the same fraction)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..config.v1.args import NodeResourcesBalancedAllocationArgs
from ..framework import (
    MAX_SCORE,
    SKIP,
    CycleState,
    EventWithHint,
    PodInfo,
    PreScorePlugin,
    RowArray,
    Rows,
    Scope,
    ScorePlugin,
    Scores,
    Status,
)
from .resource_allocation import Wanted, shares, wanted

Fractions = npt.NDArray[np.float64]


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """How even the use of resources becomes."""

    name = "NodeResourcesBalancedAllocation"
    scope = Scope.ROW

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Any) -> None:
        super().__init__(args, handle)
        self._resources = args.resources or ()

    def sign(self, pod: PodInfo) -> Hashable:
        return tuple(pod.requests.items())

    def pre_score(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Status | None:
        count = wanted(self._resources, dict(pod.requests))
        if not any(request for _, _, request in count):
            return SKIP
        state[self.name] = count
        return None

    def score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        count: Wanted = state[self.name]
        found = shares(self.handle.snapshot, count, rows, nonzero=False)
        capacities = [each.allocatable for each in found]
        without = _evenness([each.allocated for each in found], capacities)
        with_pod = _evenness([each.allocated + each.request for each in found], capacities)
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + with_pod - without) // 2

    def score_row(self, state: CycleState, pod: PodInfo, row: int) -> int:
        count: Wanted = state[self.name]
        if len(count) != 2:
            return super().score_row(state, pod, row)
        snapshot = self.handle.snapshot
        (name, _, request), (other, _, other_request) = count
        capacity, other_capacity = snapshot.allocatable(name).item(row), snapshot.allocatable(other).item(row)
        if not capacity or not other_capacity:
            return super().score_row(state, pod, row)
        used, other_used = snapshot.requested(name).item(row), snapshot.requested(other).item(row)
        without = _evenness_of_two(used / capacity, other_used / other_capacity)
        with_pod = _evenness_of_two((used + request) / capacity, (other_used + other_request) / other_capacity)
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + with_pod - without) // 2

    def events_to_register(self) -> Sequence[EventWithHint]:
        return ()


def _evenness(used: Sequence[Scores], capacities: Sequence[Scores]) -> Scores:
    """100 less the standard deviation of the fractions in use; resources that a node does not have do not count."""
    there = [capacity > 0 for capacity in capacities]
    fractions: list[Fractions] = [
        np.where(has, np.clip(amount / np.maximum(capacity, 1), 0.0, 1.0), 0.0)
        for amount, capacity, has in zip(used, capacities, there, strict=True)
    ]
    if len(fractions) == 2:
        deviation = np.where(there[0] & there[1], np.abs((fractions[0] - fractions[1]) / 2), 0.0)
    else:
        deviation = _deviation(fractions, there)
    return ((1 - deviation) * float(MAX_SCORE)).astype(np.int64)


def _evenness_of_two(one: float, other: float) -> int:
    one, other = max(0.0, min(one, 1.0)), max(0.0, min(other, 1.0))
    return int((1 - abs((one - other) / 2)) * float(MAX_SCORE))


def _deviation(fractions: Sequence[Fractions], there: Sequence[npt.NDArray[np.bool_]]) -> Fractions:
    number = np.sum(there, axis=0)
    total = np.zeros(len(number))
    for fraction in fractions:
        total += fraction
    mean = total / np.maximum(number, 1)
    squares = np.zeros(len(number))
    for fraction, has in zip(fractions, there, strict=True):
        squares += np.where(has, (fraction - mean) * (fraction - mean), 0.0)
    deviation = np.sqrt(squares / np.maximum(number, 1))
    # Of two, upstream takes half the difference, which floating point does not always round the same way.
    if (number == 2).any():
        for row in np.flatnonzero(number == 2).tolist():
            one, other = (fraction[row] for fraction, has in zip(fractions, there, strict=True) if has[row])
            deviation[row] = abs((one - other) / 2)
    result: Fractions = np.where(number > 1, deviation, 0.0)
    return result
