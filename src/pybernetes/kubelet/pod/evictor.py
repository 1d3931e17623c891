"""How the node ends pods for its own needs: memory, disk, a shutdown, room for a critical pod.

The wait for the end of a pod has a limit: its process may hang in a system call that no signal ends. After
the limit the caller goes on, and the pod's worker keeps trying.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from pybernetes.api.core.podconditions import update_pod_condition
from pybernetes.api.core.v1 import Pod, PodCondition, PodStatus
from pybernetes.api.times import rfc3339
from pybernetes.client.clock import Clock
from pybernetes.client.events import WARNING, EventRecorder
from pybernetes.client.keys import uid_of

from ..events import EXCEEDED_GRACE_PERIOD, PREEMPTING
from ..status.phase import FAILED, SUCCEEDED
from .preemption import MESSAGE, disruption
from .workers import PodWorkers

SHORTEST_WAIT: Final = 10.0
"""Seconds that a pod's end is waited for at least; else one and a half times its grace period. Upstream's."""


class KillTimedOut(Exception):
    """A pod has not ended within its grace period and half as much; it is still being ended."""


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
        """End a pod. It has failed, however politely its containers exit, unless it had succeeded before.

        Raises `KillTimedOut` if that takes too long.
        """
        succeeded: bool | None = None

        def change(status: PodStatus) -> None:
            nonlocal succeeded
            if succeeded is None:
                succeeded = status.phase == SUCCEEDED
            if not succeeded:
                status.phase, status.reason, status.message = FAILED, reason, message
            if condition is not None:
                update_pod_condition(status, condition, rfc3339(self._clock.now()))

        done = self._workers().kill(uid_of(pod), grace=int(grace), status_change=change)
        timer = self._clock.call_later(max(SHORTEST_WAIT, grace * 1.5), done.cancel)
        try:
            await done
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            message = "Container runtime did not kill the pod within specified grace period."
            self._recorder.event(pod, WARNING, EXCEEDED_GRACE_PERIOD, message)
            raise KillTimedOut("timeout waiting to kill pod") from None
        finally:
            timer.cancel()
