"""`nodeSelector` and node affinity, the pod's own and what the profile adds (`addedAffinity`)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import msgspec
import numpy as np

from pybernetes.api.core.nodeaffinity import node_selector_matches, required_affinity_matches
from pybernetes.api.core.v1 import Pod, PodSpec
from pybernetes.api.core.v1.affinity import NodeSelector, PreferredSchedulingTerm

from ..framework import (
    SKIP,
    UNRESOLVABLE,
    Action,
    ClusterEvent,
    CycleState,
    EventWithHint,
    FilterPlugin,
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
    Scope,
    ScorePlugin,
    Scores,
    Status,
)
from ..snapshot.selectors import match_node_selector, match_required_affinity, score_preferred

_POD = Status(UNRESOLVABLE, "node(s) didn't match Pod's node affinity/selector")
_ENFORCED = Status(UNRESOLVABLE, "node(s) didn't match scheduler-enforced node affinity")
_CONFLICT = Status(UNRESOLVABLE, "pod affinity terms conflict")
_encode = msgspec.json.Encoder().encode


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters and scores nodes by the pod's node selector and node affinity."""

    name = "NodeAffinity"
    scope = Scope.NODE
    normalize = Normalize.DEFAULT

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        added = args.added_affinity if args else None
        self._added: NodeSelector | None = added and added.required_during_scheduling_ignored_during_execution
        self._added_preferred: Sequence[PreferredSchedulingTerm] = (
            added and added.preferred_during_scheduling_ignored_during_execution
        ) or ()

    def sign(self, pod: PodInfo) -> Hashable:
        affinity = pod.spec.affinity
        if pod.spec.node_selector is None and (affinity is None or affinity.node_affinity is None):
            return b""
        return _encode((pod.spec.node_selector, affinity and affinity.node_affinity))

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        required = _required(pod.spec)
        if required is None and self._added is None and not pod.spec.node_selector:
            return SKIP
        if required is None or not required.node_selector_terms:
            return None
        return _named_nodes(required)

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        snapshot = self.handle.snapshot
        mask = match_required_affinity(snapshot, pod.spec, rows)
        return mask if self._added is None else mask & match_node_selector(snapshot, self._added, rows)

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        if self._added is None:
            return ((_POD, rows),)
        allowed = match_node_selector(self.handle.snapshot, self._added, rows)
        groups = ((_ENFORCED, rows[~allowed]), (_POD, rows[allowed]))
        return [(status, found) for status, found in groups if len(found)]

    def pre_score(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Status | None:
        return None if _preferred(pod.spec) or self._added_preferred else SKIP

    def score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        snapshot = self.handle.snapshot
        scores = np.zeros(snapshot.count(rows), dtype=np.int64)
        for terms in (self._added_preferred, _preferred(pod.spec)):
            if terms:
                scores += score_preferred(snapshot, terms, rows)
        return scores

    def events_to_register(self) -> Sequence[EventWithHint]:
        event = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return (EventWithHint(event, self._after_node_change),)

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> Hint:
        if self._added is not None and not node_selector_matches(self._added, new):
            return Hint.SKIP
        spec = pod.spec or PodSpec()
        if not required_affinity_matches(spec, new):
            return Hint.SKIP
        return Hint.QUEUE if old is None or not required_affinity_matches(spec, old) else Hint.SKIP


def _required(spec: PodSpec) -> NodeSelector | None:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None


def _preferred(spec: PodSpec) -> Sequence[PreferredSchedulingTerm]:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return (affinity.preferred_during_scheduling_ignored_during_execution if affinity else None) or ()


def _named_nodes(selector: NodeSelector) -> PreFilterResult | Status | None:
    """If every term names nodes, only these need a look; DaemonSet pods are such."""
    names: set[str] = set()
    for term in selector.node_selector_terms or ():
        of_term: set[str] | None = None
        for each in term.match_fields or ():
            if each.key == "metadata.name" and each.operator == "In":
                values = set(each.values or ())
                of_term = values if of_term is None else of_term & values
        if of_term is None:
            return None
        names |= of_term
    return PreFilterResult(frozenset(names)) if names else _CONFLICT
