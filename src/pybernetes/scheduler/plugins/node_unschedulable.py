"""Keeps pods off cordoned nodes (`spec.unschedulable`), unless they tolerate that."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pybernetes.api.core.tolerations import tolerates
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
    PodInfo,
    Refusals,
    Resource,
    RowArray,
    Rows,
    Scope,
    Status,
)

_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_REFUSAL = Status(UNRESOLVABLE, "node(s) were unschedulable")


class NodeUnschedulable(FilterPlugin):
    """No pods for cordoned nodes."""

    name = "NodeUnschedulable"
    scope = Scope.NODE

    def sign(self, pod: PodInfo) -> Hashable:
        return _tolerated(pod.spec.tolerations)

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        cordoned = self.handle.snapshot.unschedulable[rows]
        return np.ones_like(cordoned) if _tolerated(pod.spec.tolerations) else ~cordoned

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        return ((_REFUSAL, rows),)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT), _after_node_change),
            EventWithHint(ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION), _after_toleration_change),
        )


def _tolerated(tolerations: Sequence[Toleration] | None) -> bool:
    return any(tolerates(each, _TAINT) for each in tolerations or ())


def _after_node_change(pod: Pod, old: Any, new: Any) -> Hint:
    was = old is None or bool(old.spec and old.spec.unschedulable)
    return Hint.QUEUE if was and not (new.spec and new.spec.unschedulable) else Hint.SKIP


def _after_toleration_change(pod: Pod, old: Any, new: Any) -> Hint:
    assert pod.metadata is not None
    same = new.metadata.uid == pod.metadata.uid
    return Hint.QUEUE if same and _tolerated(new.spec.tolerations) else Hint.SKIP
