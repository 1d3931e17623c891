"""Validation of Namespaces.

The finalizers in `spec` change only through the `finalize` subresource (`validate_namespace_finalize`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...field import FieldError, Path, invalid
from ...meta.validation import STANDARD_FINALIZERS, validate_object_meta, validate_object_meta_update
from ...names import is_qualified_name, name_is_dns_label
from ..v1.namespace import Namespace

_META: Final = Path("metadata")
_FINALIZERS: Final = Path("spec", "finalizers")


def validate_namespace(obj: Namespace) -> list[FieldError]:
    """Validate a new Namespace."""
    errors = validate_object_meta(obj.metadata, False, name_is_dns_label, _META)
    for name in (obj.spec and obj.spec.finalizers) or ():
        errors += _validate_finalizer(name, _FINALIZERS)
    return errors


def validate_namespace_update(new: Namespace, old: Namespace) -> list[FieldError]:
    """Validate an update."""
    return validate_namespace(new) + validate_object_meta_update(new.metadata, old.metadata, _META)


def validate_namespace_status_update(new: Namespace, old: Namespace) -> list[FieldError]:
    """A Namespace is terminating if, and only if, it is being deleted."""
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    deleted = bool(new.metadata and new.metadata.deletion_timestamp)
    phase = (new.status and new.status.phase) or ""
    path = Path("status", "Phase")
    if not deleted and phase != "Active":
        errors.append(invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty"))
    if deleted and phase != "Terminating":
        errors.append(invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"))
    return errors


def validate_namespace_finalize(new: Namespace, old: Namespace) -> list[FieldError]:
    """Validate a change of the finalizers."""
    errors = validate_object_meta_update(new.metadata, old.metadata, _META)
    for index, name in enumerate((new.spec and new.spec.finalizers) or ()):
        errors += _validate_finalizer(name, _FINALIZERS.index(index))
    return errors


def _validate_finalizer(name: str, path: Path) -> list[FieldError]:
    errors = [invalid(path, name, problem) for problem in is_qualified_name(name)]
    if "/" not in name and name not in STANDARD_FINALIZERS:
        errors.append(invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"))
    return errors


CREATE: Final[dict[str, Callable[[Any], list[FieldError]]]] = {"Namespace": validate_namespace}
UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {"Namespace": validate_namespace_update}
STATUS_UPDATE: Final[dict[str, Callable[[Any, Any], list[FieldError]]]] = {
    "Namespace": validate_namespace_status_update,
}
