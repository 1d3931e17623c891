"""Which volume suits a claim, whatever the node; and copies of both as they are once bound to each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pybernetes.api import labels
from pybernetes.api.core.v1 import ObjectReference, PersistentVolume, PersistentVolumeClaim
from pybernetes.api.quantity import Quantity, parse
from pybernetes.client.keys import copy

from ..claims import claim_class, volume_class

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

_NONE = Quantity(0)


def fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume and the controller is done with both."""
    return bool(claim.spec and claim.spec.volume_name) and BIND_COMPLETED in annotations_of(claim)


def annotations_of(obj: PersistentVolume | PersistentVolumeClaim) -> dict[str, str]:
    """Never None."""
    return (obj.metadata.annotations if obj.metadata else None) or {}


def wanted_size(claim: PersistentVolumeClaim) -> Quantity:
    """How much the claim asks for."""
    resources = claim.spec.resources if claim.spec else None
    return _storage(resources.requests if resources else None)


def size(volume: PersistentVolume) -> Quantity:
    """How much there is."""
    return _storage(volume.spec.capacity if volume.spec else None)


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is, or was reserved by somebody to be, this claim's."""
    reference = volume.spec.claim_ref if volume.spec else None
    metadata = claim.metadata
    if reference is None or metadata is None:
        return False
    if (reference.namespace or "", reference.name or "") != (metadata.namespace or "", metadata.name or ""):
        return False
    return not reference.uid or reference.uid == metadata.uid


def suitable(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> list[PersistentVolume]:
    """The volumes a claim may be bound to where their node affinity allows, smallest first.

    One that is reserved for the claim is the only one.
    """
    found: list[PersistentVolume] = []
    wanted = wanted_size(claim)
    spec = claim.spec
    assert spec is not None
    chosen = labels.EVERYTHING if spec.selector is None else labels.from_label_selector(spec.selector)
    for volume in volumes:
        if not _may_be(claim, volume, wanted):
            continue
        if is_bound_to(volume, claim):
            return [volume]
        modes = (volume.spec.access_modes if volume.spec else None) or ()
        if (
            volume.status is not None
            and volume.status.phase == "Available"
            and volume_class(volume) == claim_class(claim)
            and chosen.matches(volume.metadata.labels if volume.metadata else None)
            and all(mode in modes for mode in spec.access_modes or ())
        ):
            found.append(volume)
    return sorted(found, key=size)


def bound_copy(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume as it is once it is this claim's."""
    result = copy(volume)
    assert result.spec is not None
    assert result.metadata is not None
    assert claim.metadata is not None
    if not is_bound_to(volume, claim):
        result.metadata.annotations = {**annotations_of(volume), BOUND_BY_CONTROLLER: "yes"}
    result.spec.claim_ref = ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        resource_version=claim.metadata.resource_version,
    )
    return result


def provisioned_copy(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim as it is when a volume shall be made for it, for this node."""
    result = copy(claim)
    assert result.metadata is not None
    result.metadata.annotations = {**annotations_of(claim), SELECTED_NODE: node_name}
    return result


def _may_be(claim: PersistentVolumeClaim, volume: PersistentVolume, wanted: Quantity) -> bool:
    spec, has = claim.spec, volume.spec
    if spec is None or has is None or (has.claim_ref is not None and not is_bound_to(volume, claim)):
        return False
    if size(volume) < wanted or (spec.volume_mode or "Filesystem") != (has.volume_mode or "Filesystem"):
        return False
    if (spec.volume_attributes_class_name or "") != (has.volume_attributes_class_name or ""):
        return False
    return volume.metadata is None or volume.metadata.deletion_timestamp is None


def _storage(amounts: Mapping[str, object] | None) -> Quantity:
    value = (amounts or {}).get("storage")
    return _NONE if value is None else parse(str(value))
