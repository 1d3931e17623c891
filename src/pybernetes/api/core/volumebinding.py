"""The binding of a PersistentVolume to a PersistentVolumeClaim: rules that scheduler and controllers share.

A volume is bound in two steps that are two writes: its `claimRef` names the claim, then the claim's `volumeName` names
the volume. Annotations say who did which step, and so what may be undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..quantity import Quantity, parse
from .v1 import ObjectReference, PersistentVolume, PersistentVolumeClaim

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""On a claim: it has had a volume."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""On both: the reference to the other was not written by the user."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""On a claim: the scheduler wants a volume made for this node."""
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
STORAGE_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
"""From before there was a field; still stronger than the field."""

_NONE: Final = Quantity(0)


def annotations_of(obj: PersistentVolume | PersistentVolumeClaim) -> dict[str, str]:
    """Never None."""
    return (obj.metadata.annotations if obj.metadata else None) or {}


def has_class(claim: PersistentVolumeClaim) -> bool:
    """Whether the class was set explicitly; it may be set to none ("")."""
    field = claim.spec.storage_class_name if claim.spec else None
    return field is not None or STORAGE_CLASS_ANNOTATION in annotations_of(claim)


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The storage class of a claim; "" is none."""
    field = claim.spec.storage_class_name if claim.spec else None
    return annotations_of(claim).get(STORAGE_CLASS_ANNOTATION, field or "")


def volume_class(volume: PersistentVolume) -> str:
    """The storage class of a volume; "" is none."""
    field = volume.spec.storage_class_name if volume.spec else None
    return annotations_of(volume).get(STORAGE_CLASS_ANNOTATION, field or "")


def wanted_size(claim: PersistentVolumeClaim) -> Quantity:
    """How much the claim asks for."""
    resources = claim.spec.resources if claim.spec else None
    return _storage(resources.requests if resources else None)


def volume_size(volume: PersistentVolume) -> Quantity:
    """How much there is."""
    return _storage(volume.spec.capacity if volume.spec else None)


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound to this claim, or reserved for it."""
    reference = volume.spec.claim_ref if volume.spec else None
    metadata = claim.metadata
    if reference is None or metadata is None:
        return False
    if (reference.namespace or "", reference.name or "") != (metadata.namespace or "", metadata.name or ""):
        return False
    return not reference.uid or reference.uid == metadata.uid


def same_mode(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether both are file systems, or both block devices."""
    has = volume.spec.volume_mode if volume.spec else None
    wants = claim.spec.volume_mode if claim.spec else None
    return (has or "Filesystem") == (wants or "Filesystem")


def same_attributes_class(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether both are of one VolumeAttributesClass, or of none."""
    has = volume.spec.volume_attributes_class_name if volume.spec else None
    wants = claim.spec.volume_attributes_class_name if claim.spec else None
    return (has or "") == (wants or "")


def allows_access(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume can be used in all the ways that the claim asks for."""
    modes = (volume.spec.access_modes if volume.spec else None) or ()
    return all(mode in modes for mode in (claim.spec.access_modes if claim.spec else None) or ())


def is_possible(volume: PersistentVolume, claim: PersistentVolumeClaim, wanted: Quantity) -> bool:
    """Whether the volume is free or reserved for the claim, large enough (`wanted`) and of the right mode.

    Of a volume that is reserved for a claim no more is asked; of others also class, labels and ways of access.
    """
    if volume.spec is None or (volume.spec.claim_ref is not None and not is_bound_to(volume, claim)):
        return False
    if volume_size(volume) < wanted or not same_mode(volume, claim) or not same_attributes_class(volume, claim):
        return False
    return volume.metadata is None or volume.metadata.deletion_timestamp is None


def bind(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Make the volume (yours to change) the claim's; whether that changed anything.

    One that the user has reserved for the claim does not become one that a controller has bound.
    """
    assert volume.spec is not None
    assert volume.metadata is not None
    assert claim.metadata is not None
    wanted = ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        resource_version=claim.metadata.resource_version,
    )
    reserved = is_bound_to(volume, claim)
    changed = False
    if not reserved or volume.spec.claim_ref is None or volume.spec.claim_ref.uid != claim.metadata.uid:
        volume.spec.claim_ref = wanted
        changed = True
    if not reserved and BOUND_BY_CONTROLLER not in annotations_of(volume):
        volume.metadata.annotations = {**annotations_of(volume), BOUND_BY_CONTROLLER: "yes"}
        changed = True
    return changed


def _storage(amounts: Mapping[str, object] | None) -> Quantity:
    value = (amounts or {}).get("storage")
    return _NONE if value is None else parse(str(value))
