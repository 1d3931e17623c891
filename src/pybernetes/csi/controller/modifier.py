"""Gives volumes the parameters of another VolumeAttributesClass: the second half of upstream's external-resizer.

Woken by: bound claims whose `spec.volumeAttributesClassName` is not the one their volume has, and classes that appear.
Writes: the claim's `status.modifyVolumeStatus` and conditions before and after ControllerModifyVolume, the class of the
PersistentVolume, then `status.currentVolumeAttributesClassName`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.storage.v1 import VolumeAttributesClass
from pybernetes.api.times import rfc3339
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.keys import Key, key_of, uid_of
from pybernetes.csi import v1

from ..errors import CSIError
from .loop import Context, Loop

INFEASIBLE: Final = frozenset(("InvalidArgument", "OutOfRange", "NotFound"))
INFEASIBLE_RETRY: Final = 300.0
"""Seconds until parameters that the driver refuses for good are tried again; upstream's is as long."""
MODIFYING: Final = "ModifyingVolume"
FAILED: Final = "ModifyVolumeError"


class _Pending(Exception):
    """The modification cannot begin, and why."""


class Modifier:
    """VolumeAttributesClasses of the volumes of one driver."""

    def __init__(self, context: Context, ours: Callable[[PersistentVolume], bool] | None = None) -> None:
        """`ours(volume)` says whether a volume is this process's; without it all of the driver are."""
        self._context, self._ours = context, ours
        self._recorder = context.events.recorder(f"external-resizer {context.name}")
        self.claims = context.informers.informer(PersistentVolumeClaim)
        self.volumes = context.informers.informer(PersistentVolume)
        self.classes = context.informers.informer(VolumeAttributesClass)
        self._loop = Loop("modifier", context.clock, self.modify)
        self._can = False
        self.claims.add_handler(self._claim_seen, self._claim_updated)
        self.classes.add_handler(self._class_seen, lambda _, new: self._class_seen(new))

    async def run(self) -> None:
        """Work until cancelled."""
        self._can = v1.ControllerRPC.MODIFY_VOLUME in await self._context.driver.controller_capabilities()
        await self._loop.run(self.claims, self.volumes, self.classes)

    def _claim_seen(self, claim: PersistentVolumeClaim) -> None:
        if target(claim) is not None:
            self._loop.queue.add(key_of(claim))

    def _claim_updated(self, old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> None:
        """Ignore updates that this controller wrote while it works on the claim."""
        if _state(old) != _state(new):
            self._claim_seen(new)

    def _class_seen(self, found: VolumeAttributesClass) -> None:
        for claim in self.claims.items():
            if claim.spec is not None and claim.spec.volume_attributes_class_name == key_of(found).name:
                self._claim_seen(claim)

    async def modify(self, key: Key) -> float | None:
        """Bring a claim's volume to the class that the claim names."""
        claim = self.claims.get(key)
        wanted = target(claim) if claim is not None else None
        if claim is None or wanted is None or claim.spec is None:
            return None
        volume = self.volumes.named(claim.spec.volume_name or "")
        spec = volume.spec if volume is not None else None
        if volume is None or spec is None or spec.csi is None or spec.csi.driver != self._context.name:
            return None
        if spec.claim_ref is None or spec.claim_ref.uid != uid_of(claim):
            return None
        if self._ours is not None and not self._ours(volume):
            return None
        if not wanted:  # a modification that was refused is taken back
            await self._status(key, {"modifyVolumeStatus": None, "conditions": _gone(MODIFYING, FAILED)})
            return None
        try:
            parameters = self._parameters(wanted)
        except _Pending as error:
            self._recorder.event(claim, WARNING, "VolumeModifyFailed", str(error))
            await self._status(key, {"modifyVolumeStatus": _status(wanted, "Pending")})
            return None  # woken by the class or the claim
        return await self._modify(key, claim, volume, wanted, parameters)

    def _parameters(self, wanted: str) -> dict[str, str]:
        found, driver = self.classes.named(wanted), self._context.name
        if found is None:
            raise _Pending(f"VolumeAttributesClass {quote(wanted)} does not exist")
        if found.driver_name != driver:
            raise _Pending(f"VolumeAttributesClass {quote(wanted)} is of driver {found.driver_name}, not {driver}")
        if not self._can:
            raise _Pending(f"VolumeAttributesClass {quote(wanted)}: driver {driver} cannot modify volumes")
        return dict(found.parameters or {})

    async def _modify(
        self, key: Key, claim: PersistentVolumeClaim, volume: PersistentVolume, wanted: str, parameters: dict[str, str]
    ) -> float | None:
        name, csi = key_of(volume).name, volume.spec.csi if volume.spec else None
        assert csi is not None
        message = f"external resizer is modifying volume {name} with vac {wanted}"
        self._recorder.event(claim, NORMAL, "VolumeModify", message)
        await self._status(
            key,
            {
                "modifyVolumeStatus": _status(wanted, "InProgress"),
                "conditions": [self._condition(MODIFYING, ""), *_gone(FAILED)],
            },
        )
        try:
            await self._context.driver.call(
                "ControllerModifyVolume",
                volume_id=csi.volume_handle,
                secrets=await self._context.secret(csi.controller_expand_secret_ref),
                mutable_parameters=parameters,
            )
        except (CSIError, errors.APIError) as error:
            problem = f"failed to modify volume {name} with vac {wanted}: {error}"
            self._recorder.event(claim, WARNING, "VolumeModifyFailed", problem)
            infeasible = isinstance(error, CSIError) and error.code in INFEASIBLE
            changed: dict[str, Any] = {"conditions": [self._condition(FAILED, str(error)), *_gone(MODIFYING)]}
            if infeasible:
                changed["modifyVolumeStatus"] = _status(wanted, "Infeasible")
            await self._status(key, changed)
            if infeasible:
                return INFEASIBLE_RETRY
            raise
        await self._context.client.patch(PersistentVolume, name, {"spec": {"volumeAttributesClassName": wanted}})
        await self._status(
            key,
            {
                "currentVolumeAttributesClassName": wanted,
                "modifyVolumeStatus": None,
                "conditions": _gone(MODIFYING, FAILED),
            },
        )
        message = f"external resizer modified volume {name} with vac {wanted} successfully"
        self._recorder.event(claim, NORMAL, "VolumeModifySuccessful", message)
        return None

    def _condition(self, type: str, message: str) -> dict[str, str]:
        condition = {"type": type, "status": "True", "lastTransitionTime": rfc3339(self._context.clock.now())}
        return {**condition, "message": message} if message else condition

    async def _status(self, key: Key, status: dict[str, Any]) -> None:
        await self._context.client.patch(
            PersistentVolumeClaim, key.name, {"status": status}, key.namespace, type="strategic", subresource="status"
        )


def target(claim: PersistentVolumeClaim) -> str | None:
    """The class that a claim's volume is to have; None if it has it, empty if a refused one is taken back."""
    spec, status = claim.spec, claim.status
    if spec is None or status is None or status.phase != "Bound":
        return None
    wanted, current = spec.volume_attributes_class_name or "", status.current_volume_attributes_class_name or ""
    under_way = status.modify_volume_status
    if wanted:
        return wanted if wanted != current or under_way is not None else None
    return "" if under_way is not None and under_way.status in ("Infeasible", "Pending") else None


def _state(claim: PersistentVolumeClaim) -> tuple[object, ...]:
    spec, status = claim.spec, claim.status
    return (
        spec.volume_attributes_class_name if spec else None,
        (status.phase, status.current_volume_attributes_class_name) if status else None,
    )


def _status(wanted: str, status: str) -> dict[str, str]:
    return {"targetVolumeAttributesClassName": wanted, "status": status}


def _gone(*types: str) -> list[dict[str, str]]:
    return [{"$patch": "delete", "type": each} for each in types]
