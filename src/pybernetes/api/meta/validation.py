"""Validates the metadata of objects, label selectors, and lists of conditions.

The same for every kind: a kind gives its own rule for names and calls these functions. Keys and values of labels
repeat endlessly, so what was once found good is remembered and a valid object costs a few dict lookups.

`metadata.resourceVersion` is not looked at: stored objects do not hold it, and whether an update needs one is for the
verb to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from .. import names
from ..field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required, too_long
from ..gocompat.quote import quote
from ..names import NameCheck
from .v1.labelselector import LabelSelector, LabelSelectorRequirement
from .v1.objectmeta import Condition, ManagedFieldsEntry, ObjectMeta, OwnerReference

IMMUTABLE: Final = "field is immutable"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
MAX_FIELD_MANAGER_BYTES: Final = 128
MAX_SUBRESOURCE_BYTES: Final = 256
MAX_REASON_BYTES: Final = 1024
MAX_MESSAGE_BYTES: Final = 32 * 1024

ORPHAN_DEPENDENTS: Final = "orphan"
DELETE_DEPENDENTS: Final = "foregroundDeletion"
STANDARD_FINALIZERS: Final = frozenset({"kubernetes", ORPHAN_DEPENDENTS, DELETE_DEPENDENTS})

METADATA: Final = Path("metadata")
_LABELS, _MANAGED_FIELDS = METADATA.child("labels"), METADATA.child("managedFields")  # almost every object has them

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON).fullmatch
_CACHE = 8192

_label_key = lru_cache(_CACHE)(names.is_label_key)
_label_value = lru_cache(_CACHE)(names.is_label_value)
_namespace_name = lru_cache(_CACHE)(names.is_dns1123_label)


@lru_cache(_CACHE)
def _prefix_problems(name_rule: NameCheck, prefix: str) -> list[str]:
    return name_rule(prefix, True)


@lru_cache(_CACHE)
def _annotation_key(key: str) -> list[str]:
    return names.is_qualified_name(key.lower())


def validate_object_meta(
    meta: ObjectMeta | None, namespaced: bool, name_rule: NameCheck, path: Path = METADATA, *, custom: bool = False
) -> list[FieldError]:
    """Validate the metadata of a new object; `custom` ones, and some others, need no domain in finalizers."""
    if meta is None:
        meta = ObjectMeta()
    errors: list[FieldError] = []
    if meta.generate_name:
        for problem in _prefix_problems(name_rule, meta.generate_name):
            errors.append(invalid(path.child("generateName"), meta.generate_name, problem))
    if not meta.name:
        errors.append(required(path.child("name"), "name or generateName is required"))
    else:
        for problem in name_rule(meta.name, False):
            errors.append(invalid(path.child("name"), meta.name, problem))
    if namespaced:
        if not meta.namespace:
            errors.append(required(path.child("namespace")))
        else:
            for problem in _namespace_name(meta.namespace):
                errors.append(invalid(path.child("namespace"), meta.namespace, problem))
    elif meta.namespace:
        errors.append(forbidden(path.child("namespace"), "not allowed on this type"))
    if meta.generation is not None and meta.generation < 0:
        errors.append(invalid(path.child("generation"), meta.generation, NOT_NEGATIVE))
    _validate_common(meta, path, errors)
    if meta.finalizers:
        errors += validate_finalizers(meta.finalizers, path.child("finalizers"))
        if not custom:
            errors += _validate_standard_finalizers(meta.finalizers, path.child("finalizers"))
    return errors


def validate_object_meta_update(
    new: ObjectMeta | None, old: ObjectMeta | None, path: Path = METADATA, *, custom: bool = False
) -> list[FieldError]:
    """Validate an update of metadata: most fields are immutable."""
    new, old = new or ObjectMeta(), old or ObjectMeta()
    errors: list[FieldError] = []
    if old.deletion_timestamp is not None and new.finalizers:
        extra = sorted(set(new.finalizers) - set(old.finalizers or ()))
        if extra:
            listed = ", ".join(quote(name) for name in extra)
            detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
            errors.append(forbidden(path.child("finalizers"), f"{detail}[]string{{{listed}}}"))
    if (new.generation or 0) < (old.generation or 0):
        errors.append(invalid(path.child("generation"), new.generation or 0, "must not be decremented"))
    if (new.name or "") != (old.name or ""):
        errors.append(invalid(path.child("name"), new.name or "", IMMUTABLE))
    if (new.namespace or "") != (old.namespace or ""):
        errors.append(invalid(path.child("namespace"), new.namespace or "", IMMUTABLE))
    if (new.uid or "") != (old.uid or ""):
        errors.append(invalid(path.child("uid"), new.uid or "", IMMUTABLE))
    if new.creation_timestamp != old.creation_timestamp:
        errors.append(invalid(path.child("creationTimestamp"), new.creation_timestamp, IMMUTABLE))
    if new.deletion_timestamp != old.deletion_timestamp:
        errors.append(invalid(path.child("deletionTimestamp"), new.deletion_timestamp, IMMUTABLE))
    if new.deletion_grace_period_seconds != old.deletion_grace_period_seconds:
        errors.append(invalid(path.child("deletionGracePeriodSeconds"), new.deletion_grace_period_seconds, IMMUTABLE))
    _validate_common(new, path, errors)
    if new.finalizers and not custom:
        errors += _validate_standard_finalizers(new.finalizers, path.child("finalizers"))
    return errors


def validate_common_create(meta: ObjectMeta, namespaced: bool) -> list[FieldError]:
    """Validate the rules of all new objects, after the kind's own rules."""
    return validate_object_meta(meta, namespaced, names.name_is_path_segment, custom=True)


def validate_common_update(new: ObjectMeta, old: ObjectMeta, namespaced: bool) -> list[FieldError]:
    """Validate the rules of all updated objects; reported besides the kind's own errors, which may be the same."""
    errors = validate_object_meta(new, namespaced, names.name_is_path_segment, custom=True)
    return errors + validate_object_meta_update(new, old, custom=True)


def _validate_common(meta: ObjectMeta, path: Path, errors: list[FieldError]) -> None:
    if meta.labels:
        errors += validate_labels(meta.labels, _LABELS if path is METADATA else path.child("labels"))
    if meta.annotations:
        errors += validate_annotations(meta.annotations, path.child("annotations"))
    if meta.owner_references:
        errors += validate_owner_references(meta.owner_references, path.child("ownerReferences"))
    if meta.managed_fields:
        at = _MANAGED_FIELDS if path is METADATA else path.child("managedFields")
        errors += validate_managed_fields(meta.managed_fields, at)


def validate_immutable(new: Any, old: Any, path: Path) -> list[FieldError]:
    """A field that keeps its first value."""
    return [] if new == old else [invalid(path, new, IMMUTABLE)]


def validate_not_negative(value: int | None, path: Path) -> list[FieldError]:
    """A number from 0 on; absent is fine."""
    return [] if value is None or value >= 0 else [invalid(path, value, NOT_NEGATIVE)]


def validate_label_name(key: str | None, path: Path) -> list[FieldError]:
    """The key of a label."""
    return [invalid(path, key or "", problem) for problem in _label_key(key or "")]


def validate_labels(labels: Mapping[str, str] | None, path: Path) -> list[FieldError]:
    """Keys and values; errors are at the map, not at the key, as upstream has them."""
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        for problem in _label_key(key):
            errors.append(invalid(path, key, problem))
        for problem in _label_value(value):
            errors.append(invalid(path, value, problem))
    return errors


def validate_annotations(annotations: Mapping[str, str] | None, path: Path) -> list[FieldError]:
    """Keys as for labels but in any case; values are free, up to 256 KiB all together."""
    errors: list[FieldError] = []
    total = 0
    for key, value in (annotations or {}).items():
        for problem in _annotation_key(key):
            errors.append(invalid(path, key, problem))
        total += _size(key) + _size(value)
    if total > MAX_ANNOTATIONS_BYTES:
        errors.append(too_long(path, "", MAX_ANNOTATIONS_BYTES))
    return errors


def validate_owner_references(references: Sequence[OwnerReference], path: Path) -> list[FieldError]:
    """Every reference complete, at most one of them the controller."""
    errors: list[FieldError] = []
    controller = ""
    for reference in references:
        if not (reference.api_version and reference.kind and reference.name and reference.uid):
            errors += _incomplete_owner(reference, path)
        elif reference.api_version.endswith("/") or reference.api_version.count("/") > 1:
            errors.append(invalid(path.child("apiVersion"), reference.api_version, "version must not be empty"))
        if reference.api_version == "v1" and reference.kind == "Event":
            errors.append(invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner"))
        if reference.controller:
            this = f"{reference.kind or ''}/{reference.name or ''}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {this}'
                )
                errors.append(invalid(path, list(references), detail))
            else:
                controller = this
    return errors


def _incomplete_owner(reference: OwnerReference, path: Path) -> Iterable[FieldError]:
    version = reference.api_version or ""
    if not version or version.endswith("/") or version.count("/") > 1:
        yield invalid(path.child("apiVersion"), version, "version must not be empty")
    for name, value in (("kind", reference.kind), ("name", reference.name), ("uid", reference.uid)):
        if not value:
            yield invalid(path.child(name), "", "must not be empty")


def validate_finalizers(finalizers: Sequence[str], path: Path) -> list[FieldError]:
    """Qualified names; orphaning dependents and deleting them first exclude each other."""
    errors = [invalid(path, name, problem) for name in finalizers for problem in _label_key(name)]
    if ORPHAN_DEPENDENTS in finalizers and DELETE_DEPENDENTS in finalizers:
        detail = f"finalizer {ORPHAN_DEPENDENTS} and {DELETE_DEPENDENTS} cannot be both set"
        errors.append(invalid(path, list(finalizers), detail))
    return errors


def _validate_standard_finalizers(finalizers: Sequence[str], path: Path) -> Iterable[FieldError]:
    for index, name in enumerate(finalizers):
        if "/" not in name and name not in STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(path.index(index), name, detail)


def validate_managed_fields(entries: Sequence[ManagedFieldsEntry], path: Path) -> list[FieldError]:
    """Validate managed fields: the form of the entries, not the sets inside."""
    errors: list[FieldError] = []
    for index, entry in enumerate(entries):
        if type(entry.fields_v_1) is msgspec.Raw:
            continue  # written by us just now, not sent by a client
        if entry.operation not in ("Apply", "Update"):
            at = path.index(index).child("operation")
            errors.append(invalid(at, entry.operation or "", "must be `Apply` or `Update`"))
        if entry.fields_type and entry.fields_type != "FieldsV1":
            errors.append(invalid(path.index(index).child("fieldsType"), entry.fields_type, "must be `FieldsV1`"))
        if entry.manager:
            errors += validate_field_manager(entry.manager, path.index(index).child("manager"))
        if entry.subresource and _size(entry.subresource) > MAX_SUBRESOURCE_BYTES:
            errors.append(too_long(path.index(index).child("subresource"), "", MAX_SUBRESOURCE_BYTES))
    return errors


def validate_field_manager(manager: str, path: Path) -> list[FieldError]:
    """At most 128 bytes, all printable."""
    errors: list[FieldError] = []
    if _size(manager) > MAX_FIELD_MANAGER_BYTES:
        errors.append(too_long(path, "", MAX_FIELD_MANAGER_BYTES))
    if not manager.isprintable():
        position = 0
        for char in manager:
            if not char.isprintable():
                detail = f"invalid character U+{ord(char):04X} (at position {position})"
                errors.append(invalid(path, manager, detail))
            position += _size(char)
    return errors


def validate_label_selector(
    selector: LabelSelector | None,
    path: Path,
    *,
    allow_invalid_values: bool = False,
    allow_unknown_operators: bool = False,
) -> list[FieldError]:
    """Validate a `{matchLabels, matchExpressions}` selector; None is valid."""
    if selector is None:
        return []
    errors: list[FieldError] = []
    if selector.match_labels:
        errors += validate_labels(selector.match_labels, path.child("matchLabels"))
    for index, requirement in enumerate(selector.match_expressions or ()):
        errors += validate_label_selector_requirement(
            requirement,
            path.child("matchExpressions").index(index),
            allow_invalid_values=allow_invalid_values,
            allow_unknown_operators=allow_unknown_operators,
        )
    return errors


def validate_label_selector_requirement(
    requirement: LabelSelectorRequirement,
    path: Path,
    *,
    allow_invalid_values: bool = False,
    allow_unknown_operators: bool = False,
) -> list[FieldError]:
    """One of the `matchExpressions`."""
    errors: list[FieldError] = []
    operator, values = requirement.operator or "", requirement.values or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(path.child("values"), detail))
    elif not allow_unknown_operators:
        errors.append(invalid(path.child("operator"), operator, "not a valid selector operator"))
    errors += validate_label_name(requirement.key, path.child("key"))
    if not allow_invalid_values:
        for index, value in enumerate(values):
            for problem in _label_value(value):
                errors.append(invalid(path.child("values").index(index), value, problem))
    return errors


def has_invalid_label_value(selector: LabelSelector | None) -> bool:
    """Whether an expression compares with something no label can be: kept working in objects that have it already."""
    if selector is None or not selector.match_expressions:
        return False
    return any(_label_value(value) for each in selector.match_expressions for value in each.values or ())


def validate_conditions(conditions: Sequence[Condition] | None, path: Path) -> list[FieldError]:
    """Conditions of the common type (`metav1.Condition`), each type once."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions or ()):
        kind = condition.type or ""
        if kind in seen:
            errors.append(duplicate(path.index(index).child("type"), kind))
        seen.add(kind)
        errors += validate_condition(condition, path.index(index))
    return errors


def validate_condition(condition: Condition, path: Path) -> list[FieldError]:
    """One condition: what kind, whether it holds, since when and why."""
    errors = validate_label_name(condition.type, path.child("type"))
    if condition.status not in ("True", "False", "Unknown"):
        errors.append(not_supported(path.child("status"), condition.status or "", ("False", "True", "Unknown")))
    if condition.observed_generation is not None and condition.observed_generation < 0:
        detail = "must be greater than or equal to zero"
        errors.append(invalid(path.child("observedGeneration"), condition.observed_generation, detail))
    if not condition.last_transition_time:
        errors.append(required(path.child("lastTransitionTime")))
    reason = condition.reason
    if not reason:
        errors.append(required(path.child("reason")))
    else:
        if not _is_reason(reason):
            message = (
                "a condition reason must start with alphabetic character, optionally followed by a string of "
                "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
            )
            examples = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
            errors.append(invalid(path.child("reason"), reason, names.regex_error(message, _REASON, *examples)))
        if _size(reason) > MAX_REASON_BYTES:
            errors.append(too_long(path.child("reason"), "", MAX_REASON_BYTES))
    if condition.message and _size(condition.message) > MAX_MESSAGE_BYTES:
        errors.append(too_long(path.child("message"), "", MAX_MESSAGE_BYTES))
    return errors


def validate_template_meta(meta: ObjectMeta | None, path: Path) -> list[FieldError]:
    """Metadata of a claim's template: labels and annotations only."""
    if meta is None:
        return []
    errors: list[FieldError] = []
    if meta.annotations:
        errors += validate_annotations(meta.annotations, path.child("annotations"))
    if meta.labels:
        errors += validate_labels(meta.labels, path.child("labels"))
    for field, name in zip(meta.__struct_fields__, meta.__struct_encode_fields__, strict=True):
        if getattr(meta, field) is not None and field not in ("labels", "annotations"):
            errors.append(forbidden(path.child("uID" if name == "uid" else name), "cannot be set"))
    return errors


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
