"""Graceful node shutdown: pods end in the order of their priority before the machine does.

Who says that the machine goes down is systemd-logind (`logind/watch.py`). Where there is none (containers, nodes made
of namespaces) the signal for a failing power supply, SIGPWR, has the same meaning: the process that stops the machine
sends it to the kubelet, and waits until the file `graceful_node_shutdown_state` has an `endTime`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pybernetes.api.core.v1 import Pod, PodCondition
from pybernetes.api.times import parse_time, rfc3339
from pybernetes.client.clock import Clock
from pybernetes.component import state_files

from ..pod.critical import SYSTEM_CRITICAL_PRIORITY
from ..pod.refusal import PodRefused

REASON: Final = "Terminated"
MESSAGE: Final = "Pod was terminated in response to imminent node shutdown."
NOT_ADMITTED: Final = "Pod was rejected as the node is shutting down."
STATE_FILE: Final = "graceful_node_shutdown_state"

log = logging.getLogger(__name__)

Kill = Callable[[Pod, float, str, str, PodCondition], Awaitable[None]]
"""`await kill(pod, grace seconds, reason, message, condition)`: Failed (unless Succeeded) with these; returns when its
containers have ended."""


@dataclass(slots=True)
class Group:
    """Pods that end together, of this priority up to that of the next group."""

    priority: int
    seconds: int
    pods: list[Pod] = field(default_factory=list)


def periods(grace: float, grace_critical: float, by_priority: Sequence[tuple[int, int]] = ()) -> list[tuple[int, int]]:
    """(priority, seconds) from low to high, from either form of the configuration; empty = no graceful shutdown."""
    if by_priority:
        return sorted(by_priority)
    if not grace or grace < grace_critical:
        return []
    return [(0, int(grace - grace_critical)), (SYSTEM_CRITICAL_PRIORITY, int(grace_critical))]


def group_by_priority(periods: Sequence[tuple[int, int]], pods: Iterable[Pod]) -> list[Group]:
    """Each pod in the last group whose priority it reaches; pods below all groups are in the first."""
    groups = [Group(priority, seconds) for priority, seconds in periods]
    for pod in pods:
        priority = (pod.spec.priority or 0) if pod.spec else 0
        index = sum(each.priority <= priority for each in groups)
        groups[max(0, index - 1)].pods.append(pod)
    return groups


class ShutdownManager:
    """Ends pods when the machine is about to go down."""

    def __init__(
        self,
        root: Path,
        *,
        periods: Sequence[tuple[int, int]],
        active_pods: Callable[[], list[Pod]],
        kill: Kill,
        clock: Clock,
        changed: Callable[[], None] = lambda: None,
        event: Callable[[str, str, str], None] = lambda *_: None,
    ) -> None:
        """`periods` from `shutdown.periods`; `changed`: the node's Ready condition is another; `event(type, reason,
        message)` is about the node."""
        self._root, self._periods, self._active_pods, self._kill = root, list(periods), active_pods, kill
        self._clock, self._changed, self._event = clock, changed, event
        self._shutting_down = False
        self._ending: set[asyncio.Task[None]] = set()
        self.last = state_files.read(root / STATE_FILE, _decode) or (0.0, 0.0)
        """When the last shutdown began and ended, 0 if not; also one before the kubelet's start."""

    @property
    def enabled(self) -> bool:
        """Whether there is any grace period."""
        return bool(self._periods)

    @property
    def total(self) -> int:
        """Seconds that a shutdown takes at most."""
        return sum(seconds for _, seconds in self._periods)

    def message(self) -> str:
        """For the node's Ready condition: why it is not, while shutting down; else empty."""
        return "node is shutting down" if self._shutting_down else ""

    def admit(self, pod: Pod) -> None:
        """`PodRefused` (NodeShutdown) while shutting down."""
        if self._shutting_down:
            raise PodRefused("NodeShutdown", NOT_ADMITTED)

    def begin(self) -> None:
        """`shut_down` beside everything else, for who cannot wait: a signal's handler."""
        self._ending.add(asyncio.create_task(self.shut_down()))

    async def shut_down(self) -> None:
        """The machine goes down: end all pods; returns when they have ended or their time is over."""
        if self._shutting_down or not self.enabled:
            return
        self._shutting_down = True
        log.info("shutdown manager detected shutdown event")
        self._event("Normal", "NodeShutdown", "Shutdown manager detected shutdown event")
        self._changed()
        started = self._clock.now()
        self._store(started, None)
        for group in group_by_priority(self._periods, self._active_pods()):
            if group.pods:
                await self._end(group)
        self._store(started, self._clock.now())
        log.info("shutdown manager completed processing shutdown event, node will shutdown shortly")

    def cancel(self) -> None:
        """The machine stays after all."""
        if self._shutting_down:
            self._shutting_down = False
            self._event("Normal", "NodeShutdown", "Shutdown manager detected shutdown cancellation")
            self._changed()

    async def _end(self, group: Group) -> None:
        timer = asyncio.create_task(self._clock.sleep(group.seconds))
        pending = {asyncio.create_task(self._end_pod(pod, group.seconds)) for pod in group.pods}
        # Pods that take longer than their group has go on ending beside the next one.
        self._ending |= pending
        while pending and not timer.done():
            _, left = await asyncio.wait({*pending, timer}, return_when=asyncio.FIRST_COMPLETED)
            pending &= left
        timer.cancel()

    async def _end_pod(self, pod: Pod, seconds: int) -> None:
        own = pod.spec.termination_grace_period_seconds if pod.spec else None
        grace = min(seconds, own) if own is not None else seconds
        condition = PodCondition(type="DisruptionTarget", status="True", reason="TerminationByKubelet", message=MESSAGE)
        try:
            await self._kill(pod, grace, REASON, MESSAGE, condition)
        except Exception as error:
            log.info("shutdown manager failed killing pod %s: %s", pod.metadata and pod.metadata.name, error)

    def _store(self, started: float, ended: float | None) -> None:
        """When the last shutdown was, for metrics after the next start."""
        zero = "0001-01-01T00:00:00Z"
        self.last = (started, ended or 0.0)
        state = {"startTime": rfc3339(started), "endTime": rfc3339(ended) if ended is not None else zero}
        try:
            state_files.write(self._root / STATE_FILE, json.dumps(state).encode())
        except OSError as error:  # pods end all the same
            log.error("the state of the shutdown cannot be written to %s: %s", self._root / STATE_FILE, error)


def _decode(content: bytes) -> tuple[float, float]:
    state = json.loads(content)
    return max(0.0, parse_time(state["startTime"])), max(0.0, parse_time(state["endTime"]))
