"""Spreads pods of a kind evenly over domains: must (DoNotSchedule) as a filter, should (ScheduleAnyway) as a score.

A domain is all nodes with the same value of a label. What would make a node's domain exceed the emptiest one by more
than `maxSkew` is refused; the score is the better the fewer of its kind are in the node's domains, where domains of
which there are many weigh more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from pybernetes.api.core.tolerations import untolerated_taint
from pybernetes.api.core.v1 import Node, Pod

from ...config.v1.args import PodTopologySpreadArgs
from ...framework import (
    MAX_SCORE,
    SKIP,
    UNRESOLVABLE,
    UNSCHEDULABLE,
    Action,
    ClusterEvent,
    CycleState,
    EventWithHint,
    FilterPlugin,
    Handle,
    Hint,
    Mask,
    Normalize,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Refusals,
    Resource,
    RowArray,
    Rows,
    ScorePlugin,
    Scores,
    Status,
)
from ...snapshot.domains import FAR, DomainCache, Domains, Eligible
from ...snapshot.selectors import match_required_affinity
from .constraints import (
    DO_NOT_SCHEDULE,
    HOSTNAME,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    Constraint,
    ConstraintReader,
    Constraints,
    constraint,
)
from .default_selector import DefaultSelectors

if TYPE_CHECKING:
    from ...snapshot.snapshot import Int32

NOT_SPREAD = Status(UNSCHEDULABLE, "node(s) didn't match pod topology spread constraints")
MAX_CONSTRAINTS = 100
"""Constraints of one pod. Each is compared with every pod of its namespace, and all other pods wait meanwhile."""
TOO_MANY = Status(UNRESOLVABLE, f"parsing pod: it has more than {MAX_CONSTRAINTS} topology spread constraints")
NO_LABEL = Status(UNRESOLVABLE, "node(s) didn't match pod topology spread constraints (missing required label)")
BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")

_encode = msgspec.json.Encoder().encode


class _Hard(NamedTuple):
    """A constraint of the filter."""

    constraint: Constraint
    domains: Domains
    itself: int
    """1 if the pod is one of those it counts."""

    def allowed(self) -> Mask:
        """By value id: whether one more pod is not too many in this domain."""
        least = self.domains.least()
        if least >= FAR or (self.constraint.min_domains > 1 and self.domains.number < self.constraint.min_domains):
            least = 0
        allowed: Mask = self.domains.sums <= self.constraint.max_skew - self.itself + least
        allowed[0] = False
        return allowed


class _Soft(NamedTuple):
    """A constraint of the score."""

    constraint: Constraint
    domains: Domains
    weight: float


class _Scored(NamedTuple):
    """The score's state, computed for one pod."""

    rows: RowArray
    soft: list[_Soft]
    values: list[Int32]
    """Of each constraint, the rows' domains."""
    every_key: bool
    """Whether nodes that lack one of the labels are not scored (0)."""
    counted: Mask | None
    """Which rows are scored; None = all."""


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """See the module."""

    name = "PodTopologySpread"
    Args = PodTopologySpreadArgs
    normalize = Normalize.CUSTOM

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._by_system = args.defaulting_type == "System"
        self._defaults = SYSTEM_DEFAULTS if self._by_system else tuple(args.default_constraints or ())
        self._reader = ConstraintReader()
        self._selectors = DefaultSelectors(handle) if self._defaults else None
        self._default_actions = frozenset(each.when_unsatisfiable for each in self._defaults)
        self._domains = DomainCache(handle.snapshot)

    def events_to_register(self) -> Sequence[EventWithHint]:
        pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            EventWithHint(ClusterEvent(Resource.POD, pods), self._after_pod),
            EventWithHint(ClusterEvent(Resource.NODE, nodes), self._after_node),
        )

    # -- filter

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        if len(pod.spec.topology_spread_constraints or ()) > MAX_CONSTRAINTS:
            return TOO_MANY
        constraints = self._constraints(pod.pod, DO_NOT_SCHEDULE)
        if not constraints:
            return SKIP
        state[self.name] = [
            _Hard(each, self._sums(pod, each, constraints, True), int(each.selector.matches(pod.labels)))
            for each in constraints
        ]
        return None

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        label = self.handle.snapshot.label
        hard: list[_Hard] = state[self.name]
        mask: Mask = hard[0].allowed().take(label(hard[0].constraint.topology_key)[rows])
        for each in hard[1:]:
            mask &= each.allowed().take(label(each.constraint.topology_key)[rows])
        return mask

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        found: list[tuple[Status, RowArray]] = []
        for each in state[self.name]:
            values = self.handle.snapshot.label(each.constraint.topology_key)[rows]
            missing = values == 0
            crowded = ~each.allowed().take(values) & ~missing
            found += [
                (status, rows[mask]) for status, mask in ((NO_LABEL, missing), (NOT_SPREAD, crowded)) if mask.any()
            ]
            rows = rows[~(missing | crowded)]
        return found

    # -- score

    def pre_score(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Status | None:
        constraints = self._constraints(pod.pod, SCHEDULE_ANYWAY)
        if not constraints or not self.handle.snapshot.num_nodes:
            return SKIP
        every_key = bool(pod.spec.topology_spread_constraints) or not self._by_system
        values = [self.handle.snapshot.label(each.topology_key).take(rows) for each in constraints]
        counted = _all_there(values) if every_key else None
        soft = [
            _Soft(each, self._sums(pod, each, constraints, every_key), math.log(self._size(each, here, counted) + 2))
            for each, here in zip(constraints, values, strict=True)
        ]
        state[f"{self.name}/score"] = _Scored(rows, soft, values, every_key, counted)
        return None

    def score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        scored: _Scored = state[f"{self.name}/score"]
        snapshot = self.handle.snapshot
        values, counted = scored.values, scored.counted
        if rows is not scored.rows:
            values = [snapshot.label(each.constraint.topology_key)[rows] for each in scored.soft]
            counted = _all_there(values) if scored.every_key else None
        total = np.zeros(snapshot.count(rows))
        for each, here in zip(scored.soft, values, strict=True):
            if each.constraint.topology_key == HOSTNAME:
                counts = each.domains.counter.counts[rows]
            else:
                counts = each.domains.sums.take(here)
            part = counts * each.weight + (each.constraint.max_skew - 1)
            total += part if scored.every_key else np.where(here != 0, part, 0.0)
        total += 0.5  # upstream rounds halves up
        scores = total.astype(np.int64)
        if counted is not None:
            scores[~counted] = 0
        return scores

    def normalize_scores(self, state: CycleState, pod: PodInfo, scores: Scores, rows: RowArray) -> Scores:
        scored: _Scored = state[f"{self.name}/score"]
        if not len(scores):
            return scores
        if scored.counted is None:
            return _normalize(scores)
        counted = scored.counted
        if counted.any():
            scores[counted] = _normalize(scores[counted])
        return scores

    # -- inside

    def _constraints(self, pod: Pod, action: str) -> Constraints:
        own = pod.spec.topology_spread_constraints if pod.spec else None
        if own and len(own) > MAX_CONSTRAINTS:
            return ()
        if own:
            pod_labels = (pod.metadata.labels if pod.metadata else None) or {}
            return self._reader.read(own, action, pod_labels)
        if self._selectors is None or action not in self._default_actions:
            return ()
        selector = self._selectors.selector(pod)
        if selector.empty():
            return ()
        return tuple(constraint(each, selector) for each in self._defaults if each.when_unsatisfiable == action)

    def _sums(self, pod: PodInfo, wanted: Constraint, constraints: Constraints, every_key: bool) -> Domains:
        """Pods of the constraint's kind by domain, counted on the nodes that count for this pod."""
        keys = tuple(each.topology_key for each in constraints) if every_key else ()
        eligible_key: list[Any] = [*keys]
        spec = pod.spec
        affinity = spec.affinity.node_affinity if spec.affinity else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        by_affinity = wanted.honor_affinity and (bool(spec.node_selector) or required is not None)
        if by_affinity:
            eligible_key.append(_encode((spec.node_selector, required)))
        if wanted.honor_taints:
            eligible_key.append(_encode(spec.tolerations))
        counts, selector = wanted.counts, wanted.selector

        def amount(other: PodInfo) -> int:
            alive = other.pod.metadata is None or other.pod.metadata.deletion_timestamp is None
            return int(counts and alive and selector.matches(other.labels))

        return self._domains.get(
            f"spread/{pod.namespace}/{wanted.selector_key}",
            amount,
            (pod.namespace,),
            wanted.topology_key,
            self._eligible(pod, keys, by_affinity, wanted.honor_taints),
            (by_affinity, wanted.honor_taints, *eligible_key),
        )

    def _eligible(self, pod: PodInfo, keys: tuple[str, ...], by_affinity: bool, by_taints: bool) -> Eligible:
        snapshot, spec = self.handle.snapshot, pod.spec

        def eligible(rows: Rows) -> Mask:
            mask: Mask = snapshot.alive[rows].copy()
            for key in keys:
                mask &= snapshot.label(key)[rows] != 0
            if by_affinity:
                mask &= match_required_affinity(snapshot, spec, rows)
            if by_taints:
                borne = [
                    untolerated_taint(each, spec.tolerations, BLOCKING_EFFECTS) is None for each in snapshot.taint_sets
                ]
                mask &= np.array(borne)[snapshot.taints[rows]]
            return mask

        return eligible

    def _size(self, wanted: Constraint, values: Int32, counted: Mask | None) -> int:
        """How many domains the rows are in; nodes without the label are in one together."""
        if counted is not None:
            values = values[counted]
        if wanted.topology_key == HOSTNAME:
            return len(values)
        return int(np.count_nonzero(np.bincount(values))) if len(values) else 0

    # -- hints

    def _after_pod(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        if any(other is not None and not _involved(other, pod) for other in (old, new)):
            return Hint.SKIP
        constraints = self._constraints(pod, DO_NOT_SCHEDULE)
        if old is None or new is None:
            pod_labels = _labels(new or old)
            return _queue_if(any(each.selector.matches(pod_labels) for each in constraints))
        bears_more = _uid(pod) == _uid(new) and _tolerations(old) != _tolerations(new)
        if bears_more and any(each.honor_taints for each in constraints):
            return Hint.QUEUE
        before, after = _labels(old), _labels(new)
        return _queue_if(
            before != after
            and any(each.selector.matches(before) != each.selector.matches(after) for each in constraints)
        )

    def _after_node(self, pod: Pod, old: Node | None, new: Node | None) -> Hint:
        keys = [each.topology_key for each in self._constraints(pod, DO_NOT_SCHEDULE)]
        before, after = _labels(old), _labels(new)
        was = old is not None and all(key in before for key in keys)
        is_ = new is not None and all(key in after for key in keys)
        if old is None or new is None:
            return _queue_if(was or is_)
        if was != is_:
            return Hint.QUEUE
        moved = any(before.get(key) != after.get(key) for key in keys)
        return _queue_if(is_ and (moved or _taints(old) != _taints(new)))


def _all_there(values: Sequence[Int32]) -> Mask | None:
    """Where no value is absent; None = everywhere."""
    if all(each.all() for each in values):
        return None
    mask: Mask = values[0] != 0
    for each in values[1:]:
        mask &= each != 0
    return mask


def _normalize(scores: Scores) -> Scores:
    highest, lowest = int(scores.max()), int(scores.min())
    if highest == 0:
        return np.full_like(scores, MAX_SCORE)
    if highest - lowest < len(scores):  # few distinct scores: divide each once
        table = MAX_SCORE * (highest + lowest - np.arange(lowest, highest + 1)) // highest
        return table.take(scores - lowest)
    return MAX_SCORE * (highest + lowest - scores) // highest


def _involved(other: Pod, pod: Pod) -> bool:
    if _uid(other) == _uid(pod):
        return True
    placed = (other.spec and other.spec.node_name) or (other.status and other.status.nominated_node_name)
    return bool(placed) and _namespace(other) == _namespace(pod)


def _queue_if(condition: bool) -> Hint:
    return Hint.QUEUE if condition else Hint.SKIP


def _uid(pod: Pod) -> str | None:
    return pod.metadata.uid if pod.metadata else None


def _namespace(pod: Pod) -> str | None:
    return pod.metadata.namespace if pod.metadata else None


def _labels(obj: Pod | Node | None) -> dict[str, str]:
    return (obj.metadata.labels if obj and obj.metadata else None) or {}


def _tolerations(pod: Pod) -> list[Any]:
    return (pod.spec.tolerations if pod.spec else None) or []


def _taints(node: Node) -> list[Any]:
    return (node.spec.taints if node.spec else None) or []
