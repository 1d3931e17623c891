"""Defaults for the kinds of resource/v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .. import times
from .v1 import (
    AllocationResult,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)

EXACT_COUNT: Final = "ExactCount"


def default_resource_claim(obj: ResourceClaim) -> None:
    """One device for each request."""
    if obj.spec is not None:
        _default_claim_spec(obj.spec)
    if obj.status is not None and obj.status.allocation is not None:
        _default_allocation(obj.status.allocation)


def default_resource_claim_template(obj: ResourceClaimTemplate) -> None:
    """As claims."""
    if obj.spec is not None and obj.spec.spec is not None:
        _default_claim_spec(obj.spec.spec)


def default_resource_slice(obj: ResourceSlice) -> None:
    """A taint counts from now on."""
    for device in (obj.spec and obj.spec.devices) or ():
        for taint in device.taints or ():
            if taint.time_added is None:
                taint.time_added = times.now()
        for mapping in (device.node_allocatable_resource_mappings or {}).values():
            if mapping.allocation_multiplier is None:
                mapping.allocation_multiplier = "1"


def _default_claim_spec(spec: ResourceClaimSpec) -> None:
    for request in (spec.devices and spec.devices.requests) or ():
        if request.exactly is not None:
            _default_request(request.exactly)
        for alternative in request.first_available or ():
            _default_request(alternative)


def _default_request(request: ExactDeviceRequest | DeviceSubRequest) -> None:
    if not request.allocation_mode:
        request.allocation_mode = EXACT_COUNT
    if request.allocation_mode == EXACT_COUNT and not request.count:
        request.count = 1
    _default_tolerations(request.tolerations)


def _default_allocation(allocation: AllocationResult) -> None:
    for result in (allocation.devices and allocation.devices.results) or ():
        _default_tolerations(result.tolerations)


def _default_tolerations(tolerations: list[DeviceToleration] | None) -> None:
    for toleration in tolerations or ():
        if not toleration.operator:
            toleration.operator = "Equal"


DEFAULTS: Final[dict[str, Callable[[Any], None]]] = {
    "ResourceClaim": default_resource_claim,
    "ResourceClaimTemplate": default_resource_claim_template,
    "ResourceSlice": default_resource_slice,
}
