"""A pod that names its node gets that one or none."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from ..framework import (
    UNRESOLVABLE,
    Action,
    ClusterEvent,
    CycleState,
    EventWithHint,
    FilterPlugin,
    Mask,
    PodInfo,
    Refusals,
    Resource,
    RowArray,
    Rows,
    Scope,
    Status,
)

_REFUSAL = Status(UNRESOLVABLE, "node(s) didn't match the requested node name")


class NodeName(FilterPlugin):
    """`spec.nodeName`"""

    name = "NodeName"
    scope = Scope.NODE

    def sign(self, pod: PodInfo) -> Hashable:
        return pod.spec.node_name or ""

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        snapshot = self.handle.snapshot
        wanted = pod.spec.node_name
        if not wanted:
            return np.ones(snapshot.count(rows), dtype=np.bool_)
        mask: Mask = snapshot.row_numbers(rows) == snapshot.row_of.get(wanted, -1)
        return mask

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        return ((_REFUSAL, rows),)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (EventWithHint(ClusterEvent(Resource.NODE, Action.ADD)),)
