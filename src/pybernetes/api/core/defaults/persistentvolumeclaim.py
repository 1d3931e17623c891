"""Defaults for PersistentVolumeClaims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..v1.persistentvolumeclaim import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    VolumeResourceRequirements,
)
from .resources import default_resource_list


def default_persistent_volume_claim(obj: PersistentVolumeClaim) -> None:
    """A filesystem, unless it says otherwise."""
    if obj.spec is None:
        obj.spec = PersistentVolumeClaimSpec()
    spec = obj.spec
    if spec.volume_mode is None:
        spec.volume_mode = "Filesystem"
    if spec.resources is None:
        spec.resources = VolumeResourceRequirements()
    default_resource_list(spec.resources.limits)
    default_resource_list(spec.resources.requests)
    if obj.status is None:
        obj.status = PersistentVolumeClaimStatus()
    if not obj.status.phase:
        obj.status.phase = "Pending"
    default_resource_list(obj.status.capacity)
    default_resource_list(obj.status.allocated_resources)


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {"PersistentVolumeClaim": default_persistent_volume_claim}
