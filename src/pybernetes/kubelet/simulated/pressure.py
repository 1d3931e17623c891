"""Nodes that are short of something: because rules say so, or because their pods use more memory than there is.

The kubelet's own eviction manager decides, fed with what containers pretend to use. It looks at a node every ten
seconds from the moment on in which the node could be short of something at all; most nodes never can, as pods that say
nothing use what they request, and cost nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pybernetes.api.core.v1 import Pod, PodCondition
from pybernetes.client.clock import Clock

from ..eviction.manager import INTERVAL, EvictionManager
from ..eviction.thresholds import DEFAULT_HARD, MEMORY, NODEFS, PID, Level, parse_thresholds
from ..eviction.usage import ContainerUsage, PodUsage
from .pod import SimulatedPod
from .settings import PRESSURES, NodeBehaviour
from .stats import SYSTEM, pod_sample

_SIGNALS: Final = dict(zip(PRESSURES, (MEMORY, NODEFS, PID), strict=True))
_HARD: Final = {MEMORY: DEFAULT_HARD[MEMORY], NODEFS: DEFAULT_HARD[NODEFS], PID: "10%"}
_PLENTY: Final = Level(1 << 40, 1 << 40)
log = logging.getLogger(__name__)

PodsOn = Callable[[str], list[tuple[Pod, SimulatedPod]]]
Evict = Callable[[Pod, str, PodCondition | None, Mapping[str, str]], None]
"""`evict(pod, message, condition, annotations of the event)`"""


class Pressures:
    """Watches over nodes with resource pressure. Calls `changed(node, conditions)` with their pressure conditions."""

    def __init__(
        self,
        clock: Clock,
        memory: int,
        behaviour: Callable[[str], NodeBehaviour],
        pods_on: PodsOn,
        evict: Evict,
        changed: Callable[[str, list[str]], None],
    ) -> None:
        """`memory` is what each node has."""
        self._clock = clock
        self._memory = memory
        self._behaviour = behaviour
        self._pods_on = pods_on
        self._evict = evict
        self._changed = changed
        self._watched: dict[str, tuple[asyncio.Event, asyncio.Task[None]]] = {}

    def watch(self, node: str) -> None:
        """Look at a node now, and from now on."""
        found = self._watched.get(node)
        if found is not None:
            found[0].set()
            return
        due = asyncio.Event()
        self._watched[node] = due, asyncio.create_task(self._run(node, due), name=f"pressure of {node}")

    async def stop(self) -> None:
        """Look no more."""
        tasks = [task for _, task in self._watched.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, node: str, due: asyncio.Event) -> None:
        manager = EvictionManager(
            parse_thresholds(_HARD, enforce_allocatable=False),
            source=_Source(self, node),
            active_pods=lambda: [pod for pod, simulated in self._pods_on(node) if simulated.running],
            evict=self._evict_one,
            clock=self._clock,
            pressure_transition_period=0.0,
        )
        told: list[str] = []
        while True:
            due.clear()
            if not self._behaviour(node).silent:
                await manager.synchronize()
                conditions = [each for each in PRESSURES if manager.under_pressure(each)]
                if conditions != told:
                    told = conditions
                    self._changed(node, sorted(conditions))
            timer = self._clock.call_later(INTERVAL, due.set)
            await due.wait()
            timer.cancel()

    async def _evict_one(
        self, pod: Pod, grace: float, message: str, condition: PodCondition | None, annotations: Mapping[str, str]
    ) -> None:
        self._evict(pod, message, condition, annotations)

    def levels(self, node: str) -> Mapping[str, Level]:
        """The available resources of a node."""
        found = {NODEFS: _PLENTY, PID: _PLENTY}
        used = SYSTEM.working_set + sum(each.memory for each in self.usages(node).values())
        found[MEMORY] = Level(max(0, self._memory - used), self._memory)
        for condition in self._behaviour(node).pressure:
            found[_SIGNALS[condition]] = Level(0, found[_SIGNALS[condition]].capacity)
        return found

    def usages(self, node: str) -> dict[str, PodUsage]:
        """The usage of a node's pods, by uid."""
        found = {}
        now = self._clock.now()
        for pod, simulated in self._pods_on(node):
            sample = pod_sample(pod, simulated, now)
            if sample is not None and sample.sample is not None:
                containers = {
                    each.container.name: ContainerUsage(each.sample.usage.working_set) for each in sample.containers
                }
                found[simulated.observed.uid] = PodUsage(sample.sample.usage.working_set, len(containers), containers)
        return found


class _Source:
    """Figures of one node (`eviction.usage.Source`)."""

    dedicated_imagefs = False

    def __init__(self, pressures: Pressures, node: str) -> None:
        self._pressures = pressures
        self._node = node

    async def node(self) -> Mapping[str, Level]:
        """The level of each signal."""
        return self._pressures.levels(self._node)

    async def pods(self, pods: Sequence[Pod], *, disk: bool) -> Mapping[str, PodUsage]:
        """The usage of pods, by uid; disk usage is zero."""
        return self._pressures.usages(self._node)
