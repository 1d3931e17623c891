"""Pods that ask for other resources while they run: given at once if the node has them, else they wait for room."""

from __future__ import annotations

from collections.abc import Callable

from pybernetes.api.core.v1 import ContainerStatus, Pod, PodCondition, PodStatus, ResourceRequirements
from pybernetes.client.clock import Clock
from pybernetes.client.keys import uid_of

from ..pod.refusal import PodRefused
from ..resources import summary
from ..resources.amounts import with_resources
from ..resources.conditions import PENDING, ResizeConditions
from ..resources.plan import plan_resize
from ..resources.state import PodResources, resources_of
from ..runtime.types import ObservedPod

Tell = Callable[[Pod, str, str, str], None]
"""`tell(pod, type, reason, message)`: an event."""


class Resizing:
    """The allocated resources of pods, where they differ from their specs."""

    def __init__(self, clock: Clock, tell: Tell) -> None:
        self._conditions = ResizeConditions(clock)
        self._kept: dict[str, PodResources] = {}
        self._tell = tell

    def allocated(self, pod: Pod) -> Pod:
        """The pod with what it has been allocated in its spec."""
        kept = self._kept.get(uid_of(pod))
        return pod if kept is None else with_resources(pod, kept.containers, kept.pod)

    def waits(self, uid: str) -> bool:
        """Whether a pod has not got what it asks for."""
        return uid in self._kept

    def conditions(self, uid: str) -> list[PodCondition]:
        """The resize conditions for the pod's status."""
        return self._conditions.list(uid)

    def take_up(self, pod: Pod) -> None:
        """A pod of an earlier life of this process: if it waited, it has what its status says."""
        status = pod.status or PodStatus()
        if not any(each.type == PENDING for each in status.conditions or ()):
            return
        self._conditions.backfill(pod)
        statuses = [*(status.container_statuses or ()), *(status.init_container_statuses or ())]
        found = {each.name or "": _resources(each) for each in statuses}
        self._kept[uid_of(pod)] = PodResources(found, pod.spec.resources if pod.spec else None)

    def wanted(self, pod: Pod, before: Pod, observed: ObservedPod, fits: Callable[[Pod], None]) -> set[str]:
        """A pod asks for something else than before: it gets it, or waits. The containers that restart for it.

        `fits` raises `PodRefused` if the node has not what the pod asks for.
        """
        uid, generation = uid_of(pod), (pod.metadata.generation if pod.metadata else None) or 0
        had = self._kept.get(uid) or resources_of(before)
        if with_resources(pod, had.containers, had.pod) is pod:
            self._kept.pop(uid, None)
            self._conditions.clear_pending(uid)
            return set()
        try:
            fits(pod)
        except PodRefused as refused:
            self._kept[uid] = had
            if self._conditions.set_pending(uid, refused.reason, refused.message, generation):
                reason = self._conditions.pending_reason(uid)
                self._tell(
                    pod, "Warning", f"Resize{reason}", summary.pending(pod, refused.reason, refused.message, generation)
                )
            return set()
        self._kept.pop(uid, None)
        self._conditions.clear_pending(uid)
        self._tell(pod, "Normal", "ResizeStarted", summary.started(pod, generation))
        self._tell(pod, "Normal", "ResizeCompleted", summary.completed(pod, generation))
        return plan_resize(pod, had, observed).restarts

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._kept.pop(uid, None)
        self._conditions.remove(uid)


def _resources(status: ContainerStatus) -> ResourceRequirements:
    return status.resources or ResourceRequirements()
