"""Which events may let a pod in whose volumes kept it out."""

from __future__ import annotations

from collections.abc import Sequence

from pybernetes.api.core.v1 import PersistentVolumeClaim, Pod
from pybernetes.api.storage.v1 import CSIDriver, CSINode, CSIStorageCapacity, StorageClass

from ...framework import Action, ClusterEvent, EventWithHint, Hint, Resource
from ..claims import uses_claim
from .finder import volume_limit

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


def events() -> Sequence[EventWithHint]:
    """Upstream's."""
    change = Action.ADD | Action.UPDATE
    return (
        EventWithHint(ClusterEvent(Resource.STORAGE_CLASS, change), after_class),
        EventWithHint(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, change), after_claim),
        EventWithHint(ClusterEvent(Resource.PERSISTENT_VOLUME, change)),
        EventWithHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
        EventWithHint(ClusterEvent(Resource.CSI_NODE, change), after_csi_node),
        EventWithHint(ClusterEvent(Resource.CSI_DRIVER, Action.UPDATE), after_driver),
        EventWithHint(ClusterEvent(Resource.CSI_STORAGE_CAPACITY, change), after_capacity),
    )


def after_class(pod: Pod, old: StorageClass | None, new: StorageClass | None) -> Hint:
    """A class came, or can be used elsewhere."""
    return _queue_if(old is None or new is None or (old.allowed_topologies or []) != (new.allowed_topologies or []))


def after_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> Hint:
    """A claim of the pod came or changed."""
    return _queue_if(new is not None and uses_claim(pod, new))


def after_csi_node(pod: Pod, old: CSINode | None, new: CSINode | None) -> Hint:
    """A node's drivers came, or took over a built-in plugin."""
    return _queue_if(old is None or _migrated(old) != _migrated(new))


def after_driver(pod: Pod, old: CSIDriver | None, new: CSIDriver | None) -> Hint:
    """A driver's space does not matter any more."""
    return _queue_if(_tells_space(old) and not _tells_space(new))


def after_capacity(pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> Hint:
    """There is more space."""
    if old is None or new is None:
        return Hint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    return _queue_if(now is not None and (before is None or now > before))


def _migrated(node: CSINode | None) -> str | None:
    return ((node.metadata.annotations if node and node.metadata else None) or {}).get(MIGRATED_PLUGINS)


def _tells_space(driver: CSIDriver | None) -> bool:
    return bool(driver and driver.spec and driver.spec.storage_capacity)


def _queue_if(condition: bool) -> Hint:
    return Hint.QUEUE if condition else Hint.SKIP
