"""Validation of PersistentVolumeClaims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ...equality import semantically_equal
from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ...gocompat.godiff import diff, in_key_order
from ...gocompat.goform import go_values
from ...meta.validation import (
    IMMUTABLE,
    validate_immutable,
    validate_label_selector,
    validate_object_meta,
    validate_object_meta_update,
)
from ...names import is_qualified_name, name_is_dns_subdomain
from ...quantity import Quantity, parse
from ..resourcenames import is_native
from ..v1.persistentvolumeclaim import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    VolumeResourceRequirements,
)
from ..v1.reference import TypedLocalObjectReference, TypedObjectReference
from .common import dns1123_label, dns1123_subdomain, validate_positive_quantity
from .persistentvolume import VOLUME_MODES, validate_access_modes
from .resources import validate_resource_quantity

STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""Where the class was before it was a field."""

_META: Final = Path("metadata")
_SPEC: Final = Path("spec")
_ZERO: Final = Quantity(0)
_RESIZE_STATUSES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def validate_persistent_volume_claim(obj: PersistentVolumeClaim) -> list[FieldError]:
    """Validate a new claim."""
    return _validate(obj)


def _validate(
    obj: PersistentVolumeClaim, *, invalid_values: bool = False, invalid_groups: bool = False
) -> list[FieldError]:
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain, _META)
    return errors + validate_persistent_volume_claim_spec(
        obj.spec or PersistentVolumeClaimSpec(), _SPEC, invalid_values=invalid_values, invalid_groups=invalid_groups
    )


def validate_persistent_volume_claim_spec(
    spec: PersistentVolumeClaimSpec, path: Path, *, invalid_values: bool = False, invalid_groups: bool = False
) -> list[FieldError]:
    """Validate the spec of a claim or of a claim template. Invalid parts may stay if they were there before."""
    errors: list[FieldError] = []
    if not spec.access_modes:
        errors.append(required(path.child("accessModes"), "at least 1 access mode is required"))
    errors += validate_label_selector(spec.selector, path.child("selector"), allow_invalid_values=invalid_values)
    errors += validate_access_modes(spec.access_modes, path.child("accessModes"))
    at = path.child("resources").key("storage")
    size = _storage(spec)
    if size is None:
        errors.append(required(at))
    else:
        errors += validate_positive_quantity(size, at) or validate_resource_quantity("storage", size, at)
    if spec.storage_class_name:
        at = path.child("storageClassName")
        errors += [invalid(at, spec.storage_class_name, each) for each in dns1123_subdomain(spec.storage_class_name)]
    if spec.volume_mode is not None and spec.volume_mode not in VOLUME_MODES:
        errors.append(not_supported(path.child("volumeMode"), spec.volume_mode, VOLUME_MODES))
    if spec.data_source is not None:
        errors += _validate_source(spec.data_source, path.child("dataSource"), invalid_groups)
    reference = spec.data_source_ref
    if reference is not None:
        errors += _validate_source(reference, path.child("dataSourceRef"), invalid_groups)
        if reference.namespace:
            at = path.child("dataSourceRef", "namespace")
            errors += [invalid(at, reference.namespace, each) for each in dns1123_label(reference.namespace)]
    errors += _validate_both_sources(spec, path)
    if spec.volume_attributes_class_name:
        at, name = path.child("volumeAttributesClassName"), spec.volume_attributes_class_name
        errors += [invalid(at, name, each) for each in dns1123_subdomain(name)]
    return errors


def _validate_source(
    source: TypedLocalObjectReference | TypedObjectReference, path: Path, invalid_groups: bool
) -> list[FieldError]:
    errors = [] if source.name else [required(path.child("name"))]
    if not source.kind:
        errors.append(required(path.child("kind")))
    group = source.api_group or ""
    if not group and source.kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, source.kind or "", detail))
    if group and not invalid_groups:
        errors += [invalid(path.child("apiGroup"), group, problem) for problem in dns1123_subdomain(group)]
    return errors


def _validate_both_sources(spec: PersistentVolumeClaimSpec, path: Path) -> list[FieldError]:
    source, reference = spec.data_source, spec.data_source_ref
    if source is None or reference is None:
        return []
    if reference.namespace:
        detail = "may not be specified when dataSourceRef.namespace is specified"
    elif all(getattr(source, name) == getattr(reference, name) for name in ("api_group", "kind", "name")):
        return []
    else:
        detail = "must match dataSourceRef"
    # Upstream prints the path itself, whose fields are not exported: an empty object.
    return [invalid(path, {}, detail)]


def _storage(spec: PersistentVolumeClaimSpec) -> Quantity | None:
    requests = (spec.resources and spec.resources.requests) or {}
    return parse(str(requests["storage"])) if "storage" in requests else None


# --- update


def validate_persistent_volume_claim_update(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> list[FieldError]:
    """A claim never changes what it asks for, but a bound one may ask for more, and for other attributes."""
    spec, before = new.spec or PersistentVolumeClaimSpec(), old.spec or PersistentVolumeClaimSpec()
    status = old.status or PersistentVolumeClaimStatus()
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    errors += _validate(
        new,
        invalid_values=bool(validate_label_selector(before.selector, _SPEC)),
        invalid_groups=any(
            each is not None and each.api_group is not None for each in (before.data_source, before.data_source_ref)
        ),
    )
    errors += _validate_storage_class_annotation(new, old)
    errors += _validate_unchanged(new, old)
    errors += _validate_size(spec, before, status)
    errors += validate_immutable(spec.volume_mode, before.volume_mode, Path("volumeMode"))
    if spec.volume_attributes_class_name != before.volume_attributes_class_name:
        current = status.current_volume_attributes_class_name
        if current is not None and not spec.volume_attributes_class_name:
            what = "nil" if spec.volume_attributes_class_name is None else "empty string"
            detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
            errors.append(forbidden(_SPEC.child("volumeAttributesClassName"), detail))
    return errors


def _annotation(obj: PersistentVolumeClaim) -> str | None:
    return ((obj.metadata and obj.metadata.annotations) or {}).get(STORAGE_CLASS)


def _moves_class_to_field(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> bool:
    """The class moves from the annotation to the field."""
    known = _annotation(old)
    name = new.spec.storage_class_name if new.spec else None
    had = old.spec.storage_class_name if old.spec else None
    return known is not None and had is None and name == known and _annotation(new) in (None, known)


def _validate_storage_class_annotation(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> list[FieldError]:
    mine, before = _annotation(new) or "", _annotation(old) or ""
    if mine == before or _moves_class_to_field(new, old):
        return []
    return [invalid(_META.child("annotations", STORAGE_CLASS), mine, IMMUTABLE)]


def _validate_unchanged(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> list[FieldError]:
    """Compare copies in which everything that may change is made the same."""
    mine = msgspec.structs.replace(new.spec or PersistentVolumeClaimSpec())
    before = msgspec.structs.replace(old.spec or PersistentVolumeClaimSpec())
    if not before.volume_name:
        before.volume_name = mine.volume_name
    known = _annotation(old)
    gets_class = before.storage_class_name is None and known in (None, mine.storage_class_name)
    if gets_class or _moves_class_to_field(new, old):
        mine.storage_class_name = None
    if new.status is not None and new.status.phase == "Bound":
        mine.volume_attributes_class_name = before.volume_attributes_class_name
        if mine.resources is not None and mine.resources.requests is not None:
            size = ((before.resources and before.resources.requests) or {}).get("storage", "0")
            mine.resources = msgspec.structs.replace(
                mine.resources, requests={**mine.resources.requests, "storage": size}
            )
    if semantically_equal(mine, before):
        return []
    detail = (
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
        + diff(_form(before), _form(mine))
    )
    return [forbidden(_SPEC, detail)]


def _form(spec: PersistentVolumeClaimSpec) -> dict[str, Any]:
    """The spec as upstream's internal type prints it."""
    resources = spec.resources or VolumeResourceRequirements()
    return {
        "AccessModes": spec.access_modes,
        "Selector": go_values(spec.selector),
        "Resources": {"Limits": in_key_order(resources.limits), "Requests": in_key_order(resources.requests)},
        "VolumeName": spec.volume_name or "",
        "StorageClassName": spec.storage_class_name,
        "VolumeMode": spec.volume_mode,
        "DataSource": go_values(spec.data_source),
        "DataSourceRef": go_values(spec.data_source_ref),
        "VolumeAttributesClassName": spec.volume_attributes_class_name,
    }


def _validate_size(
    spec: PersistentVolumeClaimSpec, old: PersistentVolumeClaimSpec, status: PersistentVolumeClaimStatus
) -> list[FieldError]:
    """A request that was too large may be taken back, down to what the claim really has."""
    new, before = _storage(spec) or _ZERO, _storage(old) or _ZERO
    capacity = parse(str((status.capacity or {}).get("storage", "0")))
    if new < before and new <= capacity:
        at = _SPEC.child("resources", "requests", "storage")
        return [forbidden(at, "field can not be less than status.capacity")]
    return []


def validate_persistent_volume_claim_status_update(
    new: PersistentVolumeClaim, old: PersistentVolumeClaim
) -> list[FieldError]:
    """Amounts, and how far a resize is."""
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    status = new.status or PersistentVolumeClaimStatus()
    if not (new.spec and new.spec.access_modes):
        errors.append(required(Path("Spec", "accessModes")))
    path = Path("status")
    for name, value in (status.capacity or {}).items():
        errors += _validate_amount(value, path.child("capacity").key(name))
    at = path.child("allocatedResourceStatuses")
    for name, state in (status.allocated_resource_statuses or {}).items():
        errors += _validate_resource_key(name, at)
        if state not in _RESIZE_STATUSES:
            errors.append(not_supported(at, name, sorted(_RESIZE_STATUSES)))
    at = path.child("allocatedResources")
    for name, value in (status.allocated_resources or {}).items():
        errors += _validate_resource_key(name, at) or (
            _validate_amount(value, at.key(name))
            or validate_resource_quantity("storage", parse(str(value)), at.key(name))
        )
    return errors


def _validate_amount(value: Any, path: Path) -> list[FieldError]:
    amount = parse(str(value)).value()
    return [invalid(path, amount, "must be a valid resource quantity")] if amount < 0 else []


def _validate_resource_key(name: str, path: Path) -> list[FieldError]:
    errors = [invalid(path, name, problem) for problem in is_qualified_name(name)]
    if not errors and is_native(name) and name != "storage":
        errors.append(not_supported(path, name, ("storage",)))
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {
    "PersistentVolumeClaim": validate_persistent_volume_claim,
}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "PersistentVolumeClaim": validate_persistent_volume_claim_update,
}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "PersistentVolumeClaim": validate_persistent_volume_claim_status_update,
}
