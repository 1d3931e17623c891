"""StorageClasses and VolumeAttributesClasses: names for what a driver can do, which do not change."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ...core.v1.affinity import TopologySelectorTerm
from ...field import (
    MAX_REPEATED,
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    repeated,
    required,
    too_long,
)
from ...meta.validation import (
    IMMUTABLE,
    validate_label_name,
    validate_object_meta,
    validate_object_meta_update,
)
from ...names import is_qualified_name, name_is_dns_subdomain
from ..v1 import StorageClass, VolumeAttributesClass

MAX_PARAMETERS: Final = 512
MAX_PARAMETERS_BYTES: Final = 256 * 1024
RECLAIM_POLICIES: Final = ("Delete", "Retain")
BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")


def validate_storage_class(obj: StorageClass) -> list[FieldError]:
    """Validate a new StorageClass."""
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain)
    errors += _validate_provisioner(obj.provisioner, Path("provisioner"))
    errors += _validate_parameters(obj.parameters, Path("parameters"))
    policy, mode = obj.reclaim_policy, obj.volume_binding_mode
    if policy and policy not in RECLAIM_POLICIES:
        errors.append(not_supported(Path("reclaimPolicy"), policy, RECLAIM_POLICIES))
    if mode is None:
        errors.append(required(Path("volumeBindingMode")))
    elif mode not in BINDING_MODES:
        errors.append(not_supported(Path("volumeBindingMode"), mode, BINDING_MODES))
    return errors + _validate_topologies(obj.allowed_topologies or [], Path("allowedTopologies"))


def validate_storage_class_update(new: StorageClass, old: StorageClass) -> list[FieldError]:
    """Validate an update: provisioner, parameters and the like are immutable."""
    errors = validate_storage_class(new) + validate_object_meta_update(new.metadata, old.metadata)
    if (new.parameters or {}) != (old.parameters or {}):
        errors.append(invalid(Path("parameters"), new.parameters, IMMUTABLE))
    if (new.provisioner or "") != (old.provisioner or ""):
        errors.append(invalid(Path("provisioner"), new.provisioner or "", IMMUTABLE))
    if new.reclaim_policy != old.reclaim_policy:
        errors.append(invalid(Path("reclaimPolicy"), new.reclaim_policy, IMMUTABLE))
    if new.volume_binding_mode != old.volume_binding_mode:
        errors.append(invalid(Path("volumeBindingMode"), new.volume_binding_mode, IMMUTABLE))
    return errors


def validate_volume_attributes_class(obj: VolumeAttributesClass) -> list[FieldError]:
    """Validate a new VolumeAttributesClass."""
    errors = validate_object_meta(obj.metadata, False, name_is_dns_subdomain)
    errors += _validate_provisioner(obj.driver_name, Path("driverName"))
    errors += _validate_parameters(obj.parameters, Path("parameters"))
    if not obj.parameters:
        errors.append(required(Path("parameters"), "must contain at least one key/value pair"))
    return errors


def validate_volume_attributes_class_update(new: VolumeAttributesClass, old: VolumeAttributesClass) -> list[FieldError]:
    """The driver and its parameters never change."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    if (new.driver_name or "") != (old.driver_name or ""):
        errors.append(forbidden(Path("driverName"), "updates to driverName are forbidden."))
    if new.parameters != old.parameters:
        errors.append(forbidden(Path("parameters"), "updates to parameters are forbidden."))
    return errors + validate_volume_attributes_class(new)


def _validate_provisioner(name: str | None, path: Path) -> list[FieldError]:
    if not name:
        return [required(path)]
    return [invalid(path, name.lower(), problem) for problem in is_qualified_name(name.lower())]


def _validate_parameters(parameters: dict[str, str] | None, path: Path) -> list[FieldError]:
    if not parameters:
        return []
    if len(parameters) > MAX_PARAMETERS:
        return [too_long(path, "", MAX_PARAMETERS)]
    errors = [invalid(path, "", "field can not be empty.")] if "" in parameters else []
    if sum(len(text.encode()) for pair in parameters.items() for text in pair) > MAX_PARAMETERS_BYTES:
        errors.append(too_long(path, "", MAX_PARAMETERS_BYTES))
    return errors


def _validate_topologies(terms: list[TopologySelectorTerm], path: Path) -> list[FieldError]:
    """Each term once. Upstream compares a term with as many empty ones as there are terms, and so do we."""
    errors: list[FieldError] = []
    seen: Counter[frozenset[tuple[str, frozenset[str]]]] = Counter({frozenset(): len(terms)})
    for index, term in enumerate(terms):
        at = path.index(index).child("matchLabelExpressions")
        expressions: dict[str, frozenset[str]] = {}
        for number, expression in enumerate(term.match_label_expressions or ()):
            key, values = expression.key or "", expression.values or []
            here = at.index(number)
            if not values:
                errors.append(required(here.child("values")))
            for position in sorted(repeated(values)):
                errors.append(duplicate(here.child("values").index(position), values[position]))
            errors += validate_label_name(key, here.child("key"))
            if key in expressions:
                errors.append(duplicate(here.child("key"), key))
            expressions[key] = frozenset(values)
        form = frozenset(expressions.items())
        errors += [duplicate(at, "")] * min(seen[form], MAX_REPEATED - len(errors))
        seen[form] += 1
    return errors
