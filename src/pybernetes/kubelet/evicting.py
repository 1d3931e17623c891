"""How the node ends pods for its own needs: memory, disk, a shutdown, room for a critical pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pybernetes.api.core.podconditions import update_pod_condition
from pybernetes.api.core.v1 import Pod, PodCondition, PodStatus
from pybernetes.api.times import rfc3339
from pybernetes.client.clock import Clock
from pybernetes.client.events import WARNING, EventRecorder
from pybernetes.client.keys import uid_of

from .events import PREEMPTING
from .phase import FAILED, SUCCEEDED
from .podworkers import PodWorkers
from .preemption import MESSAGE, disruption


class Evicting:
    """Ends pods: Failed, with a reason, and a condition that says whose doing it was."""

    def __init__(self, workers: Callable[[], PodWorkers], recorder: EventRecorder, clock: Clock) -> None:
        self._workers = workers
        self._recorder = recorder
        self._clock = clock

    async def evict(
        self, pod: Pod, grace: float, message: str, condition: PodCondition | None, annotations: Mapping[str, str]
    ) -> None:
        """For `EvictionManager`; returns when the pod's containers have ended."""
        self._recorder.event(pod, WARNING, "Evicted", message, dict(annotations))
        await self.end(pod, grace, "Evicted", message, condition)

    async def shut_down(self, pod: Pod, grace: float, reason: str, message: str, condition: PodCondition) -> None:
        """For `ShutdownManager`; returns when the pod's containers have ended."""
        await self.end(pod, grace, reason, message, condition)

    async def preempt(self, pod: Pod) -> None:
        """End a pod for one that the node cannot do without; returns when its containers have ended."""
        self._recorder.event(pod, WARNING, PREEMPTING, MESSAGE)
        await self.end(pod, 0.0, PREEMPTING, MESSAGE, disruption())

    async def end(self, pod: Pod, grace: float, reason: str, message: str, condition: PodCondition | None) -> None:
        """End a pod. It has failed, however politely its containers exit, unless it had succeeded before."""
        succeeded: bool | None = None

        def change(status: PodStatus) -> None:
            nonlocal succeeded
            if succeeded is None:
                succeeded = status.phase == SUCCEEDED
            if not succeeded:
                status.phase, status.reason, status.message = FAILED, reason, message
            if condition is not None:
                update_pod_condition(status, condition, rfc3339(self._clock.now()))

        await self._workers().kill(uid_of(pod), grace=int(grace), status_change=change)
