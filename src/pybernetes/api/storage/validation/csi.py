"""Validates the objects of CSI drivers: CSIDrivers, CSINodes, CSIStorageCapacities."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ...core.validation.common import validate_csi_driver_name, validate_nonnegative_quantity
from ...equality import semantically_equal
from ...field import FieldError, Path, duplicate, invalid, not_supported, required
from ...gocompat.goform import go_form
from ...meta.validation import (
    IMMUTABLE,
    has_invalid_label_value,
    validate_label_selector,
    validate_not_negative,
    validate_object_meta,
    validate_object_meta_update,
)
from ...names import is_qualified_name, name_is_dns_subdomain
from ...quantity import parse
from ..v1 import CSIDriver, CSIDriverSpec, CSINode, CSINodeDriver, CSIStorageCapacity, TokenRequest

FS_GROUP_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
LIFECYCLE_MODES: Final = ("Persistent", "Ephemeral")
MAX_NODE_ID: Final = 256
MIN_UPDATE_PERIOD: Final = 10
MIN_TOKEN_SECONDS: Final = 600
MAX_TOKEN_SECONDS: Final = 1 << 32

_SPEC = Path("spec")


def validate_csi_driver(obj: CSIDriver) -> list[FieldError]:
    """Validate a new CSIDriver."""
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain)
    return errors + _validate_driver_spec(obj.spec or CSIDriverSpec())


def validate_csi_driver_update(new: CSIDriver, old: CSIDriver) -> list[FieldError]:
    """Whether volumes are attached, and how long they live, never changes."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    spec, before = new.spec or CSIDriverSpec(), old.spec or CSIDriverSpec()
    errors += _validate_driver_spec(spec)
    if spec.attach_required != before.attach_required:
        errors.append(invalid(_SPEC.child("attachedRequired"), spec.attach_required, IMMUTABLE))
    if spec.volume_lifecycle_modes != before.volume_lifecycle_modes:
        errors.append(invalid(_SPEC.child("volumeLifecycleModes"), spec.volume_lifecycle_modes, IMMUTABLE))
    return errors


def _validate_driver_spec(spec: CSIDriverSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    policy = spec.fs_group_policy
    if policy is not None and policy not in FS_GROUP_POLICIES:
        errors.append(not_supported(_SPEC.child("fsGroupPolicy"), policy, FS_GROUP_POLICIES))
    errors += _validate_token_requests(spec.token_requests or [], _SPEC.child("tokenRequests"))
    for mode in spec.volume_lifecycle_modes or ():
        if mode not in LIFECYCLE_MODES:
            errors.append(not_supported(_SPEC.child("volumeLifecycleModes"), mode, LIFECYCLE_MODES))
    period = spec.node_allocatable_update_period_seconds
    if period is not None and period < MIN_UPDATE_PERIOD:
        detail = "must be greater than or equal to 10 seconds"
        errors.append(invalid(_SPEC.child("nodeAllocatableUpdatePeriodSeconds"), period, detail))
    secrets = spec.service_account_token_in_secrets
    if secrets is not None and not spec.token_requests:
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid(_SPEC.child("serviceAccountTokenInSecrets"), secrets, detail))
    return errors


def _validate_token_requests(requests: list[TokenRequest], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    audiences: set[str] = set()
    for index, request in enumerate(requests):
        audience, seconds = request.audience or "", request.expiration_seconds
        if audience in audiences:
            errors.append(duplicate(path.index(index).child("audience"), audience))
            continue
        audiences.add(audience)
        at = path.index(index).child("expirationSeconds")
        if seconds is not None and seconds < MIN_TOKEN_SECONDS:
            errors.append(invalid(at, seconds, "may not specify a duration less than 10 minutes"))
        if seconds is not None and seconds > MAX_TOKEN_SECONDS:
            errors.append(invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"))
    return errors


def validate_csi_node(obj: CSINode) -> list[FieldError]:
    """Validate a new CSINode."""
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain)
    drivers = _SPEC.child("drivers")
    seen: set[str] = set()
    for index, driver in enumerate(_drivers(obj)):
        errors += _validate_node_driver(driver, seen, drivers.index(index))
    return errors


def validate_csi_node_update(new: CSINode, old: CSINode) -> list[FieldError]:
    """Drivers come and go; of one that stays only the number of volumes may change."""
    errors = validate_csi_node(new)
    before = {driver.name: replace(driver, allocatable=None) for driver in _drivers(old)}
    for driver in _drivers(new):
        alone = replace(driver, allocatable=None)
        if driver.name in before and not semantically_equal(alone, before[driver.name]):
            errors.append(invalid(_SPEC.child("drivers"), go_form(alone), IMMUTABLE))
    return errors


def _drivers(obj: CSINode) -> list[CSINodeDriver]:
    return (obj.spec and obj.spec.drivers) or []


def _validate_node_driver(driver: CSINodeDriver, seen: set[str], path: Path) -> list[FieldError]:
    errors = validate_csi_driver_name(driver.name, path.child("name"))
    node_id, name = driver.node_id or "", driver.name or ""
    if not node_id:
        errors.append(required(path.child("nodeID")))
    if len(node_id.encode()) > MAX_NODE_ID:
        errors.append(invalid(path.child("nodeID"), node_id, f"must be {MAX_NODE_ID} characters or less"))
    if driver.allocatable is not None:
        errors += validate_not_negative(driver.allocatable.count, path.child("allocatable", "count"))
    if name in seen:
        errors.append(duplicate(path.child("name"), name))
    seen.add(name)
    keys: set[str] = set()
    for key in driver.topology_keys or ():
        if not key:
            errors.append(required(path))
        if key in keys:
            errors.append(duplicate(path, key))
        keys.add(key)
        errors += [invalid(path, key, problem) for problem in is_qualified_name(key)]
    return errors


def validate_csi_storage_capacity(obj: CSIStorageCapacity) -> list[FieldError]:
    """Validate a new CSIStorageCapacity."""
    return _validate_capacity(obj, invalid_values=False)


def validate_csi_storage_capacity_update(new: CSIStorageCapacity, old: CSIStorageCapacity) -> list[FieldError]:
    """Validate an update: the class and topology of the capacity are immutable."""
    errors = _validate_capacity(new, invalid_values=has_invalid_label_value(old.node_topology))
    errors += validate_object_meta_update(new.metadata, old.metadata)
    if not semantically_equal(new.node_topology, old.node_topology):
        errors.append(invalid(Path("nodeTopology"), new.node_topology, IMMUTABLE))
    if (new.storage_class_name or "") != (old.storage_class_name or ""):
        errors.append(invalid(Path("storageClassName"), new.storage_class_name or "", IMMUTABLE))
    return errors


def _validate_capacity(obj: CSIStorageCapacity, *, invalid_values: bool) -> list[FieldError]:
    errors = validate_object_meta(obj.metadata, True, name_is_dns_subdomain)
    errors += validate_label_selector(obj.node_topology, Path("nodeTopology"), allow_invalid_values=invalid_values)
    name = obj.storage_class_name or ""
    errors += [invalid(Path("storageClassName"), name, problem) for problem in name_is_dns_subdomain(name, False)]
    if obj.capacity is not None:
        errors += validate_nonnegative_quantity(parse(str(obj.capacity)), Path("capacity"))
    return errors
