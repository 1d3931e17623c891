"""The ResourceClaims of a pod as the kubelet sees them. No IO; errors have upstream's words."""

from __future__ import annotations

from collections.abc import Iterator

from pybernetes.api.core.v1 import Container, Pod, PodResourceClaim
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resource.v1 import ResourceClaim
from pybernetes.client.keys import is_controlled_by, uid_of


class ClaimError(Exception):
    """A pod's claims cannot be prepared (yet)."""


def claim_name(pod: Pod, entry: PodResourceClaim) -> tuple[str | None, bool]:
    """The claim behind an entry (None: the pod needs none), and whether it was generated for the pod."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    meta = pod.metadata or ObjectMeta()
    if entry.resource_claim_template_name is None:
        raise ClaimError(
            f'pod "{meta.namespace}/{meta.name}", spec.resourceClaim "{entry.name}": '
            "none of the supported fields are set"
        )
    for status in (pod.status.resource_claim_statuses if pod.status else None) or ():
        if status.name == entry.name:
            return status.resource_claim_name, True
    raise ClaimError(f'pod "{meta.namespace}/{meta.name}": ResourceClaim not created yet')


def pod_claims(pod: Pod) -> Iterator[tuple[str, bool]]:
    """All claims of a pod: name, and whether it was generated for the pod; that for extended resources included."""
    for entry in (pod.spec.resource_claims if pod.spec else None) or ():
        name, generated = claim_name(pod, entry)
        if name is not None:
            yield name, generated
    extended = pod.status.extended_resource_claim_status if pod.status else None
    if extended is not None and extended.resource_claim_name:
        yield extended.resource_claim_name, False


def has_claims(pod: Pod) -> bool:
    """Whether a pod has claims."""
    extended = pod.status.extended_resource_claim_status if pod.status else None
    return bool((pod.spec and pod.spec.resource_claims) or extended)


def check(pod: Pod, claim: ResourceClaim, *, generated: bool) -> None:
    """`ClaimError` if the pod may not use a claim, or not yet."""
    meta, of = pod.metadata or ObjectMeta(), claim.metadata or ObjectMeta()
    if generated and not is_controlled_by(claim, pod):
        raise ClaimError(
            f"ResourceClaim {of.namespace}/{of.name} was not created for Pod {meta.namespace}/{meta.name} "
            "(Pod is not owner)"
        )
    reserved = (claim.status.reserved_for if claim.status else None) or ()
    if not any(each.uid == uid_of(pod) for each in reserved):
        raise ClaimError(f"pod {meta.name} ({meta.uid}) is not allowed to use ResourceClaim {of.name} ({of.uid})")
    if claim.status is None or claim.status.allocation is None:
        raise ClaimError(f"ResourceClaim {of.name}: not allocated")


def drivers(claim: ResourceClaim) -> list[str]:
    """The drivers of a claim's devices."""
    allocation = claim.status.allocation if claim.status else None
    results = (allocation.devices.results if allocation and allocation.devices else None) or ()
    return list(dict.fromkeys(each.driver or "" for each in results))


def container_claims(pod: Pod, container: Container) -> dict[str, list[str]]:
    """The claims that a container uses, with the names of their requests (empty: all of them)."""
    found: dict[str, list[str]] = {}
    entries = {each.name: each for each in (pod.spec.resource_claims if pod.spec else None) or ()}
    for used in (container.resources.claims if container.resources else None) or ():
        entry = entries.get(used.name)
        name = claim_name(pod, entry)[0] if entry is not None else None
        if name is not None:
            found.setdefault(name, []).append(used.request or "")
    extended = pod.status.extended_resource_claim_status if pod.status else None
    if extended is not None and extended.resource_claim_name:
        wanted = (container.resources.requests if container.resources else None) or {}
        for each in extended.request_mappings or ():
            if each.container_name == container.name and each.resource_name in wanted:
                found.setdefault(extended.resource_claim_name, []).append(each.request_name or "")
    return found
