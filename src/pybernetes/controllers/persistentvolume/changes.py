"""Claims and volumes as they are after a step: copies to be written, None where nothing would change."""

from __future__ import annotations

from typing import Final

from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus
from pybernetes.api.core.volumebinding import BIND_COMPLETED, BOUND_BY_CONTROLLER, bind, volume_size
from pybernetes.api.quantity import QuantityError, canonicalize, parse
from pybernetes.client.keys import copy

from ..common.meta import annotations_of, meta, name_of
from .migration import (
    BETA_STORAGE_PROVISIONER,
    STORAGE_PROVISIONER,
    deletion_finalizers,
    migrated_annotations,
)

Amounts = dict[str, str | int | float]

PRE_RESIZE_CAPACITY: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"


def bound_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume | None:
    """The volume with the claim's name on it."""
    changed = copy(volume)
    return changed if bind(changed, claim) else None


def bound_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim | None:
    """The claim with the volume's name on it."""
    changed = copy(claim)
    assert changed.spec is not None
    added: dict[str, str] = {}
    if changed.spec.volume_name != name_of(volume):
        changed.spec.volume_name = name_of(volume)
        added[BOUND_BY_CONTROLLER] = "yes"
    elif BIND_COMPLETED in annotations_of(claim):
        return None
    added[BIND_COMPLETED] = "yes"
    meta(changed).annotations = {**added, **annotations_of(claim)}
    return changed


def unbound_volume(volume: PersistentVolume) -> PersistentVolume:
    """The volume, free again. If the user had reserved it, it stays reserved."""
    changed = copy(volume)
    assert changed.spec is not None
    annotations = annotations_of(changed)
    if BOUND_BY_CONTROLLER in annotations:
        changed.spec.claim_ref = None
        del annotations[BOUND_BY_CONTROLLER]
        meta(changed).annotations = annotations or None
    elif changed.spec.claim_ref is not None:
        changed.spec.claim_ref.uid = None
    return changed


def claim_status(
    claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None
) -> PersistentVolumeClaimStatus | None:
    """The status of a claim in this phase, with this volume.

    Capacity and attributes class are the volume's when the claim becomes bound. After that they belong to the
    components that resize and modify volumes: a file system may be smaller than its device for good reasons.
    """
    before = claim.status or PersistentVolumeClaimStatus()
    status = copy(before)
    status.phase = phase
    if volume is None or volume.spec is None:
        status.access_modes = status.capacity = status.current_volume_attributes_class_name = None
    else:
        status.access_modes = volume.spec.access_modes
        if before.phase != phase:
            status.capacity = _capacity(status.capacity, volume)
        if before.phase == "Pending" and phase == "Bound":
            status.current_volume_attributes_class_name = volume.spec.volume_attributes_class_name
    return None if status == before else status


def provisioned_claim(claim: PersistentVolumeClaim, provisioner: str) -> PersistentVolumeClaim | None:
    """The claim with the name of the one who shall make a volume for it."""
    if annotations_of(claim).get(STORAGE_PROVISIONER) == provisioner:
        return None
    changed = copy(claim)
    both = dict.fromkeys((BETA_STORAGE_PROVISIONER, STORAGE_PROVISIONER), provisioner)
    meta(changed).annotations = {**annotations_of(claim), **both}
    meta(changed).annotations = migrated_annotations(changed) or annotations_of(changed)
    return changed


def claim_of_class(claim: PersistentVolumeClaim, storage_class: str) -> PersistentVolumeClaim:
    """The claim of a class."""
    changed = copy(claim)
    assert changed.spec is not None
    changed.spec.storage_class_name = storage_class
    return changed


def migrated_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim | None:
    """The claim with the name of the driver that stands in for a plugin."""
    annotations = migrated_annotations(claim)
    if annotations is None:
        return None
    changed = copy(claim)
    meta(changed).annotations = annotations
    return changed


def migrated_volume(volume: PersistentVolume) -> PersistentVolume | None:
    """The volume with the name of the driver that stands in for a plugin, and the finalizers that go with it."""
    annotations, finalizers = migrated_annotations(volume), deletion_finalizers(volume)
    if annotations is None and finalizers is None:
        return None
    changed = copy(volume)
    if annotations is not None:
        meta(changed).annotations = annotations
    if finalizers is not None:
        meta(changed).finalizers = finalizers or None
    return changed


def _capacity(present: Amounts | None, volume: PersistentVolume) -> Amounts | None:
    assert volume.spec is not None
    text = annotations_of(volume).get(PRE_RESIZE_CAPACITY)
    if text is not None:  # a resize is under way: the claim has what there was before
        try:
            return {**(present or {}), "storage": canonicalize(text)}
        except QuantityError:
            return {**(present or {}), "storage": str(volume_size(volume))}
    has = (present or {}).get("storage")
    if has is not None and parse(str(has)) == volume_size(volume):
        return present
    return dict(volume.spec.capacity or {})
