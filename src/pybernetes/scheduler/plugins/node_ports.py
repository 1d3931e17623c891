"""Keeps two pods from one host port."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from pybernetes.api.core.v1 import Pod

from ..framework import (
    SKIP,
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
    Refusals,
    Resource,
    RowArray,
    Rows,
    Scope,
    Status,
)
from ..snapshot.nodeinfo import Port, host_ports

_REFUSAL = Status(UNSCHEDULABLE, "node(s) didn't have free ports for the requested pod ports")
_ANY = "0.0.0.0"


class NodePorts(PreFilterPlugin, FilterPlugin):
    """`hostPort`"""

    name = "NodePorts"
    scope = Scope.ROW

    def sign(self, pod: PodInfo) -> Hashable:
        return tuple(host_ports(pod))

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        wanted = host_ports(pod)
        if not wanted:
            return SKIP
        state[self.name] = tuple(wanted)
        return None

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        snapshot = self.handle.snapshot
        wanted = state[self.name]
        taken = np.zeros(snapshot.size, dtype=np.bool_)
        if isinstance(rows, slice) or len(rows) > len(snapshot.rows_with_ports):
            asked: Iterable[int] = snapshot.rows_with_ports
        else:
            asked = (row for row in rows.tolist() if row in snapshot.rows_with_ports)
        for row in asked:
            taken[row] = conflicts(wanted, snapshot.info(row).ports)
        return ~taken[rows]

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        return ((_REFUSAL, rows),)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(ClusterEvent(Resource.POD, Action.DELETE), _after_pod_deleted),
            EventWithHint(ClusterEvent(Resource.NODE, Action.ADD)),
        )


def conflicts(wanted: Iterable[Port], used: Iterable[Port]) -> bool:
    """Whether one of the wanted ports is taken; the address 0.0.0.0 overlaps with every other."""
    taken = used if isinstance(used, (dict, set)) else set(used)
    for address, protocol, port in wanted:
        if address == _ANY:
            if any(each[1] == protocol and each[2] == port for each in taken):
                return True
        elif (address, protocol, port) in taken or (_ANY, protocol, port) in taken:
            return True
    return False


def _after_pod_deleted(pod: Pod, old: Any, new: Any) -> Hint:
    if not old.spec.node_name and not (old.status and old.status.nominated_node_name):
        return Hint.SKIP
    freed = host_ports(PodInfo(old))
    return Hint.QUEUE if freed and conflicts(host_ports(PodInfo(pod)), freed) else Hint.SKIP
