"""Defaults for PersistentVolumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..v1.persistentvolume import PersistentVolume, PersistentVolumeSpec, PersistentVolumeStatus
from .resources import default_resource_list


def default_persistent_volume(obj: PersistentVolume) -> None:
    """Kept after use and formatted, unless it says otherwise."""
    if obj.spec is None:
        obj.spec = PersistentVolumeSpec()
    if obj.status is None:
        obj.status = PersistentVolumeStatus()
    if not obj.status.phase:
        obj.status.phase = "Pending"
    spec = obj.spec
    if not spec.persistent_volume_reclaim_policy:
        spec.persistent_volume_reclaim_policy = "Retain"
    if spec.volume_mode is None:
        spec.volume_mode = "Filesystem"
    default_persistent_volume_source(spec)


def default_persistent_volume_source(spec: PersistentVolumeSpec) -> None:
    """Defaults that also apply to a volume in a VolumeAttachment."""
    default_resource_list(spec.capacity)
    if spec.host_path is not None and spec.host_path.type is None:
        spec.host_path.type = ""
    if spec.rbd is not None:
        spec.rbd.pool = spec.rbd.pool or "rbd"
        spec.rbd.user = spec.rbd.user or "admin"
        spec.rbd.keyring = spec.rbd.keyring or "/etc/ceph/keyring"
    if spec.iscsi is not None:
        spec.iscsi.iscsi_interface = spec.iscsi.iscsi_interface or "default"
    if spec.scale_io is not None:
        spec.scale_io.storage_mode = spec.scale_io.storage_mode or "ThinProvisioned"
        spec.scale_io.fs_type = spec.scale_io.fs_type or "xfs"
    disk = spec.azure_disk
    if disk is not None:
        if disk.caching_mode is None:
            disk.caching_mode = "ReadWrite"
        if disk.fs_type is None:
            disk.fs_type = "ext4"
        if disk.read_only is None:
            disk.read_only = False
        if disk.kind is None:
            disk.kind = "Shared"


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"PersistentVolume": default_persistent_volume}
