"""Defaults for the kinds of storage/v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..core.defaults.persistentvolume import default_persistent_volume_source
from .v1 import CSIDriver, CSIDriverSpec, StorageClass, VolumeAttachment


def default_storage_class(obj: StorageClass) -> None:
    """Volumes are made at once and deleted with their claims."""
    if obj.reclaim_policy is None:
        obj.reclaim_policy = "Delete"
    if obj.volume_binding_mode is None:
        obj.volume_binding_mode = "Immediate"


def default_csi_driver(obj: CSIDriver) -> None:
    """A driver for persistent volumes that have to be attached."""
    spec = obj.spec
    if spec is None:
        spec = obj.spec = CSIDriverSpec()
    if spec.attach_required is None:
        spec.attach_required = True
    if spec.pod_info_on_mount is None:
        spec.pod_info_on_mount = False
    if spec.storage_capacity is None:
        spec.storage_capacity = False
    if spec.fs_group_policy is None:
        spec.fs_group_policy = "ReadWriteOnceWithFSType"
    if not spec.volume_lifecycle_modes:
        spec.volume_lifecycle_modes = ["Persistent"]
    if spec.requires_republish is None:
        spec.requires_republish = False
    if spec.se_linux_mount is None:
        spec.se_linux_mount = False


def default_volume_attachment(obj: VolumeAttachment) -> None:
    """A volume that is not a PersistentVolume is filled in as far as one would be."""
    source = obj.spec.source if obj.spec is not None else None
    if source is not None and source.inline_volume_spec is not None:
        default_persistent_volume_source(source.inline_volume_spec)


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {
    "CSIDriver": default_csi_driver,
    "StorageClass": default_storage_class,
    "VolumeAttachment": default_volume_attachment,
}
