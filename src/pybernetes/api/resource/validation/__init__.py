"""Validation of the kinds of resource/v1. Expressions that select devices are not compiled here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError
from .claimstatus import validate_resource_claim_status_update
from .deviceclass import validate_device_class, validate_device_class_update
from .resourceclaim import (
    validate_resource_claim,
    validate_resource_claim_template,
    validate_resource_claim_template_update,
    validate_resource_claim_update,
)
from .resourceslice import validate_resource_slice, validate_resource_slice_update

CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "DeviceClass": validate_device_class,
    "ResourceClaim": validate_resource_claim,
    "ResourceClaimTemplate": validate_resource_claim_template,
    "ResourceSlice": validate_resource_slice,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "DeviceClass": validate_device_class_update,
    "ResourceClaim": validate_resource_claim_update,
    "ResourceClaimTemplate": validate_resource_claim_template_update,
    "ResourceSlice": validate_resource_slice_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "ResourceClaim": validate_resource_claim_status_update,
}
