"""Reports who expands a volume: an external resizer, since this controller expands none.

Woken by: bound claims that ask for more, or have got more. Writes: events, and for volumes of a plugin for which a CSI
driver stands in the annotation that names the driver's resizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.core.volumebinding import wanted_size
from pybernetes.api.quantity import Quantity, parse
from pybernetes.client.events import NORMAL
from pybernetes.client.keys import Key, uid_of

from ..base import Controller
from ..common.meta import annotations_of
from .changes import PRE_RESIZE_CAPACITY
from .migration import CSI_DRIVERS, migrated_plugin

RESIZER: Final = "volume.kubernetes.io/storage-resizer"
NOT_YET: Final = 5.0
"""Seconds until a claim is looked at again whose volume does not know of it yet."""


@dataclass(frozen=True)
class Expansion:
    """The component that expands a volume, as far as known, and the event for its user."""

    message: str
    resizer: str = ""


def decide(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Expansion | None:
    """The expansion that a claim needs; None if it is as large as requested."""
    if wanted_size(claim) <= actual_size(claim) and PRE_RESIZE_CAPACITY not in annotations_of(volume):
        return None
    plugin = migrated_plugin(volume)
    if plugin is None:
        return Expansion("waiting for an external controller to expand this PVC")
    text = f"CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"
    return Expansion(text, CSI_DRIVERS[plugin])


def actual_size(claim: PersistentVolumeClaim) -> Quantity:
    """How much the claim has."""
    amount = ((claim.status.capacity if claim.status else None) or {}).get("storage")
    return Quantity(0) if amount is None else parse(str(amount))


class PersistentVolumeExpanderController(Controller[PersistentVolumeClaim]):
    """Follows claims that grow."""

    name = "persistentvolume-expander-controller"
    kind = PersistentVolumeClaim
    workers = 10  # upstream's

    def setup(self) -> None:
        """Volumes are looked up, not followed."""
        self.recorder = self.context.events.recorder("volume_expand")
        self.volumes = self.informer(PersistentVolume)

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "volume_expand"

    def concerns(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:
        """Bound claims that ask for more than before, or have more."""
        if new is None or new.status is None or new.status.phase != "Bound":
            return False
        return old is None or wanted_size(new) > wanted_size(old) or actual_size(new) > actual_size(old)

    async def reconcile(self, key: Key) -> float | None:
        """Say who is to expand the volume."""
        claim = self.own.get(key)
        if claim is None or claim.spec is None:
            return None
        volume = self.volumes.named(claim.spec.volume_name or "")
        reference = volume.spec.claim_ref if volume is not None and volume.spec is not None else None
        if volume is None or reference is None or reference.uid != uid_of(claim):
            return NOT_YET
        expansion = decide(claim, volume)
        if expansion is None:
            return None
        self.recorder.event(claim, NORMAL, "ExternalExpanding", expansion.message)
        if expansion.resizer and annotations_of(claim).get(RESIZER) != expansion.resizer:
            patch = {"metadata": {"annotations": {RESIZER: expansion.resizer}}}
            await self.client.patch(PersistentVolumeClaim, key.name, patch, key.namespace, subresource="status")
        return None
