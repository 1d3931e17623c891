"""Keeps VolumeAttributesClasses that claims or volumes refer to from being deleted.

Woken by: classes, and claims and volumes that no longer refer to one. Writes: their finalizer
`kubernetes.io/vac-protection`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.quota.claims import attributes_classes
from pybernetes.api.storage.v1 import VolumeAttributesClass
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key

from .base import Controller
from .common.protection import add_finalizer, is_deletion_candidate, needs_finalizer, remove_finalizer

FINALIZER: Final = "kubernetes.io/vac-protection"
_BY_CLASS: Final = "volumeAttributesClass"


class VolumeAttributesClassProtectionController(Controller[VolumeAttributesClass]):
    """Protects classes."""

    name = "volumeattributesclass-protection-controller"
    kind = VolumeAttributesClass

    def setup(self) -> None:
        """Find claims and volumes by the classes they refer to."""
        self.claims = self.informer(PersistentVolumeClaim)
        self.volumes = self.informer(PersistentVolume)
        self._follow(self.claims, attributes_classes)
        self._follow(self.volumes, _volume_class)

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "vacprotection"

    def concerns(self, old: VolumeAttributesClass | None, new: VolumeAttributesClass | None) -> bool:
        """Those to protect, or to let go."""
        return new is not None and (needs_finalizer(new, FINALIZER) or is_deletion_candidate(new, FINALIZER))

    async def reconcile(self, key: Key) -> float | None:
        """Put the finalizer on, or take it off."""
        found = self.own.get(key)
        if found is None:
            return None
        if is_deletion_candidate(found, FINALIZER):
            if not any(each.by_index(_BY_CLASS, key.name) for each in (self.claims, self.volumes)):
                await remove_finalizer(self.client, found, FINALIZER)
        elif needs_finalizer(found, FINALIZER):
            await add_finalizer(self.client, found, FINALIZER)
        return None

    def _follow(self, informer: Informer[Any], classes: Callable[[Any], Iterable[str]]) -> None:
        def released(names: Iterable[str]) -> None:
            for name in names:
                self.queue.add(Key("", name))

        informer.add_index(_BY_CLASS, classes)
        informer.add_handler(
            None,
            lambda old, new: released(set(classes(old)) - set(classes(new))),
            lambda gone: released(classes(gone)),
        )


def _volume_class(volume: PersistentVolume) -> list[str]:
    name = volume.spec.volume_attributes_class_name if volume.spec else None
    return [name] if name else []
