"""Watches the node's resources, says when they are short, and evicts pods one at a time until they are not.

One turn (`synchronize`) in order: which thresholds are crossed, and since when; the node's conditions, which stay for a
while after the last crossing so that they do not flap; pods over their own disk limits; then, for the most urgent
threshold whose grace period is over: dead containers and unused images go first, and if that is not enough one pod.
A turn in which nothing is short costs a look at the machine's counters: pods are measured only when it matters.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from pybernetes.api.core.podresources import qos_class
from pybernetes.api.core.tolerations import tolerates
from pybernetes.api.core.v1 import Pod, PodCondition, PodSpec, Taint
from pybernetes.client.clock import Clock
from pybernetes.client.keys import uid_of

from ..pod.critical import is_critical
from ..pod.refusal import PodRefused
from .limits import exceeded, has_limits
from .ranking import eviction_message, rank
from .thresholds import (
    EPHEMERAL_STORAGE,
    INODES,
    Level,
    Threshold,
    conditions,
    met,
    with_containerfs,
)
from .usage import PodUsage, Source

REASON: Final = "Evicted"
INTERVAL: Final = 10.0
CLEANUP_TIMEOUT: Final = 30.0
CLEANUP_INTERVAL: Final = 1.0
HARD_GRACE: Final = 1.0
"""Seconds that a pod gets when the node cannot wait."""

Evict = Callable[[Pod, float, str, PodCondition | None, Mapping[str, str]], Awaitable[None]]
"""`await evict(pod, grace seconds, message, condition, annotations of the event)`: event Evicted, status Failed with
reason Evicted and the message, then killed; returns when its containers have ended."""
Reclaim = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)


def admit(pod: Pod, conditions: Sequence[str]) -> None:
    """`PodRefused` (Evicted) for a pod that would make these conditions of the node worse. Pure."""
    if not conditions or is_critical(pod):
        return
    if list(conditions) == ["MemoryPressure"]:
        spec = pod.spec or PodSpec()
        taint = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")
        if qos_class(spec) != "BestEffort" or any(tolerates(each, taint) for each in spec.tolerations or ()):
            return
    raise PodRefused(REASON, f"The node had condition: [{' '.join(conditions)}]. ")


class EvictionManager:
    """Evicts pods and knows the node's pressure conditions."""

    def __init__(
        self,
        thresholds: Sequence[Threshold],
        *,
        source: Source,
        active_pods: Callable[[], list[Pod]],
        evict: Evict,
        clock: Clock,
        pressure_transition_period: float = 300.0,
        max_pod_grace: int = 0,
        reclaim_containers: Reclaim | None = None,
        reclaim_images: Reclaim | None = None,
        cleaned_up: Callable[[Pod], bool] = lambda _: True,
        event: Callable[[str, str, str], None] = lambda *_: None,
        changed: Callable[[], None] = lambda: None,
        evicted: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`thresholds` from `thresholds.parse_thresholds`; `active_pods` are those that have not ended, in their
        allocated forms; `event(type, reason, message)` is about the node; `changed`: a condition is another;
        `evicted`: a pod was evicted because of this signal."""
        self._evicted = evicted
        self._thresholds = with_containerfs(thresholds, dedicated_imagefs=source.dedicated_imagefs)
        self._source, self._active_pods, self._evict, self._clock = source, active_pods, evict, clock
        self._transition_period, self._max_pod_grace = pressure_transition_period, max_pod_grace
        self._reclaim_containers, self._reclaim_images = reclaim_containers, reclaim_images
        self._cleaned_up, self._event, self._changed = cleaned_up, event, changed
        self._conditions: list[str] = []
        self._condition_seen: dict[str, float] = {}
        self._first_seen: dict[Threshold, float] = {}
        self._met: list[Threshold] = []
        """Crossed for longer than their grace period, and what was to be won back not yet won."""
        self._measured = 0.0
        self.aged: Callable[[str, float], None] = lambda signal, age: None
        """Called for each eviction with the age of its figures."""

    def under_pressure(self, condition: str) -> bool:
        """For the node's status: `MemoryPressure`, `DiskPressure` or `PIDPressure`."""
        return condition in self._conditions

    def admit(self, pod: Pod) -> None:
        """`PodRefused` (Evicted) for pods that would make it worse."""
        admit(pod, self._conditions)

    async def run(self) -> None:
        """Every 10 s, sooner after an eviction, until cancelled."""
        while True:
            evicted: list[Pod] = []
            try:
                evicted = await self.synchronize()
            except Exception:
                log.exception("eviction manager: failed to synchronize")
            if evicted:
                await self._wait_for_cleanup(evicted)
            else:
                await self._clock.sleep(INTERVAL)

    async def synchronize(self) -> list[Pod]:
        """One turn; the pods that were evicted."""
        levels = await self._source.node()
        self._measured = self._clock.monotonic()
        crossed = met(self._thresholds, levels)
        for threshold in met(self._met, levels, with_reclaim=True):
            if threshold not in crossed:
                crossed.append(threshold)
        now = self._clock.monotonic()
        self._first_seen = {each: self._first_seen.get(each, now) for each in crossed}
        self._note_conditions(crossed, now)
        self._met = [each for each, since in self._first_seen.items() if now - since >= each.grace]
        pods = self._active_pods()
        evicted = await self._evict_over_limits(pods)
        if evicted or not self._met:
            return evicted
        # Memory before everything else; else as configured.
        threshold = min(self._met, key=lambda each: each.resource != "memory")
        log.info("eviction manager: attempting to reclaim %s", threshold.resource)
        self._event("Warning", "EvictionThresholdMet", f"Attempting to reclaim {threshold.resource}")
        if await self._reclaim_from_node(threshold):
            return []
        return await self._evict_one(pods, threshold, levels)

    def _note_conditions(self, crossed: list[Threshold], now: float) -> None:
        for condition in conditions(crossed):
            self._condition_seen[condition] = now
        present = sorted(
            each for each, seen in self._condition_seen.items() if now == seen or now - seen < self._transition_period
        )
        if present != self._conditions:
            log.info("eviction manager: node conditions are %s", present)
            self._conditions = present
            self._changed()

    async def _evict_over_limits(self, pods: list[Pod]) -> list[Pod]:
        limited = [each for each in pods if has_limits(each)]
        if not limited:
            return []
        usages = await self._source.pods(limited, disk=True)
        evicted = []
        for pod in limited:
            usage = usages.get(uid_of(pod))
            message = exceeded(pod, usage, dedicated_imagefs=self._source.dedicated_imagefs) if usage else ""
            if message and await self._evict_pod(pod, HARD_GRACE, message, None, {}):
                evicted.append(pod)
        return evicted

    async def _reclaim_from_node(self, threshold: Threshold) -> bool:
        """Whether the node has enough again without a pod being evicted."""
        if threshold.resource not in (EPHEMERAL_STORAGE, INODES):
            return False
        if threshold.signal.startswith("nodefs") and self._source.dedicated_imagefs:
            return False  # neither images nor dead containers are on this file system
        for reclaim in (self._reclaim_containers, self._reclaim_images):
            if reclaim is not None:
                try:
                    await reclaim()
                except Exception as error:
                    log.info("eviction manager: could not reclaim %s: %s", threshold.resource, error)
        return not met(self._thresholds, await self._source.node(), with_reclaim=True)

    async def _evict_one(self, pods: list[Pod], threshold: Threshold, levels: Mapping[str, Level]) -> list[Pod]:
        if not pods:
            log.error("eviction manager: eviction thresholds have been met, but no pods are active to evict")
            return []
        disk = threshold.resource in (EPHEMERAL_STORAGE, INODES)
        usages: Mapping[str, PodUsage] = await self._source.pods(pods, disk=disk)
        ordered = rank(pods, threshold.signal, usages, dedicated_imagefs=self._source.dedicated_imagefs)
        log.info(
            "eviction manager: pods ranked for eviction: %s", [each.metadata and each.metadata.name for each in ordered]
        )
        for pod in ordered:
            message, annotations = eviction_message(pod, threshold.resource, usages, self._met, levels)
            condition = PodCondition(
                type="DisruptionTarget", status="True", reason="TerminationByKubelet", message=message
            )
            if await self._evict_pod(pod, self._grace(pod, threshold), message, condition, annotations):
                self._evicted(threshold.signal)
                self.aged(threshold.signal, self._clock.monotonic() - self._measured)
                return [pod]
        log.info("eviction manager: unable to evict any pods from the node")
        return []

    def _grace(self, pod: Pod, threshold: Threshold) -> float:
        if threshold.hard:
            return HARD_GRACE
        own = pod.spec.termination_grace_period_seconds if pod.spec else None
        return self._max_pod_grace if own is None else min(self._max_pod_grace, own)

    async def _evict_pod(
        self, pod: Pod, grace: float, message: str, condition: PodCondition | None, annotations: Mapping[str, str]
    ) -> bool:
        if is_critical(pod):
            log.error("eviction manager: cannot evict a critical pod: %s", pod.metadata and pod.metadata.name)
            return False
        try:
            await self._evict(pod, grace, message, condition, annotations)
        except Exception as error:  # it is on its way out all the same
            log.error("eviction manager: pod %s failed to evict: %s", pod.metadata and pod.metadata.name, error)
        return True

    async def _wait_for_cleanup(self, pods: list[Pod]) -> None:
        until = self._clock.monotonic() + CLEANUP_TIMEOUT
        while self._clock.monotonic() < until and not all(map(self._cleaned_up, pods)):
            await self._clock.sleep(CLEANUP_INTERVAL)
        await asyncio.sleep(0)
