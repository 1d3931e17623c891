"""Persistent volumes and claims: size, modes, class, and who is bound to whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pybernetes.api.core.v1 import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
)

from .. import formats
from ..printer import AGE, NAME, UNSET, Cells, Printer, age, annotation, deleting, name, text, wide

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"  # older than the field, and stronger
_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _volume(volume: PersistentVolume, now: float) -> Cells:
    spec, status = volume.spec or PersistentVolumeSpec(), volume.status or PersistentVolumeStatus()
    claim = spec.claim_ref
    return [
        name(volume),
        formats.amount((spec.capacity or {}).get("storage")),
        _modes(spec.access_modes),
        spec.persistent_volume_reclaim_policy or "",
        "Terminating" if deleting(volume) else status.phase or "",
        f"{claim.namespace or ''}/{claim.name or ''}" if claim else "",
        _class(volume, spec.storage_class_name),
        UNSET if spec.volume_attributes_class_name is None else spec.volume_attributes_class_name,
        status.reason or "",
        age(volume, now),
        spec.volume_mode or UNSET,
    ]


def _claim(claim: PersistentVolumeClaim, now: float) -> Cells:
    spec, status = claim.spec or PersistentVolumeClaimSpec(), claim.status or PersistentVolumeClaimStatus()
    bound = bool(spec.volume_name)
    return [
        name(claim),
        "Terminating" if deleting(claim) else status.phase or "",
        spec.volume_name or "",
        formats.amount((status.capacity or {}).get("storage")) if bound else "",
        _modes(status.access_modes) if bound else "",
        _class(claim, spec.storage_class_name),
        UNSET if spec.volume_attributes_class_name is None else spec.volume_attributes_class_name,
        age(claim, now),
        spec.volume_mode or UNSET,
    ]


def _modes(modes: Sequence[str] | None) -> str:
    return ",".join([short for mode, short in _MODES.items() if mode in (modes or ())])


def _class(obj: PersistentVolume | PersistentVolumeClaim, given: str | None) -> str:
    annotated = annotation(obj, _CLASS_ANNOTATION)
    return (given or "") if annotated is None else annotated


_CAPACITY: Final = text("Capacity", "How much fits")
_ACCESS_MODES: Final = text("Access Modes", "How it can be mounted")
_STORAGE_CLASS: Final = text("StorageClass", "Class of storage it belongs to")
_ATTRIBUTES_CLASS: Final = text("VolumeAttributesClass", "Class of attributes it has")
_VOLUME_MODE: Final = wide("VolumeMode", "Filesystem or block device")

PERSISTENT_VOLUME: Final = Printer(
    (
        NAME,
        _CAPACITY,
        _ACCESS_MODES,
        text("Reclaim Policy", "What becomes of it when it is released"),
        text("Status", "Whether it is in use"),
        text("Claim", "Who uses it"),
        _STORAGE_CLASS,
        _ATTRIBUTES_CLASS,
        text("Reason", "Why it is in this state"),
        AGE,
        _VOLUME_MODE,
    ),
    _volume,
)
PERSISTENT_VOLUME_CLAIM: Final = Printer(
    (
        NAME,
        text("Status", "Whether it has a volume"),
        text("Volume", "The volume it has"),
        _CAPACITY,
        _ACCESS_MODES,
        _STORAGE_CLASS,
        _ATTRIBUTES_CLASS,
        AGE,
        _VOLUME_MODE,
    ),
    _claim,
)
