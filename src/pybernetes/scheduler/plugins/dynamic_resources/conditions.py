"""Binding conditions: devices that have to be made ready for their node before the pod may be bound."""

from __future__ import annotations

from pybernetes.api.resource.v1 import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim
from pybernetes.api.times import parse_time

from .claims import allocation_of


class DeviceBindingFailed(Exception):
    """A device says that it will not become ready."""


def has_conditions(claim: ResourceClaim) -> bool:
    """Whether one of its devices has to become ready first."""
    return any(each.binding_conditions for each in _results(claim))


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all of its devices are ready. Raises `DeviceBindingFailed`."""
    if allocation_of(claim) is None:
        return False
    for each in _results(claim):
        if not each.binding_conditions:
            continue
        status = _status(claim, each)
        if status is None:
            return False
        true = {one.type: one for one in status.conditions or () if one.status == "True"}
        for name in each.binding_failure_conditions or ():
            if name in true:
                failed = true[name]
                metadata = claim.metadata
                raise DeviceBindingFailed(
                    f"device binding failed: claim={metadata.name if metadata else ''}, "
                    f'reason={failed.reason or ""}, message="{failed.message or ""}"'
                )
        if any(name not in true for name in each.binding_conditions):
            return False
    return True


def is_late(claim: ResourceClaim, now: float, timeout: float) -> bool:
    """Whether its devices were waited for long enough."""
    allocation = allocation_of(claim)
    if allocation is None or allocation.allocation_timestamp is None or not has_conditions(claim):
        return False
    return parse_time(allocation.allocation_timestamp) + timeout < now


def _results(claim: ResourceClaim) -> list[DeviceRequestAllocationResult]:
    allocation = allocation_of(claim)
    return (allocation.devices.results if allocation and allocation.devices else None) or []


def _status(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    for each in (claim.status.devices if claim.status else None) or ():
        if (each.driver, each.pool, each.device) == (result.driver, result.pool, result.device):
            return each
    return None
