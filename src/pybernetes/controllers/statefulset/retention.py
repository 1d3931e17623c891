"""When the claims of a StatefulSet go: with the set, with a pod that was scaled away, or never.

Said by ownership, so that the garbage collector does the work: a claim that should go with the set is controlled by the
set, one whose pod is scaled away and that should go with it by the pod. A claim that another owner controls, or
an earlier set or pod of the same name, is left alone.
"""

from __future__ import annotations

from typing import Final

from pybernetes.api.apps.v1 import StatefulSet
from pybernetes.api.base import Kind
from pybernetes.api.core.v1.persistentvolumeclaim import PersistentVolumeClaim
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.meta.v1.objectmeta import OwnerReference
from pybernetes.client.keys import controller_reference, resource_of, uid_of

from ..common.meta import meta, name_of
from .identity import in_range, spec_of

RETAIN: Final = "Retain"
DELETE: Final = "Delete"


def policy_of(statefulset: StatefulSet) -> tuple[str, str]:
    """The policies for claims when the set is deleted, and when it is scaled down; unknown ones are Retain."""
    policy = spec_of(statefulset).persistent_volume_claim_retention_policy
    deleted, scaled = (policy.when_deleted, policy.when_scaled) if policy else (None, None)
    return DELETE if deleted == DELETE else RETAIN, DELETE if scaled == DELETE else RETAIN


def wanted_owner(statefulset: StatefulSet, pod: Pod) -> Kind | None:
    """The owner that the claims of the pod should have."""
    when_deleted, when_scaled = policy_of(statefulset)
    if when_scaled == DELETE and not in_range(statefulset, pod):
        return pod
    return statefulset if when_deleted == DELETE else None


def has_conflicting_controller(claim: PersistentVolumeClaim, statefulset: StatefulSet, pod: Pod) -> bool:
    """Whether the policy cannot be kept because another owner controls the claim, or a former set of our name does."""
    if policy_of(statefulset) == (RETAIN, RETAIN):
        return False
    for reference in _references(claim):
        owner = _named(reference, statefulset, pod)
        if owner is None:
            if reference.controller:
                return True
        elif reference.uid != uid_of(owner):
            return True
    return False


def is_up_to_date(claim: PersistentVolumeClaim, statefulset: StatefulSet, pod: Pod) -> bool:
    """Whether nothing is to be done: the owners are right, or the claim is not ours to touch."""
    if is_stale(claim, statefulset) or is_stale(claim, pod):
        return True
    ours = [each for each in _references(claim) if each.uid in (uid_of(statefulset), uid_of(pod))]
    if has_conflicting_controller(claim, statefulset, pod):
        return not ours
    owner = wanted_owner(statefulset, pod)
    wanted = [] if owner is None else [uid_of(owner)]
    return all(each.controller for each in ours) and [each.uid for each in ours] == wanted


def update_owners(claim: PersistentVolumeClaim, statefulset: StatefulSet, pod: Pod) -> None:
    """Make the owners what the policy says; others' references stay."""
    conflict = has_conflicting_controller(claim, statefulset, pod)
    references = [each for each in _references(claim) if _named(each, statefulset, pod) is None]
    owner = wanted_owner(statefulset, pod)
    if owner is not None and not conflict:
        references.append(controller_reference(owner))
    meta(claim).owner_references = references or None


def is_stale(claim: PersistentVolumeClaim, owner: Kind) -> bool:
    """Whether the claim belongs to an earlier object of this name; it will be collected soon."""
    return any(_is_reference_to(each, owner) and each.uid != uid_of(owner) for each in _references(claim))


def _references(claim: PersistentVolumeClaim) -> list[OwnerReference]:
    return meta(claim).owner_references or []


def _named(reference: OwnerReference, statefulset: StatefulSet, pod: Pod) -> Kind | None:
    for each in (statefulset, pod):
        if _is_reference_to(reference, each):
            return each
    return None


def _is_reference_to(reference: OwnerReference, owner: Kind) -> bool:
    resource = resource_of(type(owner))
    return (reference.api_version, reference.kind, reference.name) == (
        resource.api_version,
        resource.kind,
        name_of(owner),
    )
