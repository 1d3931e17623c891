"""Keeps pods apart that cannot have the same disk: on a node (GCE, EBS, iSCSI, Ceph), or anywhere (ReadWriteOncePod).

A disk that two pods on one node would mount is a conflict unless both mount it read-only; an EBS volume always is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pybernetes.api.core.v1 import PersistentVolumeClaim, Pod, PodSpec, Volume

from ..framework import (
    SKIP,
    UNRESOLVABLE,
    UNSCHEDULABLE,
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

DISK_CONFLICT = Status(UNSCHEDULABLE, "node(s) had no available disk")
IN_USE = Status(
    UNSCHEDULABLE,
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
)

Disk = tuple[str, ...]


class VolumeRestrictions(PreFilterPlugin, FilterPlugin):
    """See the module. Also a `Tracker`: knows which rows have which disks, and how often claims are used."""

    name = "VolumeRestrictions"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._claims = handle.informer(PersistentVolumeClaim)
        self._used: dict[tuple[str, str], int] = {}
        """By namespace and name of the claim: in how many volumes of pods that have a node."""
        self._disks: dict[Disk, dict[int, list[int]]] = {}
        """By disk and row: how many pods mount it [for writing, read-only]."""
        handle.snapshot.track(self)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(ClusterEvent(Resource.POD, Action.DELETE), _after_pod),
            EventWithHint(ClusterEvent(Resource.NODE, Action.ADD)),
            EventWithHint(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD), _after_claim),
        )

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        if not pod.spec.volumes:
            return SKIP
        alone: set[tuple[str, str]] = set()
        for name in _named_claims(pod.spec):
            claim = self._claims.named(name, pod.namespace)
            if claim is None:
                return Status(UNRESOLVABLE, not_found(name))
            if "ReadWriteOncePod" in ((claim.spec.access_modes if claim.spec else None) or ()):
                alone.add((pod.namespace, name))
        disks = list(_disks(pod.spec))
        if not disks and not any(each in self._used for each in alone):
            return SKIP
        state[self.name] = (disks, alone)
        return None

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        disks, alone = state[self.name]
        snapshot = self.handle.snapshot
        if any(each in self._used for each in alone):
            return np.zeros(snapshot.count(rows), dtype=np.bool_)
        return self._free(disks)[rows]

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        free = self._free(state[self.name][0])[rows]
        groups = ((DISK_CONFLICT, rows[~free]), (IN_USE, rows[free]))
        return [(status, found) for status, found in groups if len(found)]

    def _free(self, disks: list[tuple[Disk, bool]]) -> Mask:
        """By row: whether no pod there has one of the disks in a way that hurts."""
        free: Mask = np.ones(self.handle.snapshot.capacity, dtype=np.bool_)
        for disk, read_only in disks:
            for row, (writers, readers) in self._disks.get(disk, {}).items():
                if writers or (readers and not read_only):
                    free[row] = False
        return free

    # -- the snapshot's Tracker

    def grow(self, capacity: int) -> None:
        pass

    def node_changed(self, row: int) -> None:
        pass

    def pod_added(self, pod: PodInfo, row: int) -> None:
        if pod.spec.volumes:
            self._count(pod, row, 1)

    def pod_removed(self, pod: PodInfo, row: int) -> None:
        if pod.spec.volumes:
            self._count(pod, row, -1)

    def _count(self, pod: PodInfo, row: int, by: int) -> None:
        for name in _named_claims(pod.spec):
            key = (pod.namespace, name)
            number = self._used.get(key, 0) + by
            if number:
                self._used[key] = number
            else:
                del self._used[key]
        for disk, read_only in _disks(pod.spec):
            by_row = self._disks.setdefault(disk, {})
            counts = by_row.setdefault(row, [0, 0])
            counts[read_only] += by
            if not any(counts):
                del by_row[row]
                if not by_row:
                    del self._disks[disk]


def _named_claims(spec: PodSpec) -> Iterator[str]:
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name or ""


def _disks(spec: PodSpec) -> Iterator[tuple[Disk, bool]]:
    """The disks of a pod that others may want, and whether it only reads them."""
    for volume in spec.volumes or ():
        yield from _disks_of(volume)


def _disks_of(volume: Volume) -> Iterator[tuple[Disk, bool]]:
    if volume.gce_persistent_disk is not None:
        yield ("gce", volume.gce_persistent_disk.pd_name or ""), bool(volume.gce_persistent_disk.read_only)
    if volume.aws_elastic_block_store is not None:
        yield ("ebs", volume.aws_elastic_block_store.volume_id or ""), False
    if volume.iscsi is not None:
        yield ("iscsi", volume.iscsi.iqn or ""), bool(volume.iscsi.read_only)
    if volume.rbd is not None:
        for monitor in volume.rbd.monitors or ():  # one monitor in common makes it the same image
            yield ("rbd", monitor, volume.rbd.pool or "", volume.rbd.image or ""), bool(volume.rbd.read_only)


def _after_pod(pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    if old is None or old.metadata is None or pod.metadata is None or old.metadata.namespace != pod.metadata.namespace:
        return Hint.SKIP
    mine, gone = pod.spec or PodSpec(), old.spec or PodSpec()
    if set(_named_claims(mine)) & set(_named_claims(gone)):
        return Hint.QUEUE
    had = dict(_disks(gone))
    return Hint.QUEUE if any(disk in had and not (read and had[disk]) for disk, read in _disks(mine)) else Hint.SKIP


def _after_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> Hint:
    named = any(_named_claims(pod.spec or PodSpec()))
    return Hint.QUEUE if named and new is not None and uses_claim(pod, new) else Hint.SKIP
