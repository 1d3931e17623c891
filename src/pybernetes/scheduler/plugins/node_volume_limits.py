"""Attaches no more volumes to a node than its storage drivers can take (CSINode's `allocatable.count`).

A volume counts once for a node however many pods use it. Counted are volumes of pods on the node, those still attached
(VolumeAttachment), and those of the pod; a claim whose volume is not made yet counts for the driver of its class.

Kept are, for each driver, columns of how many volumes are in use and how many may be. Rows where anything changed are
counted anew when the next pod with volumes asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, Pod, PodSpec, Volume
from pybernetes.api.core.volumebinding import claim_class
from pybernetes.api.storage.v1 import CSINode, StorageClass, VolumeAttachment

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
from ..snapshot.snapshot import Int64
from .claims import claim_name, claim_names, not_found, not_made_for, uses_claim

EXCEEDED = Status(UNSCHEDULABLE, "node(s) exceed max volume count")
NO_LIMIT = 1 << 40

MIGRATED = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""Volumes of the old built-in plugins are attached by these drivers."""

_BY_NODE = "node"
_BY_VOLUME = "volume"

Attached = tuple[str, str]
"""Driver and volume."""


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """See the module. A `Tracker` of pods with claims."""

    name = "NodeVolumeLimits"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._claims = handle.informer(PersistentVolumeClaim)
        self._volumes = handle.informer(PersistentVolume)
        self._classes = handle.informer(StorageClass)
        self._csi_nodes = handle.informer(CSINode)
        self._attachments = handle.informer(VolumeAttachment)
        self._claims.add_index(_BY_VOLUME, lambda each: [(each.spec.volume_name if each.spec else None) or ""])
        self._attachments.add_index(_BY_NODE, lambda each: [(each.spec.node_name if each.spec else None) or ""])
        self._attachments.add_index(_BY_VOLUME, lambda each: [_volume_name(each)])
        self._used: dict[str, Int64] = {}
        self._limits: dict[str, Int64] = {}
        self._rows_of: dict[Attached, set[int]] = {}
        """Where a volume is counted."""
        self._attached: dict[int, frozenset[Attached]] = {}
        """The counted volumes on a row; rows without are not in it."""
        self._rows_by_claim: dict[tuple[str, str], dict[int, int]] = {}
        """By namespace and name: rows with pods that use the claim, and how many."""
        self._stale: set[int] = set()
        """Rows to be counted anew."""
        handle.snapshot.track(self)
        self._follow()

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(ClusterEvent(Resource.CSI_NODE, Action.ADD)),
            EventWithHint(ClusterEvent(Resource.CSI_NODE, Action.UPDATE), _after_csi_node),
            EventWithHint(ClusterEvent(Resource.POD, Action.DELETE), _after_pod),
            EventWithHint(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD), _after_claim),
            EventWithHint(ClusterEvent(Resource.VOLUME_ATTACHMENT, Action.DELETE), _after_attachment),
        )

    # -- filter

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        if not any(_may_attach(volume) for volume in pod.spec.volumes or ()):
            return SKIP
        for name, made in claim_names(pod.pod):
            claim = self._claims.named(name, pod.namespace)
            if claim is None:
                return Status(UNRESOLVABLE, f"looking up PVC {pod.namespace}/{name}: {not_found(name)}")
            if made and (wrong := not_made_for(pod.pod, claim)):
                return Status.of_error(ValueError(wrong))
        state[self.name] = self._attached_by(pod)
        return None

    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        wanted: frozenset[Attached] = state[self.name]
        snapshot = self.handle.snapshot
        self._recount()
        fits: Mask = np.ones(snapshot.capacity, dtype=np.bool_)
        more: dict[str, int] = {}
        for driver, _ in wanted:
            more[driver] = more.get(driver, 0) + 1
        for driver, number in more.items():
            if driver in self._limits:
                fits &= self._used[driver] + number <= self._limits[driver]
        # Where one of them is attached already there is less to attach.
        for row in {row for each in wanted for row in self._rows_of.get(each, ())}:
            fits[row] = self._fits_beside(row, wanted)
        return fits[rows]

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        return [(EXCEEDED, rows)] if len(rows) else []

    def _fits_beside(self, row: int, wanted: frozenset[Attached]) -> bool:
        """A volume that is attached but used by no pod of the node counts again, as it does upstream."""
        info = self.handle.snapshot.info(row)
        by_pods = {each for pod in info.pods.values() for each in self._attached_by(pod)}
        new = wanted - by_pods
        for driver in {each for each, _ in new}:
            if driver in self._limits:
                number = sum(1 for each, _ in new if each == driver)
                if self._used[driver][row] + number > self._limits[driver][row]:
                    return False
        return True

    # -- counting

    def _attached_by(self, pod: PodInfo) -> frozenset[Attached]:
        """The volumes that a pod has attached to its node; missing claims are not counted."""
        found: set[Attached] = set()
        for volume in pod.spec.volumes or ():
            name = claim_name(pod.name, volume)
            if name is None:
                found.update(_built_in(volume))
            else:
                claim = self._claims.named(name, pod.namespace)
                if claim is not None:
                    found.update(self._attached_for(claim))
        return frozenset(found)

    def _attached_for(self, claim: PersistentVolumeClaim) -> Iterable[Attached]:
        name = claim.spec.volume_name if claim.spec else None
        volume = self._volumes.named(name) if name else None
        if volume is not None and volume.spec is not None:
            csi = volume.spec.csi
            if csi is None:
                return _built_in(volume.spec)
            return [(csi.driver, csi.volume_handle)] if csi.driver and csi.volume_handle else ()
        found = self._classes.named(claim_class(claim))
        if found is None or not found.provisioner or claim.metadata is None:
            return ()
        # No volume is called so: names of drivers' volumes do not begin with a blank.
        unmade = f" {claim.metadata.namespace}/{claim.metadata.name}"
        return [(MIGRATED.get(found.provisioner, found.provisioner), unmade)]

    def _recount(self) -> None:
        while self._stale:
            self._recount_row(self._stale.pop())

    def _recount_row(self, row: int) -> None:
        snapshot = self.handle.snapshot
        for each in self._attached.pop(row, ()):
            rows = self._rows_of[each]
            rows.discard(row)
            if not rows:
                del self._rows_of[each]
        for column in self._used.values():
            column[row] = 0
        for column in self._limits.values():
            column[row] = NO_LIMIT
        name = snapshot.names[row] if row < snapshot.size else ""
        csi_node = self._csi_nodes.named(name) if name else None
        for driver, limit in _limits(csi_node).items():
            self._columns(driver)
            self._limits[driver][row] = limit
        if not name:
            return
        found = {each for pod in snapshot.info(row).pods.values() for each in self._attached_by(pod)}
        found |= {each for attachment in self._attachments.by_index(_BY_NODE, name) for each in self._still(attachment)}
        if found:
            self._attached[row] = frozenset(found)
        for each in found:
            self._rows_of.setdefault(each, set()).add(row)
            self._columns(each[0])
            self._used[each[0]][row] += 1

    def _still(self, attachment: VolumeAttachment) -> Iterable[Attached]:
        spec = attachment.spec
        volume = self._volumes.named(_volume_name(attachment))
        if spec is None or not spec.attacher or volume is None or volume.spec is None or volume.spec.csi is None:
            return ()
        return [(spec.attacher, volume.spec.csi.volume_handle or "")]

    def _columns(self, driver: str) -> None:
        if driver not in self._used:
            capacity = self.handle.snapshot.capacity
            self._used[driver] = np.zeros(capacity, dtype=np.int64)
            self._limits[driver] = np.full(capacity, NO_LIMIT, dtype=np.int64)

    # -- following

    def _follow(self) -> None:
        def both(mark: Any) -> dict[str, Any]:
            def updated(old: Any, new: Any) -> None:
                mark(old)
                mark(new)

            return {"on_add": mark, "on_update": updated, "on_delete": mark}

        self._claims.add_handler(**both(self._claim_changed))
        self._volumes.add_handler(**both(self._volume_changed))
        self._classes.add_handler(on_add=self._class_changed, on_delete=self._class_changed)
        self._csi_nodes.add_handler(**both(lambda each: self._node_touched(each.metadata.name)))
        self._attachments.add_handler(**both(lambda each: self._node_touched(each.spec.node_name if each.spec else "")))

    def _node_touched(self, name: str | None) -> None:
        row = self.handle.snapshot.row_of.get(name or "")
        if row is not None:
            self._stale.add(row)

    def _claim_changed(self, claim: PersistentVolumeClaim) -> None:
        metadata = claim.metadata
        if metadata is not None:
            self._stale.update(self._rows_by_claim.get((metadata.namespace or "", metadata.name or ""), ()))

    def _volume_changed(self, volume: PersistentVolume) -> None:
        name = (volume.metadata.name if volume.metadata else None) or ""
        for claim in self._claims.by_index(_BY_VOLUME, name):
            self._claim_changed(claim)
        for attachment in self._attachments.by_index(_BY_VOLUME, name):
            self._node_touched(attachment.spec.node_name if attachment.spec else "")

    def _class_changed(self, _: StorageClass) -> None:
        self._stale.update(row for rows in self._rows_by_claim.values() for row in rows)

    # -- the snapshot's Tracker

    def grow(self, capacity: int) -> None:
        for columns, fill in ((self._used, 0), (self._limits, NO_LIMIT)):
            for driver, column in columns.items():
                longer = np.full(capacity, fill, dtype=np.int64)
                longer[: len(column)] = column
                columns[driver] = longer

    def node_changed(self, row: int) -> None:
        self._stale.add(row)

    def pod_added(self, pod: PodInfo, row: int) -> None:
        if pod.spec.volumes:
            self._count_claims(pod, row, 1)

    def pod_removed(self, pod: PodInfo, row: int) -> None:
        if pod.spec.volumes:
            self._count_claims(pod, row, -1)

    def _count_claims(self, pod: PodInfo, row: int, by: int) -> None:
        self._stale.add(row)
        for name, _ in claim_names(pod.pod):
            rows = self._rows_by_claim.setdefault((pod.namespace, name), {})
            number = rows.get(row, 0) + by
            if number:
                rows[row] = number
            else:
                rows.pop(row, None)
                if not rows:
                    del self._rows_by_claim[pod.namespace, name]


def _built_in(source: Volume | PersistentVolumeSpec) -> Iterable[Attached]:
    """Volumes of the old built-in plugins, which drivers have taken over."""
    if source.aws_elastic_block_store is not None:
        yield MIGRATED["kubernetes.io/aws-ebs"], source.aws_elastic_block_store.volume_id or ""
    elif source.gce_persistent_disk is not None:
        yield MIGRATED["kubernetes.io/gce-pd"], source.gce_persistent_disk.pd_name or ""
    elif source.azure_disk is not None:
        yield MIGRATED["kubernetes.io/azure-disk"], source.azure_disk.disk_uri or ""
    elif source.cinder is not None:
        yield MIGRATED["kubernetes.io/cinder"], source.cinder.volume_id or ""
    elif source.portworx_volume is not None:
        yield MIGRATED["kubernetes.io/portworx-volume"], source.portworx_volume.volume_id or ""


def _may_attach(volume: Volume) -> bool:
    return bool(volume.persistent_volume_claim or volume.ephemeral or any(True for _ in _built_in(volume)))


def _volume_name(attachment: VolumeAttachment) -> str:
    source = attachment.spec.source if attachment.spec else None
    return (source.persistent_volume_name if source else None) or ""


def _limits(csi_node: CSINode | None) -> dict[str, int]:
    drivers = (csi_node.spec.drivers if csi_node and csi_node.spec else None) or ()
    return {
        each.name or "": each.allocatable.count
        for each in drivers
        if each.allocatable is not None and each.allocatable.count is not None
    }


def _after_csi_node(pod: Pod, old: CSINode | None, new: CSINode | None) -> Hint:
    before = _limits(old)
    return _queue_if(any(limit > before.get(driver, 0) for driver, limit in _limits(new).items()))


def _after_pod(pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    if old is None or not ((old.spec and old.spec.node_name) or (old.status and old.status.nominated_node_name)):
        return Hint.SKIP
    return _queue_if(any(_may_attach(each) for each in (old.spec or PodSpec()).volumes or ()))


def _after_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> Hint:
    return _queue_if(new is not None and uses_claim(pod, new))


def _after_attachment(pod: Pod, old: VolumeAttachment | None, new: VolumeAttachment | None) -> Hint:
    attacher = old.spec.attacher if old and old.spec else None
    for volume in (pod.spec or PodSpec()).volumes or ():
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
            return Hint.QUEUE
        if any(driver == attacher for driver, _ in _built_in(volume)):
            return Hint.QUEUE
    return Hint.SKIP


def _queue_if(condition: bool) -> Hint:
    return Hint.QUEUE if condition else Hint.SKIP
