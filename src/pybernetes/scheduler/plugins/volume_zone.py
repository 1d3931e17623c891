"""Keeps pods in the zone and region of their volumes, where volumes say so by the labels that clouds used to set.

Newer volumes say it by node affinity (VolumeBinding). Nodes without any such label are taken to be in the one zone
that there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from pybernetes.api.core.volumebinding import claim_class
from pybernetes.api.storage.v1 import StorageClass

from ..framework import (
    SKIP,
    UNRESOLVABLE,
    Action,
    ClusterEvent,
    CycleState,
    EventWithHint,
    FilterPlugin,
    Handle,
    Hint,
    Mask,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    Refusals,
    Resource,
    RowArray,
    Rows,
    Status,
)
from .claims import not_found, uses_claim

CONFLICT = Status(UNRESOLVABLE, "node(s) had no available volume zone")

_NEWER = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
ZONE_LABELS = (*_NEWER, *_NEWER.values())

Zones = tuple[tuple[str, frozenset[str]], ...]
"""Labels, and the values that a node may have for each."""


class VolumeZone(PreFilterPlugin, FilterPlugin):
    """See the module."""

    name = "VolumeZone"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._claims = handle.informer(PersistentVolumeClaim)
        self._volumes = handle.informer(PersistentVolume)
        self._classes = handle.informer(StorageClass)

    def events_to_register(self) -> Sequence[EventWithHint]:
        change = Action.ADD | Action.UPDATE
        return (
            EventWithHint(ClusterEvent(Resource.STORAGE_CLASS, Action.ADD), _after_class),
            EventWithHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
            EventWithHint(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, change), _after_claim),
            EventWithHint(ClusterEvent(Resource.PERSISTENT_VOLUME, change), _after_volume),
        )

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        zones: list[tuple[str, frozenset[str]]] = []
        for volume in pod.spec.volumes or ():
            if volume.persistent_volume_claim is not None:
                found = self._zones_of(volume.persistent_volume_claim.claim_name or "", pod.namespace)
                if isinstance(found, Status):
                    return found
                zones.extend(found)
        if not zones:
            return SKIP
        state[self.name] = tuple(zones)
        return None

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        snapshot = self.handle.snapshot
        zones: Zones = state[self.name]
        anywhere: Mask = np.ones(snapshot.count(rows), dtype=np.bool_)
        for key in ZONE_LABELS:
            anywhere &= snapshot.label(key)[rows] == 0
        mask: Mask = np.ones_like(anywhere)
        for key, values in zones:
            here = snapshot.label(key)[rows]
            if key in _NEWER:
                here = np.where(here == 0, snapshot.label(_NEWER[key])[rows], here)
            mask &= np.isin(here, [snapshot.value_id(value) for value in values])
        return mask | anywhere

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        return [(CONFLICT, rows)] if len(rows) else []

    def _zones_of(self, name: str, namespace: str) -> Zones | Status:
        if not name:
            return Status(UNRESOLVABLE, "PersistentVolumeClaim had no name")
        claim = self._claims.named(name, namespace)
        if claim is None:
            return Status(UNRESOLVABLE, not_found(name))
        volume_name = claim.spec.volume_name if claim.spec else None
        if volume_name:
            volume = self._volumes.named(volume_name)
            if volume is None:
                return Status(UNRESOLVABLE, f'persistentvolume "{volume_name}" not found')
            return _zones(volume)
        class_name = claim_class(claim)
        if not class_name:
            return Status(UNRESOLVABLE, "PersistentVolumeClaim had no pv name and storageClass name")
        found = self._classes.named(class_name)
        if found is None:
            return Status(UNRESOLVABLE, f'storageclass.storage.k8s.io "{class_name}" not found')
        if found.volume_binding_mode is None:
            return Status(UNRESOLVABLE, f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if found.volume_binding_mode == "WaitForFirstConsumer":
            return ()
        return Status(UNRESOLVABLE, "PersistentVolume had no name")


def _zones(volume: PersistentVolume) -> Zones:
    labels = (volume.metadata.labels if volume.metadata else None) or {}
    found = []
    for key in ZONE_LABELS:
        if key in labels:
            values = frozenset(each.strip() for each in labels[key].split("__"))
            if "" not in values:
                found.append((key, values))
    return tuple(found)


def _after_class(pod: Pod, old: StorageClass | None, new: StorageClass | None) -> Hint:
    waits = new is not None and new.volume_binding_mode == "WaitForFirstConsumer"
    return Hint.QUEUE if waits else Hint.SKIP


def _after_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> Hint:
    named = [each.persistent_volume_claim for each in (pod.spec.volumes if pod.spec else None) or ()]
    mine = new is not None and uses_claim(pod, new) and any(named)
    return Hint.QUEUE if mine else Hint.SKIP


def _after_volume(pod: Pod, old: PersistentVolume | None, new: PersistentVolume | None) -> Hint:
    if old is None or new is None:
        return Hint.QUEUE
    return Hint.QUEUE if _zones(old) != _zones(new) else Hint.SKIP
