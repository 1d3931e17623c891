"""All who have a say in whether the node takes a pod, in upstream's order, and what is given back when it has gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from pybernetes.api.core.v1 import Node, Pod

from ..container import apparmor
from ..container.sysctls import SysctlAdmission
from ..cpumanager.manager import CPUManager
from ..devices.manager import DeviceManager
from ..eviction.manager import EvictionManager
from ..pod import admission
from ..pod.critical import is_critical
from ..pod.evictor import Evicting
from ..pod.intake import PodIntake
from ..pod.preemption import victims
from ..pod.refusal import PodRefused
from ..resources.allocation import AllocationManager
from ..runtime.types import full_name
from .shutdown import ShutdownManager

log = logging.getLogger(__name__)


@dataclass(slots=True)
class NodeAdmission:
    """Runs the admission checks of a pod; a check that rejects it raises `PodRefused`. Checks that are functions are
    set late."""

    node: Callable[[], Node]
    sysctls: SysctlAdmission
    cpus: CPUManager
    devices: DeviceManager
    evicting: Evicting
    intake: Callable[[], PodIntake]
    allocation: Callable[[], AllocationManager]
    shutdown: Callable[[], ShutdownManager]
    eviction: Callable[[], EvictionManager | None]
    known: Callable[[], set[str]]
    """The uids of pods that may keep devices and CPUs."""
    apparmor: bool
    preempted: Callable[[str], None] = lambda resource: None
    """Called with each pod that is ended for a critical one, and the resource that was short."""

    def admit(self, pod: Pod, others: list[Pod]) -> None:
        """A new pod, beside those that are there."""
        eviction = self.eviction()
        if eviction is not None:
            eviction.admit(pod)
        self.sysctls.admit(pod)
        apparmor.admit(pod, enabled=self.apparmor)
        self.shutdown().admit(pod)
        admission.admit(pod, others, self.node())
        self.cpus.remove_orphans(self.known())
        self.cpus.admit(pod)

    def fits(self, pod: Pod, others: list[Pod]) -> None:
        """A pod that wants other resources than before."""
        admission.fits(pod, others, self.node())

    async def admit_devices(self, pod: Pod) -> None:
        """Admit the pod's devices: the one check that calls plugins."""
        # Those whose turn has not come count too: after a restart they have their devices already.
        await self.devices.admit(pod, self.known())

    async def make_room(self, pod: Pod, refusal: PodRefused) -> bool:
        """End lesser pods for a critical one that does not fit; whether there is room now."""
        if not is_critical(pod) or not refusal.reason.startswith(admission.OUT_OF):
            return False
        allocated = self.allocation().allocated
        others = [allocated(each) for each in self.intake().active()]
        doomed = victims(allocated(pod), others, self.node())
        if not doomed:
            return False
        for _ in doomed:
            self.preempted(refusal.reason.removeprefix(admission.OUT_OF))
        ends = await asyncio.gather(*(self.evicting.preempt(each) for each in doomed), return_exceptions=True)
        for victim, end in zip(doomed, ends, strict=True):
            if isinstance(end, Exception):
                log.error("preemption: pod %s failed to evict: %s", full_name(victim), end)
            elif isinstance(end, BaseException):
                raise end
        return True

    def released(self, uid: str) -> None:
        """A pod needs nothing of the node any more."""
        self.cpus.remove(uid)
        self.devices.remove(uid)
        self.allocation().terminated(uid)
        self.intake().retry_resizes()
