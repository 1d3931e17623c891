"""Validates a version of a definition: subresources, columns, selectable fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...field import FieldError, Path, duplicate, invalid, required, too_many
from ..v1 import (
    CustomResourceColumnDefinition,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    CustomResourceValidation,
    SelectableField,
)
from .fieldpaths import FieldPathError, find_field, validate_simple_path
from .structural import conversion_problem

MAX_SELECTABLE_FIELDS: Final = 8
COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_WARNING_BYTES: Final = 256


def validate_deprecation_warning(version: CustomResourceDefinitionVersion, path: Path) -> list[FieldError]:
    """Validate the warning for clients of a deprecated version."""
    text = version.deprecation_warning
    if text is None:
        return []
    if not version.deprecated:
        return [invalid(path, text, "can only be set for deprecated versions")]
    errors: list[FieldError] = []
    if len(text.encode()) > _MAX_WARNING_BYTES:
        errors.append(invalid(path, text, f"must be <= {_MAX_WARNING_BYTES} characters long"))
    if not text:
        errors.append(invalid(path, text, "must not be an empty string"))
    position = 0
    for char in text:
        if not char.isprintable():
            detail = f"must only contain printable UTF-8 characters; non-printable character found at index {position}"
            errors.append(invalid(path, text, detail))
            break
        position += len(char.encode())
    return errors


def validate_subresources(subresources: CustomResourceSubresources | None, path: Path) -> list[FieldError]:
    """Where the numbers of a scale are."""
    scale = subresources.scale if subresources else None
    if scale is None:
        return []
    errors: list[FieldError] = []
    for name, value, root in (
        ("specReplicasPath", scale.spec_replicas_path, ".spec"),
        ("statusReplicasPath", scale.status_replicas_path, ".status"),
    ):
        at = path.child(f"scale.{name}")
        if not value:
            errors.append(required(at))
        else:
            found = validate_simple_path(value, at)
            if not found and not value.startswith(f"{root}."):
                found = [invalid(at, value, f"should be a json path under {root}")]
            errors += found
    selector = scale.label_selector_path
    if selector:
        at = path.child("scale.labelSelectorPath")
        found = validate_simple_path(selector, at)
        if not found and not selector.startswith((".spec.", ".status.")):
            found = [invalid(at, selector, "should be a json path under either .spec or .status")]
        errors += found
    return errors


def validate_columns(columns: Iterable[CustomResourceColumnDefinition], path: Path) -> list[FieldError]:
    """Validate the additional printer columns."""
    errors: list[FieldError] = []
    for index, column in enumerate(columns):
        at = path.index(index)
        if not column.name:
            errors.append(required(at.child("name")))
        detail = f"must be one of {','.join(COLUMN_TYPES)}"
        if not column.type:
            errors.append(required(at.child("type"), detail))
        elif column.type not in COLUMN_TYPES:
            errors.append(invalid(at.child("type"), column.type, detail))
        if column.format and column.format not in COLUMN_FORMATS:
            detail = f"must be one of {','.join(COLUMN_FORMATS)}"
            errors.append(invalid(at.child("format"), column.format, detail))
        if not column.json_path:
            errors.append(required(at.child("JSONPath")))
        else:
            errors += validate_simple_path(column.json_path, at.child("JSONPath"))
    return errors


def validate_selectable_fields(
    fields: Sequence[SelectableField],
    validation: CustomResourceValidation | None,
    path: Path,
    *,
    allow_many: bool,
    top_level: bool = False,
) -> list[FieldError]:
    """Fields of simple types, each once, not too many."""
    at = path.child("selectableFields")
    schema = validation.open_apiv_3_schema if validation else None
    if schema is None:
        detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
        if top_level:
            detail = "may only be set when validations.schema is included"
        return [invalid(at, "", detail)]
    problem = conversion_problem(schema)
    if problem:
        return [invalid(path.child("schema.openAPIV3Schema"), "", problem)]
    errors: list[FieldError] = []
    seen: set[tuple[str, ...]] = set()
    for index, field in enumerate(fields):
        of_field, text = at.index(index).child("jsonPath"), field.json_path or ""
        if not text:
            errors.append(required(of_field))
            continue
        try:
            names, found = find_field(text, schema, allow_brackets=False)
        except FieldPathError as error:
            errors.append(invalid(of_field, text, f"is an invalid path: {error}"))
            continue
        if names[0] == "metadata":
            errors.append(invalid(of_field, text, "must not point to fields in metadata"))
        if found.type not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            errors.append(invalid(of_field, text, detail))
        if tuple(names) in seen:
            errors.append(duplicate(of_field, text))
        seen.add(tuple(names))
    if len(seen) > MAX_SELECTABLE_FIELDS and not allow_many:
        errors.append(too_many(at, len(seen), MAX_SELECTABLE_FIELDS))
    return errors
