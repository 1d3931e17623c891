"""Reports sick volumes as events of their claims: upstream's external-health-monitor, for one driver.

Woken by the clock. Reads: the conditions of volumes, by ListVolumes or else by ControllerGetVolume one by one. Writes:
events only, `VolumeConditionAbnormal` as long as a volume is sick and `VolumeConditionNormal` once when it recovers.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.keys import uid_of
from pybernetes.csi import v1

from ..errors import CSIError
from .loop import Context

INTERVAL: Final = 60.0
"""Seconds between two looks at all volumes."""
AT_ONCE: Final = 10
"""Calls of ControllerGetVolume at the same time."""
PAGE: Final = 500
log = logging.getLogger(__name__)


class HealthMonitor:
    """Health of the volumes of one driver."""

    def __init__(self, context: Context, interval: float = INTERVAL) -> None:
        self._context, self._interval = context, interval
        self._recorder = context.events.recorder(f"csi-pv-monitor-controller-{context.name}")
        self.claims = context.informers.informer(PersistentVolumeClaim)
        self.volumes = context.informers.informer(PersistentVolume)
        self._sick: set[str] = set()
        """Handles of volumes that were sick at the last look."""

    async def run(self) -> None:
        """Work until cancelled. Raises ValueError for a driver that does not know the condition of its volumes."""
        has = await self._context.driver.controller_capabilities()
        kinds = v1.ControllerRPC
        if kinds.VOLUME_CONDITION not in has or not has & {kinds.LIST_VOLUMES, kinds.GET_VOLUME}:
            raise ValueError(
                f"driver {self._context.name} does not know the condition of its volumes "
                "(no VOLUME_CONDITION with LIST_VOLUMES or GET_VOLUME)"
            )
        await self.claims.wait_synced()
        await self.volumes.wait_synced()
        while True:
            try:
                await self.look(listed=kinds.LIST_VOLUMES in has)
            except CSIError as error:
                log.warning("the condition of volumes is not known: %s", error)
            await asyncio.sleep(self._interval)

    async def look(self, *, listed: bool) -> None:
        """Look at all volumes once."""
        ours = {
            each.spec.csi.volume_handle or "": each
            for each in self.volumes.items()
            if each.spec is not None and each.spec.csi is not None and each.spec.csi.driver == self._context.name
        }
        conditions = await (self._list(ours) if listed else self._get_all(ours))
        sick = set()
        for handle, condition in conditions.items():
            claim = self._claim(ours[handle])
            if claim is None:
                continue
            if condition.abnormal:
                sick.add(handle)
                self._recorder.event(claim, WARNING, "VolumeConditionAbnormal", condition.message)
            elif handle in self._sick:
                message = "The Volume returns to the healthy state"
                self._recorder.event(claim, NORMAL, "VolumeConditionNormal", message)
        self._sick = sick | (self._sick & (ours.keys() - conditions.keys()))

    async def _list(self, ours: dict[str, PersistentVolume]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        token, seen = "", set[str]()
        while True:
            response = await self._context.driver.call("ListVolumes", max_entries=PAGE, starting_token=token)
            for each in response.entries:
                if each.volume.volume_id in ours and each.status.HasField("volume_condition"):
                    found[each.volume.volume_id] = each.status.volume_condition
            token = response.next_token
            if not token:
                return found
            if token in seen:
                raise CSIError("Internal", f"ListVolumes: the driver gives the token {token!r} twice")
            seen.add(token)

    async def _get_all(self, ours: dict[str, PersistentVolume]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        slots = asyncio.Semaphore(AT_ONCE)

        async def get(handle: str) -> None:
            async with slots:
                try:
                    response = await self._context.driver.call("ControllerGetVolume", volume_id=handle)
                except CSIError as error:
                    if error.code != "NotFound":
                        log.warning("the condition of volume %s is not known: %s", handle, error)
                        return
                    found[handle] = v1.VolumeCondition(abnormal=True, message=f"the volume is gone: {error.message}")
                    return
            if response.status.HasField("volume_condition"):
                found[handle] = response.status.volume_condition

        await asyncio.gather(*(get(each) for each in ours))
        return found

    def _claim(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        reference = volume.spec.claim_ref if volume.spec else None
        if reference is None:
            return None
        claim = self.claims.named(reference.name or "", reference.namespace or "")
        return claim if claim is not None and uid_of(claim) == reference.uid else None
