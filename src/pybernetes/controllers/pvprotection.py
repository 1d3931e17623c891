"""Keeps PersistentVolumes that are bound to a claim from being deleted.

Woken by: volumes. Writes: their finalizer `kubernetes.io/pv-protection`.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import PersistentVolume
from pybernetes.client.keys import Key

from .base import Controller
from .common.protection import add_finalizer, is_deletion_candidate, needs_finalizer, remove_finalizer

FINALIZER: Final = "kubernetes.io/pv-protection"


class PersistentVolumeProtectionController(Controller[PersistentVolume]):
    """Protects volumes."""

    name = "persistentvolume-protection-controller"
    kind = PersistentVolume

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "pvprotection"

    def concerns(self, old: PersistentVolume | None, new: PersistentVolume | None) -> bool:
        """Those to protect, or to let go."""
        return new is not None and (needs_finalizer(new, FINALIZER) or is_deletion_candidate(new, FINALIZER))

    async def reconcile(self, key: Key) -> float | None:
        """Put the finalizer on, or take it off."""
        volume = self.own.get(key)
        if volume is None:
            return None
        if is_deletion_candidate(volume, FINALIZER):
            if volume.status is None or volume.status.phase != "Bound":
                await remove_finalizer(self.client, volume, FINALIZER)
        elif needs_finalizer(volume, FINALIZER):
            await add_finalizer(self.client, volume, FINALIZER)
        return None
