"""Keeps pods with scheduling gates out of the queue until all gates are gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pybernetes.api.core.v1 import Pod

from ..framework import Action, ClusterEvent, EventWithHint, Hint, PodInfo, Resource, Status
from ..framework.plugin import PreEnqueuePlugin
from ..framework.status import UNRESOLVABLE


class SchedulingGates(PreEnqueuePlugin):
    """`spec.schedulingGates`"""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return Status(UNRESOLVABLE, f"waiting for scheduling gates: [{' '.join(each.name or '' for each in gates)}]")

    def events_to_register(self) -> Sequence[EventWithHint]:
        event = ClusterEvent(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return (EventWithHint(event, _is_it),)


def _is_it(pod: Pod, old: Any, new: Any) -> Hint:
    assert pod.metadata is not None
    return Hint.QUEUE if new.metadata.uid == pod.metadata.uid else Hint.SKIP
