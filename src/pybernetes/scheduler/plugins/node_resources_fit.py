"""Keeps pods off nodes without enough resources, and scores nodes by what would be left.

Strategies: LeastAllocated (spread), MostAllocated (pack), RequestedToCapacityRatio (a function of one's own).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pybernetes.api.core.resourcenames import is_extended
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.resource.v1 import DeviceClass

from ..config.v1.args import NodeResourcesFitArgs, UtilizationShapePoint
from ..framework import (
    MAX_SCORE,
    UNRESOLVABLE,
    UNSCHEDULABLE,
    Action,
    ClusterEvent,
    CycleState,
    EventWithHint,
    FilterPlugin,
    Hint,
    Mask,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Refusals,
    Resource,
    RowArray,
    Rows,
    Scope,
    ScorePlugin,
    Scores,
    Status,
)
from ..framework.podinfo import as_requests
from ..snapshot.snapshot import quantities
from .resource_allocation import Share, Wanted, allocated_column, scoring_requests, shares, wanted

_FIRST = ("cpu", "memory", "ephemeral-storage")
_DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
_TOO_MANY_PODS = "Too many pods"
_MAX_SHAPE_SCORE = 10  # scores of a RequestedToCapacityRatio shape go up to this

Strategy = Callable[[list[Share], int], Scores]


class NodeResourcesFit(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Resources: is there enough, and how good is what is left?"""

    name = "NodeResourcesFit"
    scope = Scope.ROW

    def __init__(self, args: NodeResourcesFitArgs, handle: Any) -> None:
        super().__init__(args, handle)
        self._ignored = frozenset(args.ignored_resources or ()).union(
            *(extender.ignored_resources for extender in handle.extenders)
        )
        self._ignored_groups = frozenset(args.ignored_resource_groups or ())
        strategy = args.scoring_strategy
        assert strategy is not None
        self._resources = strategy.resources or ()
        ratio = strategy.requested_to_capacity_ratio
        self._strategy: Strategy = {
            "LeastAllocated": _least_allocated,
            "MostAllocated": _most_allocated,
            "RequestedToCapacityRatio": _requested_to_capacity_ratio((ratio.shape if ratio else None) or ()),
        }[strategy.type or "LeastAllocated"]
        self._classes = handle.informer(DeviceClass)

    def sign(self, pod: PodInfo) -> Hashable:
        own = tuple(pod.requests.items())
        if pod.spec.resources is None and not any(_may_be_device(name) for name, _ in own):
            return own, pod.nonzero_requests
        return own, tuple(scoring_requests(pod).items()), self._delegated(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        state[self.name] = tuple(self._asked_for(pod)), self._delegated(pod)
        return None

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        snapshot = self.handle.snapshot
        asked, delegated = state[self.name]
        mask = snapshot.pod_count[rows] < snapshot.allowed_pods[rows]
        for name, amount in asked:
            allocatable = snapshot.allocatable(name)[rows]
            enough = allocatable - snapshot.requested(name)[rows] >= amount
            if name in delegated:
                enough |= allocatable == 0
            mask &= enough
        return mask

    def filter_row(self, state: CycleState, pod: PodInfo, row: int) -> bool:
        snapshot = self.handle.snapshot
        asked, delegated = state[self.name]
        if snapshot.pod_count.item(row) >= snapshot.allowed_pods.item(row):
            return False
        for name, amount in asked:
            allocatable = snapshot.allocatable(name).item(row)
            if allocatable - snapshot.requested(name).item(row) < amount and (allocatable or name not in delegated):
                return False
        return True

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        snapshot = self.handle.snapshot
        asked, delegated = state[self.name]
        reasons = [_TOO_MANY_PODS]
        bits = (snapshot.pod_count[rows] >= snapshot.allowed_pods[rows]).astype(np.int64)
        never = np.zeros(len(rows), dtype=np.bool_)
        for index, (name, amount) in enumerate(asked, start=1):
            allocatable = snapshot.allocatable(name)[rows]
            short = allocatable - snapshot.requested(name)[rows] < amount
            if name in delegated:
                short &= allocatable > 0
            reasons.append(f"Insufficient {name}")
            bits |= short.astype(np.int64) << index
            never |= short & (amount > allocatable)
        bits = bits << 1 | never
        for combination in np.unique(bits).tolist():
            said = [reason for index, reason in enumerate(reasons) if combination >> (index + 1) & 1]
            code = UNRESOLVABLE if combination & 1 else UNSCHEDULABLE
            yield Status(code, *said), rows[bits == combination]

    def pre_score(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Status | None:
        state[f"{self.name}/score"] = wanted(self._resources, scoring_requests(pod))
        return None

    def score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        count: Wanted = state[f"{self.name}/score"]
        snapshot = self.handle.snapshot
        return self._strategy(shares(snapshot, count, rows, nonzero=True), snapshot.count(rows))

    def score_row(self, state: CycleState, pod: PodInfo, row: int) -> int:
        if self._strategy is not _least_allocated:
            return super().score_row(state, pod, row)
        snapshot = self.handle.snapshot
        total = weights = 0
        for name, weight, request in state[f"{self.name}/score"]:
            capacity = snapshot.allocatable(name).item(row)
            if not capacity:
                continue
            used = allocated_column(snapshot, name, nonzero=True).item(row) + request
            if 0 <= used <= capacity:
                total += (capacity - used) * MAX_SCORE // capacity * weight
            weights += weight
        return total // weights if weights else 0

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(ClusterEvent(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN), _after_pod_event),
            EventWithHint(
                ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE), self._after_node_change
            ),
            EventWithHint(ClusterEvent(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE), _after_device_class_event),
        )

    def _asked_for(self, pod: PodInfo) -> Iterator[tuple[str, int]]:
        requests = pod.requests
        for name in _FIRST:
            if requests.get(name):
                yield name, requests[name]
        for name, amount in requests.items():
            if name in _FIRST or not amount or name == "pods":
                continue
            if is_extended(name) and (name in self._ignored or name.partition("/")[0] in self._ignored_groups):
                continue
            yield name, amount

    def _delegated(self, pod: PodInfo) -> frozenset[str]:
        """Extended resources that a DeviceClass provides; where a node has none itself, DynamicResources decides."""
        extended = [name for name, amount in pod.requests.items() if amount and _may_be_device(name)]
        if not extended:
            return frozenset()
        provided = {
            name
            for each in self._classes.items()
            for name in (
                each.spec.extended_resource_name if each.spec else None,
                f"{_DEVICE_CLASS_PREFIX}{each.metadata.name if each.metadata else ''}",
            )
        }
        return frozenset(name for name in extended if name in provided)

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> Hint:
        info = PodInfo(pod)
        requests, delegated = info.requests, self._delegated(info)
        has = _allocatable(new)
        if has.get("pods", 0) < 1:
            return Hint.SKIP
        for name, amount in requests.items():
            if amount > has.get(name, 0) and not (name in delegated and not has.get(name)):
                return Hint.SKIP
        if old is None:
            return Hint.QUEUE
        had = _allocatable(old)
        grown = has.get("pods", 0) > had.get("pods", 0) or any(
            amount and (has.get(name, 0) > had.get(name, 0) or name in delegated) for name, amount in requests.items()
        )
        return Hint.QUEUE if grown else Hint.SKIP


def _allocatable(node: Node) -> dict[str, int]:
    return as_requests(quantities(node.status.allocatable if node.status else None))


def _after_pod_event(pod: Pod, old: Any, new: Any) -> Hint:
    assert pod.metadata is not None
    if new is None:
        placed = old.spec.node_name or (old.status and old.status.nominated_node_name)
        return Hint.QUEUE if placed else Hint.SKIP
    if new.metadata.uid == pod.metadata.uid:
        return Hint.QUEUE
    if not new.spec.node_name:
        return Hint.SKIP
    before, after = PodInfo(old).requests, PodInfo(new).requests
    freed = any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in PodInfo(pod).requests.items())
    return Hint.QUEUE if freed else Hint.SKIP


def _after_device_class_event(pod: Pod, old: Any, new: Any) -> Hint:
    name = new.spec.extended_resource_name if new.spec else None
    requests = PodInfo(pod).requests
    if old is not None:
        if (old.spec.extended_resource_name if old.spec else None) == name:
            return Hint.SKIP
    elif f"{_DEVICE_CLASS_PREFIX}{new.metadata.name}" in requests:
        return Hint.QUEUE
    return Hint.QUEUE if name and name in requests else Hint.SKIP


def _least_allocated(found: list[Share], count: int) -> Scores:
    return _weighted(found, count, lambda used, capacity: np.where((used > capacity) | (used < 0), 0, capacity - used))


def _most_allocated(found: list[Share], count: int) -> Scores:
    return _weighted(found, count, lambda used, capacity: np.clip(used, 0, capacity))


def _weighted(found: list[Share], count: int, part: Callable[[Any, Any], Any]) -> Scores:
    total: Scores = np.zeros(count, dtype=np.int64)
    weights: Scores = np.zeros(count, dtype=np.int64)
    for share in found:
        capacity = share.allocatable
        there = capacity > 0
        score = part(share.allocated + share.request, capacity) * MAX_SCORE // np.maximum(capacity, 1)
        total += np.where(there, score * share.weight, 0)
        weights += there * share.weight
    return total // np.maximum(weights, 1)


def _requested_to_capacity_ratio(shape: Sequence[UtilizationShapePoint]) -> Strategy:
    table = _broken_linear(
        [(each.utilization or 0, (each.score or 0) * (MAX_SCORE // _MAX_SHAPE_SCORE)) for each in shape]
    )

    def score(found: list[Share], count: int) -> Scores:
        total: Scores = np.zeros(count, dtype=np.int64)
        weights: Scores = np.zeros(count, dtype=np.int64)
        for share in found:
            capacity = share.allocatable
            used = np.clip(share.allocated + share.request, 0, capacity)
            points = table[used * 100 // np.maximum(capacity, 1)]
            counts = (capacity > 0) & (points > 0)
            total += np.where(counts, points * share.weight, 0)
            weights += counts * share.weight
        return (2 * total + weights) // np.maximum(2 * weights, 1)  # rounded to the nearest, halves up

    return score


def _broken_linear(points: Sequence[tuple[int, int]]) -> npt.NDArray[np.int64]:
    """The function's value for each percentage from 0 to 100, in integer arithmetic that rounds towards zero."""
    table = np.zeros(101, dtype=np.int64)
    for percent in range(101) if points else ():
        for index, (at, score) in enumerate(points):
            if percent <= at:
                if index:
                    start, base = points[index - 1]
                    score = base + int((score - base) * (percent - start) / (at - start))
                table[percent] = score
                break
        else:
            table[percent] = points[-1][1]
    return table


def _may_be_device(name: str) -> bool:
    """Whether a DeviceClass may provide the resource."""
    return is_extended(name) or name.startswith(_DEVICE_CLASS_PREFIX)
