"""Which ResourceClaims a pod has and needs, and who still uses a claim. No IO."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from pybernetes.api.core.v1 import Pod, PodResourceClaim, PodResourceClaimStatus
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference
from pybernetes.api.resource.v1 import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from pybernetes.client.keys import copy, is_controlled_by, uid_of

from ..common.meta import annotations_of, is_deleting, meta, name_of
from ..common.pods import is_terminal, node_of

POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
MAX_BASE: Final = 57  # a name has 63 characters, and the server appends five after a dash


class ClaimError(Exception):
    """A pod's entry that cannot be followed."""


@dataclass(frozen=True, slots=True)
class ClaimName:
    """The claim behind an entry of a pod: by its name, none because none is needed, or not made yet."""

    name: str | None
    made: bool = True
    generated: bool = False
    """Made for the pod, so a claim of that name that is not the pod's is another one."""


def entries(pod: Pod) -> list[PodResourceClaim]:
    """The pod's resource claims."""
    return (pod.spec.resource_claims if pod.spec else None) or []


def statuses(pod: Pod) -> list[PodResourceClaimStatus]:
    """The status of the pod's resource claims."""
    return (pod.status.resource_claim_statuses if pod.status else None) or []


def claim_name(pod: Pod, entry: PodResourceClaim) -> ClaimName:
    """The claim behind an entry; `ClaimError` if the entry says nothing that we know."""
    if entry.resource_claim_name is not None:
        return ClaimName(entry.resource_claim_name)
    if entry.resource_claim_template_name is None:
        raise ClaimError(
            f'pod "{meta(pod).namespace}/{name_of(pod)}", spec.resourceClaim "{entry.name}": '
            "none of the supported fields are set"
        )
    for status in statuses(pod):
        if status.name == entry.name:
            return ClaimName(status.resource_claim_name, generated=True)
    return ClaimName(None, made=False)


def claim_names(pod: Pod) -> Iterator[str]:
    """The names of all claims that the pod has, those for extended resources included."""
    for entry in entries(pod):
        if entry.resource_claim_name is not None or entry.resource_claim_template_name is not None:
            found = claim_name(pod, entry)
            if found.name:
                yield found.name
    extended = pod.status.extended_resource_claim_status if pod.status else None
    if extended is not None and extended.resource_claim_name:
        yield extended.resource_claim_name


def is_done(pod: Pod) -> bool:
    """Whether the pod will never use its claims (again)."""
    return is_terminal(pod) or (is_deleting(pod) and not node_of(pod))


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the pod is one of those for whom the claim is reserved."""
    return any(each.uid == uid_of(pod) for each in reservations(claim))


def is_allocated(claim: ResourceClaim) -> bool:
    """Whether devices were chosen for the claim."""
    return claim.status is not None and claim.status.allocation is not None


def reservations(claim: ResourceClaim) -> list[ResourceClaimConsumerReference]:
    """Those for whom the claim is reserved."""
    return (claim.status.reserved_for if claim.status else None) or []


def needs_work(pod: Pod, claim: Callable[[str], ResourceClaim | None]) -> bool:
    """Whether something is to be done for a pod: a claim to be made, or reserved because no scheduler will do it."""
    if is_deleting(pod) or is_done(pod):  # what would be made for one that has ended would be deleted at once
        return False
    for entry in entries(pod):
        try:
            found = claim_name(pod, entry)
        except ClaimError:
            return True
        if not found.made:
            return True
        if found.name is None:
            continue
        existing = claim(found.name)
        if existing is None:
            if entry.resource_claim_template_name is not None:
                return True
            continue  # the user's to make
        if found.generated and not is_controlled_by(existing, pod):
            continue  # blocks the name until it is deleted
        if node_of(pod) and is_allocated(existing) and not is_reserved_for(existing, pod):
            return True
    return False


def base_name(pod: str, entry: str) -> str:
    """The `generateName` of a claim: something of both names is left when they are long."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= MAX_BASE:
        return whole
    return f"{pod[: len(pod) * MAX_BASE // len(whole)]}-{entry[: len(entry) * MAX_BASE // len(whole)]}"


def from_template(pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    """The claim to be made for an entry of a pod. It goes with its pod."""
    wanted = copy(template).spec
    labels = wanted.metadata.labels if wanted and wanted.metadata else None
    annotations = (wanted.metadata.annotations if wanted and wanted.metadata else None) or {}
    owner = OwnerReference(api_version="v1", kind="Pod", name=name_of(pod), uid=uid_of(pod), controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            generate_name=base_name(name_of(pod), entry.name or ""),
            namespace=meta(pod).namespace,
            labels=labels,
            annotations={**annotations, POD_CLAIM_ANNOTATION: entry.name or ""},
            owner_references=[owner],
        ),
        spec=wanted.spec if wanted else None,
    )


def is_for_entry(claim: ResourceClaim, entry: PodResourceClaim) -> bool:
    """Whether a claim of the pod was made for this entry."""
    return annotations_of(claim).get(POD_CLAIM_ANNOTATION) == entry.name


def wants_admin_access(claim: ResourceClaim) -> bool:
    """Whether a request of the claim is for devices that others use too."""
    devices = claim.spec.devices if claim.spec else None
    return any(each.exactly and each.exactly.admin_access for each in (devices.requests if devices else None) or ())


def reserved(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    """The claim with a reservation for a pod."""
    changed = copy(claim)
    status = changed.status = changed.status or ResourceClaimStatus()
    consumer = ResourceClaimConsumerReference(resource="pods", name=name_of(pod), uid=uid_of(pod))
    status.reserved_for = [*(status.reserved_for or ()), consumer]
    return changed


def has_finalizer(claim: ResourceClaim) -> bool:
    """Whether the claim may not go while it is allocated."""
    return FINALIZER in (meta(claim).finalizers or ())


def without_finalizer(claim: ResourceClaim) -> ResourceClaim:
    """The claim free to go."""
    changed = copy(claim)
    meta(changed).finalizers = [each for each in meta(claim).finalizers or () if each != FINALIZER] or None
    return changed


def released(claim: ResourceClaim, remaining: list[ResourceClaimConsumerReference]) -> ResourceClaim:
    """The claim with fewer reservations. When the last one goes, so do the devices: others may use them now."""
    changed = copy(claim)
    assert changed.status is not None
    changed.status.reserved_for = remaining or None
    if not remaining and has_finalizer(claim):
        changed.status.allocation = None
    return changed


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """The pod for which the claim was made."""
    for owner in meta(claim).owner_references or ():
        if owner.controller and owner.api_version == "v1" and owner.kind == "Pod":
            return owner
    return None
