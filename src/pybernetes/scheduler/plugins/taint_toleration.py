"""Keeps pods off nodes with taints they do not tolerate, and prefers nodes with fewer of the softer taints.

Thousands of nodes have a handful of distinct sets of taints: each set is judged once for each distinct list of
tolerations, and a node's answer is looked up by the number of its set.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from pybernetes.api.core.tolerations import tolerates, untolerated_taint
from pybernetes.api.core.v1 import Pod
from pybernetes.api.core.v1.affinity import Taint, Toleration

from ..framework import (
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

_REFUSAL = Status(UNRESOLVABLE, "node(s) had untolerated taint(s)")
_FORBIDDING = ("NoSchedule", "NoExecute")
_PREFER = "PreferNoSchedule"
_MOST = 256  # distinct lists of tolerations whose judgements are kept

Judge = Callable[[Sequence[Toleration], tuple[Taint, ...]], int]
_encode = msgspec.json.Encoder().encode


class TaintToleration(FilterPlugin, PreScorePlugin, ScorePlugin):
    """Taints and tolerations."""

    name = "TaintToleration"
    scope = Scope.NODE
    normalize = Normalize.REVERSED

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self._forbidden: dict[bytes, npt.NDArray[np.int64]] = {}
        self._disliked: dict[bytes, npt.NDArray[np.int64]] = {}
        self._sets: list[tuple[Taint, ...]] = []
        """The snapshot's sets of taints that those judge by number."""

    def sign(self, pod: PodInfo) -> Hashable:
        return _key(pod)

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        allowed: Mask = self._judge(self._forbidden, _forbids, pod, rows) == 0
        return allowed

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        return ((_REFUSAL, rows),)

    def pre_score(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Status | None:
        return None

    def score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        return self._judge(self._disliked, _dislikes, pod, rows)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT), _after_node_change),
            EventWithHint(ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION), _after_toleration_change),
        )

    def _judge(self, known: dict[bytes, npt.NDArray[np.int64]], judge: Judge, pod: PodInfo, rows: Rows) -> Scores:
        sets = self.handle.snapshot.taint_sets
        if sets is not self._sets:  # numbered anew
            self._sets = sets
            self._forbidden.clear()
            self._disliked.clear()
        key = _key(pod)
        found = known.get(key)
        if found is None or len(found) < len(sets):
            tolerations = pod.spec.tolerations or ()
            found = np.array([judge(tolerations, each) for each in sets], dtype=np.int64)
            if len(known) >= _MOST:
                del known[next(iter(known))]
            known[key] = found
        return found[self.handle.snapshot.taints[rows]]


def _key(pod: PodInfo) -> bytes:
    return _encode(pod.spec.tolerations)


def _forbids(tolerations: Sequence[Toleration], taints: tuple[Taint, ...]) -> int:
    return int(untolerated_taint(taints, tolerations, _FORBIDDING) is not None)


def _dislikes(tolerations: Sequence[Toleration], taints: tuple[Taint, ...]) -> int:
    soft = [each for each in tolerations if not each.effect or each.effect == _PREFER]
    return sum(taint.effect == _PREFER and not any(tolerates(each, taint) for each in soft) for taint in taints)


def _after_node_change(pod: Pod, old: Any, new: Any) -> Hint:
    tolerations = (pod.spec.tolerations if pod.spec else None) or ()
    was = old is None or untolerated_taint(old.spec and old.spec.taints, tolerations, _FORBIDDING) is not None
    is_now = untolerated_taint(new.spec and new.spec.taints, tolerations, _FORBIDDING) is not None
    return Hint.QUEUE if was and not is_now else Hint.SKIP


def _after_toleration_change(pod: Pod, old: Any, new: Any) -> Hint:
    assert pod.metadata is not None
    return Hint.QUEUE if new.metadata.uid == pod.metadata.uid else Hint.SKIP
