"""ControllerRevisions: what a StatefulSet or DaemonSet looked like once, and therefore fixed."""

from __future__ import annotations

from ... import names
from ...field import FieldError, Path, required
from ...meta.validation import validate_not_negative, validate_object_meta, validate_object_meta_update
from ..shared import validate_immutable
from ..v1 import ControllerRevision


def validate_controller_revision(revision: ControllerRevision) -> list[FieldError]:
    """A new revision holds some object."""
    errors = _validate(revision)
    if revision.data is None:
        errors.append(required(Path("data"), "data is mandatory"))
    elif not isinstance(revision.data, dict):
        errors.append(required(Path("data"), "data must be a valid JSON object"))
    return errors


def validate_controller_revision_update(new: ControllerRevision, old: ControllerRevision) -> list[FieldError]:
    """The number may change, what it stands for may not."""
    errors = validate_object_meta_update(new.metadata, old.metadata)
    errors += _validate(new)
    return errors + validate_immutable(new.data, old.data, Path("data"))


def _validate(revision: ControllerRevision) -> list[FieldError]:
    errors = validate_object_meta(revision.metadata, True, names.name_is_dns_subdomain)
    return errors + validate_not_negative(revision.revision, Path("revision"))
