"""The ResourceClaims of pods, and which devices are taken by whom.

Devices are taken by claims that have an allocation, and by claims to which this scheduler has just given one: those are
`pending` from the moment the pod is reserved until the informer has the updated claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pybernetes.api.core.v1 import Pod
from pybernetes.api.quantity import parse
from pybernetes.api.resource.v1 import AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from pybernetes.client.informer import Informer
from pybernetes.client.keys import controller_of, uid_of

from .allocator import Allocated
from .capacity import Amounts
from .pools import DeviceID


class ClaimsMissing(Exception):
    """The pod's claims are not, or not yet, what they must be."""


def pod_claims(pod: Pod, lookup: Callable[[str], ResourceClaim | None]) -> list[ResourceClaim]:
    """The claims that a pod names and those made for it. Raises `ClaimsMissing`."""
    metadata = pod.metadata
    who = f'pod "{metadata.namespace}/{metadata.name}"' if metadata else "pod"
    found = []
    for entry in (pod.spec.resource_claims if pod.spec else None) or ():
        made = entry.resource_claim_name is None
        name = entry.resource_claim_name
        if made:
            if entry.resource_claim_template_name is None:
                raise ClaimsMissing(f'{who}, spec.resourceClaim "{entry.name}": none of the supported fields are set')
            statuses = (pod.status.resource_claim_statuses if pod.status else None) or ()
            status = next((each for each in statuses if each.name == entry.name), None)
            if status is None:
                raise ClaimsMissing(f"{who}: ResourceClaim not created yet")
            name = status.resource_claim_name
        if name is None:
            continue  # it turned out that none was needed
        claim = lookup(name)
        if claim is None:
            namespace = metadata.namespace if metadata else ""
            raise ClaimsMissing(f'could not find ResourceClaim "{namespace}/{name}"')
        if claim.metadata is not None and claim.metadata.deletion_timestamp is not None:
            raise ClaimsMissing(f'resourceclaim "{name}" is being deleted')
        if made and not _is_made_for(claim, pod):
            raise ClaimsMissing(
                f"ResourceClaim {_key(claim)} was not created for Pod "
                f"{metadata.namespace if metadata else ''}/{metadata.name if metadata else ''} (Pod is not owner)"
            )
        found.append(claim)
    return found


def allocation_of(claim: ResourceClaim) -> AllocationResult | None:
    """The allocation of the claim."""
    return claim.status.allocation if claim.status else None


def is_reserved_for(claim: ResourceClaim, pod_uid: str) -> bool:
    """Whether the pod is one of those that use the claim."""
    return any(each.uid == pod_uid for each in (claim.status.reserved_for if claim.status else None) or ())


class Devices:
    """Follows claims, and sums up which devices they take."""

    def __init__(self, claims: Informer[ResourceClaim]) -> None:
        self.pending: dict[str, AllocationResult] = {}
        """By the claim's uid."""
        self._alone: dict[DeviceID, int] = {}
        self._shared: dict[DeviceID, dict[tuple[str, str], Amounts]] = {}
        """By device, and by claim and share."""
        claims.add_handler(self._added, self._updated, self._deleted)

    def allocated(self) -> Allocated:
        """Which devices are taken now."""
        found = Allocated(set(self._alone))
        for device, shares in self._shared.items():
            for amounts in shares.values():
                _add(found.capacity.setdefault(device, {}), amounts)
        for allocation in self.pending.values():
            for each in _results(allocation):
                if each.share_id is None:
                    found.devices.add(_id(each))
                else:
                    _add(found.capacity.setdefault(_id(each), {}), _amounts(each))
        return found

    def _added(self, claim: ResourceClaim) -> None:
        allocation = allocation_of(claim)
        if allocation is not None:
            self.pending.pop(uid_of(claim), None)
            self._count(claim, allocation, 1)

    def _updated(self, old: ResourceClaim, new: ResourceClaim) -> None:
        if old.status != new.status:
            self._deleted(old)
            self._added(new)

    def _deleted(self, claim: ResourceClaim) -> None:
        allocation = allocation_of(claim)
        if allocation is not None:
            self._count(claim, allocation, -1)

    def _count(self, claim: ResourceClaim, allocation: AllocationResult, by: int) -> None:
        for each in _results(allocation):
            device = _id(each)
            if each.share_id is None:
                number = self._alone.get(device, 0) + by
                if number:
                    self._alone[device] = number
                else:
                    del self._alone[device]
                continue
            shares = self._shared.setdefault(device, {})
            key = (uid_of(claim), each.share_id)
            if by > 0:
                shares[key] = _amounts(each)
            else:
                shares.pop(key, None)
                if not shares:
                    del self._shared[device]


def _results(allocation: AllocationResult) -> Iterator[DeviceRequestAllocationResult]:
    """Those that take a device; access for administrators takes none."""
    for each in (allocation.devices.results if allocation.devices else None) or ():
        if not each.admin_access:
            yield each


def _id(result: DeviceRequestAllocationResult) -> DeviceID:
    return DeviceID(result.driver or "", result.pool or "", result.device or "")


def _amounts(result: DeviceRequestAllocationResult) -> Amounts:
    return {name: parse(str(value)) for name, value in (result.consumed_capacity or {}).items()}


def _add(into: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        into[name] = into[name] + value if name in into else value


def _is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    owner = controller_of(claim)
    return owner is not None and owner.uid == uid_of(pod)


def _key(claim: ResourceClaim) -> str:
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata else ""
