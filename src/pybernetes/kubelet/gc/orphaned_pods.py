"""Looks now and then for what should not be there any more. Most of it is found as it happens; this is the net."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pybernetes.client.clock import Clock
from pybernetes.client.keys import uid_of
from pybernetes.component import offload

from ..backoff import BackOff
from ..cgroups.manager import CgroupManager
from ..pod.intake import PodIntake
from ..pod.manager import PodManager
from ..pod.mirrors import Mirrors
from ..pod.workers import PodWorkers
from ..resources.actuation import ResizeActuator
from ..resources.allocation import AllocationManager
from ..runtime.pleg import PLEG
from ..volumes.manager import VolumeManager
from .containers import remove_orphaned_logs

EVERY: Final = 30.0
LOGS_WITHIN: Final = 60.0
log = logging.getLogger(__name__)


class Housekeeping:
    """`ready` says whether all sources of pods have been heard: before, nothing is known to be an orphan."""

    def __init__(
        self,
        pods: PodManager,
        workers: PodWorkers,
        intake: PodIntake,
        pleg: PLEG,
        volumes: VolumeManager,
        cgroups: CgroupManager,
        allocation: AllocationManager,
        actuator: ResizeActuator,
        mirrors: Mirrors,
        backoff: BackOff,
        clock: Clock,
        ready: Callable[[], bool],
        pod_logs: Path,
        container_logs: Path | None,
    ) -> None:
        self._pods, self._workers, self._intake, self._pleg = pods, workers, intake, pleg
        self._volumes, self._cgroups, self._allocation, self._actuator = volumes, cgroups, allocation, actuator
        self._mirrors, self._backoff, self._clock, self._ready = mirrors, backoff, clock, ready
        self._pod_logs, self._container_logs = pod_logs, container_logs
        self.cleaned = self.not_cleaned = 0
        """Pods without a source whose volumes the last look removed, and could not remove."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            if self._ready():
                try:
                    await self.look()
                except Exception:
                    log.exception("housekeeping failed")
            await self._clock.sleep(EVERY if self._ready() else 0.5)

    async def _remove_volumes(self, uid: str) -> bool:
        try:
            await self._volumes.remove(uid)
            return True
        except Exception as error:
            log.warning("volumes of pod %s, which is gone, stay for now: %s", uid, error)
            return False

    async def look(self) -> None:
        """Look once."""
        known = {uid_of(each) for each in self._pods.all()} | {each.ref.uid for each in self._workers.all()}
        alive = known | self._pleg.known().keys()
        removed = await asyncio.gather(*map(self._remove_volumes, self._volumes.orphans(alive)))
        self.cleaned, self.not_cleaned = sum(removed), len(removed) - sum(removed)
        if self._volumes.csi is not None:
            await self._volumes.csi.unstage_unused()
        await self._cgroups.remove_orphans(alive)
        self._cgroups.update_qos([self._allocation.allocated(each) for each in self._intake.active()])
        self._allocation.remove_orphans(known)
        self._actuator.remove_orphans(known)
        self._intake.retry_resizes()
        await self._mirrors.delete_orphans()
        logs = self._pod_logs, self._container_logs
        await offload.run("orphaned logs", LOGS_WITHIN, remove_orphaned_logs, *logs, alive)
        self._backoff.collect()
