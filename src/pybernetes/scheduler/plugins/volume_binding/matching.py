"""Which volume suits a claim, whatever the node; and copies of both as they are once bound to each other."""

from __future__ import annotations

from collections.abc import Iterable

from pybernetes.api import labels
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.core.volumebinding import (
    BIND_COMPLETED,
    SELECTED_NODE,
    allows_access,
    annotations_of,
    bind,
    claim_class,
    is_bound_to,
    is_possible,
    volume_class,
    volume_size,
    wanted_size,
)
from pybernetes.client.keys import copy


def fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume and the controller is done with both."""
    return bool(claim.spec and claim.spec.volume_name) and BIND_COMPLETED in annotations_of(claim)


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
        if not is_possible(volume, claim, wanted):
            continue
        if is_bound_to(volume, claim):
            return [volume]
        if (
            volume.status is not None
            and volume.status.phase == "Available"
            and volume_class(volume) == claim_class(claim)
            and chosen.matches(volume.metadata.labels if volume.metadata else None)
            and allows_access(volume, claim)
        ):
            found.append(volume)
    return sorted(found, key=volume_size)


def bound_copy(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume as it is once it is this claim's."""
    result = copy(volume)
    bind(result, claim)
    return result


def provisioned_copy(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim with the selected node, for dynamic provisioning."""
    result = copy(claim)
    assert result.metadata is not None
    result.metadata.annotations = {**annotations_of(claim), SELECTED_NODE: node_name}
    return result
