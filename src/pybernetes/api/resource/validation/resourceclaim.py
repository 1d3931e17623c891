"""ResourceClaims and the templates they are made from: which devices a pod needs. Once made, they do not change."""

from __future__ import annotations

from typing import Final

from ...core.validation.common import validate_dns1123_label, validate_dns1123_subdomain
from ...equality import semantically_equal
from ...field import FieldError, Path, invalid, not_supported, required
from ...gocompat.goform import go_form
from ...meta.validation import (
    IMMUTABLE,
    validate_label_name,
    validate_object_meta,
    validate_object_meta_update,
    validate_template_meta,
)
from ...names import name_is_dns_subdomain
from ..v1 import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from .shared import (
    RequestNames,
    same,
    validate_fully_qualified_name,
    validate_label_value,
    validate_list,
    validate_opaque,
    validate_selectors,
    validate_set,
)

MAX_REQUESTS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_CONFIG: Final = 32
MAX_ALTERNATIVES: Final = 8
ALLOCATION_MODES: Final = ("All", "ExactCount")
TOLERATION_OPERATORS: Final = ("Equal", "Exists")
TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")

_SPEC = Path("spec")


def validate_resource_claim(obj: ResourceClaim) -> list[FieldError]:
    """Validate a new ResourceClaim."""
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain)
    return errors + _validate_spec(obj.spec or ResourceClaimSpec(), _SPEC)


def validate_resource_claim_update(new: ResourceClaim, old: ResourceClaim) -> list[FieldError]:
    """The spec never changes."""
    errors = validate_object_meta(new.metadata, True, name_is_dns_subdomain)
    errors += validate_object_meta_update(new.metadata, old.metadata)
    spec = new.spec or ResourceClaimSpec()
    if not semantically_equal(spec, old.spec):
        errors.append(invalid(_SPEC, go_form(spec), IMMUTABLE))
    return errors


def validate_resource_claim_template(obj: ResourceClaimTemplate) -> list[FieldError]:
    """Validate a new ResourceClaimTemplate."""
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain)
    spec = obj.spec or ResourceClaimTemplateSpec()
    errors += validate_template_meta(spec.metadata, _SPEC.child("metadata"))
    return errors + _validate_spec(spec.spec or ResourceClaimSpec(), _SPEC.child("spec"))


def validate_resource_claim_template_update(new: ResourceClaimTemplate, old: ResourceClaimTemplate) -> list[FieldError]:
    """The spec never changes."""
    errors = validate_resource_claim_template(new) + validate_object_meta_update(new.metadata, old.metadata)
    spec = new.spec or ResourceClaimTemplateSpec()
    if not semantically_equal(spec, old.spec):
        errors.append(invalid(_SPEC, go_form(spec), IMMUTABLE))
    return errors


def request_names(claim: DeviceClaim | None) -> RequestNames:
    """The names that constraints, configuration and results may refer to."""
    found = RequestNames()
    for request in (claim and claim.requests) or ():
        found.add(request.name or "", [each.name or "" for each in request.first_available or ()])
    return found


def _validate_spec(spec: ResourceClaimSpec, path: Path) -> list[FieldError]:
    claim, at = spec.devices or DeviceClaim(), path.child("devices")
    known = request_names(claim)
    errors = validate_set(
        claim.requests, MAX_REQUESTS, _validate_request, lambda each: each.name or "", at.child("requests")
    )
    errors += validate_list(
        claim.constraints,
        MAX_CONSTRAINTS,
        lambda each, path: _validate_constraint(each, path, known),
        at.child("constraints"),
    )
    return errors + validate_list(
        claim.config, MAX_CONFIG, lambda each, path: _validate_config(each, path, known), at.child("config")
    )


def _validate_request(request: DeviceRequest, path: Path) -> list[FieldError]:
    errors = validate_dns1123_label(request.name or "", path.child("name"))
    one = "exactly one of `exactly` or `firstAvailable` is required"
    if request.exactly is not None and request.first_available:
        errors.append(invalid(path, None, f"{one}, but multiple fields are set"))
    elif request.exactly is not None:
        errors += _validate_exact(request.exactly, path.child("exactly"))
    elif request.first_available:
        errors += validate_set(
            request.first_available,
            MAX_ALTERNATIVES,
            _validate_alternative,
            lambda each: each.name or "",
            path.child("firstAvailable"),
        )
    else:
        errors.append(required(path, one))
    return errors


def _validate_alternative(request: DeviceSubRequest, path: Path) -> list[FieldError]:
    return validate_dns1123_label(request.name or "", path.child("name")) + _validate_exact(request, path)


def _validate_exact(request: ExactDeviceRequest | DeviceSubRequest, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not request.device_class_name:
        errors.append(required(path.child("deviceClassName")))
    else:
        errors += validate_dns1123_subdomain(request.device_class_name, path.child("deviceClassName"))
    errors += validate_selectors(request.selectors, path.child("selectors"))
    mode, count = request.allocation_mode or "", request.count or 0
    if mode == "All" and count != 0:
        detail = "must not be specified when allocationMode is 'All'"
        errors.append(invalid(path.child("count"), count, detail))
    elif mode == "ExactCount" and count <= 0:
        errors.append(invalid(path.child("count"), count, "must be greater than zero"))
    elif mode not in ALLOCATION_MODES:
        errors.append(not_supported(path.child("allocationMode"), mode, ALLOCATION_MODES))
    for index, toleration in enumerate(request.tolerations or ()):
        errors += _validate_toleration(toleration, path.child("tolerations").index(index))
    return errors


def _validate_toleration(toleration: DeviceToleration, path: Path) -> list[FieldError]:
    errors = validate_label_name(toleration.key, path.child("key")) if toleration.key else []
    operator, value = toleration.operator or "", toleration.value or ""
    if operator == "Exists" and value:
        errors.append(invalid(path.child("value"), value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        errors += validate_label_value(value, path.child("value"))
    elif not operator:
        errors.append(required(path.child("operator")))
    elif operator not in TOLERATION_OPERATORS:
        errors.append(not_supported(path.child("operator"), operator, TOLERATION_OPERATORS))
    if toleration.effect and toleration.effect not in TAINT_EFFECTS:
        errors.append(not_supported(path.child("effect"), toleration.effect, TAINT_EFFECTS))
    return errors


def _validate_constraint(constraint: DeviceConstraint, path: Path, known: RequestNames) -> list[FieldError]:
    errors = validate_set(constraint.requests, MAX_REQUESTS, known.validate, same, path.child("requests"))
    if constraint.match_attribute is not None:
        errors += validate_fully_qualified_name(constraint.match_attribute, path.child("matchAttribute"))
    elif constraint.distinct_attribute is not None:
        errors += validate_fully_qualified_name(constraint.distinct_attribute, path.child("distinctAttribute"))
    else:  # the words are upstream's
        detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        errors.append(required(path, detail))
    return errors


def _validate_config(config: DeviceClaimConfiguration, path: Path, known: RequestNames) -> list[FieldError]:
    errors = validate_set(config.requests, MAX_REQUESTS, known.validate, same, path.child("requests"))
    return errors + validate_opaque(config.opaque, path.child("opaque"))
