"""Objects inside of objects (`x-kubernetes-embedded-resource`): their type and metadata are those of every object."""

from __future__ import annotations

from typing import Any

import msgspec

from .. import strict
from ..apiextensions.v1 import JSONSchemaProps
from ..field import FieldError, Path, invalid, required
from ..gocompat import goencoder
from ..meta.v1.objectmeta import ObjectMeta
from ..meta.validation import validate_object_meta
from ..names import is_dns1035_label, name_is_path_segment


class Refused(ValueError):
    """An object inside whose type or metadata cannot be read; `error` names the field."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def coerce(value: Any, schema: JSONSchemaProps | None, path: Path | None = None) -> list[str]:
    """Bring the metadata of objects inside into its usual form, in place; tells which fields of it were unknown.

    Raises Refused.
    """
    unknown: list[str] = []
    _coerce(value, schema, path, unknown)
    return sorted(unknown)


def _coerce(value: Any, schema: JSONSchemaProps | None, path: Path | None, unknown: list[str]) -> None:
    if schema is None:
        return
    if isinstance(value, dict):
        if schema.x_kubernetes_embedded_resource:
            _coerce_type(value, path, unknown)
        for key, each in value.items():
            if schema.properties and key in schema.properties:
                _coerce(each, schema.properties[key], _child(path, key), unknown)
            elif isinstance(schema.additional_properties, JSONSchemaProps):
                at = path.key(key) if path is not None else Path(f"[{key}]")
                _coerce(each, schema.additional_properties, at, unknown)
    elif isinstance(value, list) and isinstance(schema.items, JSONSchemaProps):
        for index, each in enumerate(value):
            _coerce(each, schema.items, path.index(index) if path is not None else None, unknown)


def _coerce_type(value: dict[str, Any], path: Path | None, unknown: list[str]) -> None:
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            raise Refused(invalid(_child(path, key), value[key], "must be a string"))
    if "metadata" not in value:
        return
    at = _child(path, "metadata")
    try:
        metadata, problems = _metadata(value["metadata"])
    except strict.DecodeError as error:
        raise Refused(invalid(at, value["metadata"], str(error))) from None
    unknown += [f"{at}.{problem}" for problem in problems]
    value["metadata"] = msgspec.json.decode(goencoder.encode(metadata))


def _metadata(value: Any) -> tuple[ObjectMeta, list[str]]:
    """Metadata, and its unknown fields. Raises DecodeError."""
    metadata, problems = strict.convert(ObjectMeta, value if value is not None else {})
    return metadata, [problem.removeprefix('unknown field "').removesuffix('"') for problem in problems]


def _child(path: Path | None, key: str) -> Path:
    return path.child(key) if path is not None else Path(key)


def validate(value: Any, schema: JSONSchemaProps | None, path: Path | None = None) -> list[FieldError]:
    """Validate the types and metadata of embedded objects."""
    errors: list[FieldError] = []
    if schema is None:
        return errors
    if isinstance(value, dict):
        if schema.x_kubernetes_embedded_resource:
            errors += _validate_one(value, path)
        for key, each in value.items():
            if schema.properties and key in schema.properties:
                errors += validate(each, schema.properties[key], _child(path, key))
            elif isinstance(schema.additional_properties, JSONSchemaProps):
                at = path.key(key) if path is not None else Path(f"[{key}]")
                errors += validate(each, schema.additional_properties, at)
    elif isinstance(value, list) and isinstance(schema.items, JSONSchemaProps):
        for index, each in enumerate(value):
            errors += validate(each, schema.items, path.index(index) if path is not None else None)
    return errors


def _validate_one(value: dict[str, Any], path: Path | None) -> list[FieldError]:
    errors = [required(_child(path, key)) for key in ("apiVersion", "kind") if key not in value]
    version, kind = value.get("apiVersion"), value.get("kind")
    at = _child(path, "apiVersion")
    if "apiVersion" in value:
        if not isinstance(version, str):
            errors.append(invalid(at, version, "must be a string"))
        elif not version:
            errors.append(invalid(at, version, "must not be empty"))
        elif version.count("/") > 1:
            errors.append(invalid(at, version, f"unexpected GroupVersion string: {version}"))
    at = _child(path, "kind")
    if "kind" in value:
        if not isinstance(kind, str):
            errors.append(invalid(at, kind, "must be a string"))
        elif not kind:
            errors.append(invalid(at, kind, "must not be empty"))
        elif problems := is_dns1035_label(kind.lower()):
            words = "may have mixed case, but should otherwise match: "
            errors.append(invalid(at, kind, words + ",".join(problems)))
    if "metadata" in value:
        at = _child(path, "metadata")
        try:
            metadata = _metadata(value["metadata"])[0]
        except strict.DecodeError as error:
            return [*errors, invalid(at, value["metadata"], str(error))]
        metadata.name = metadata.name or "fakename"  # it need not have one
        errors += validate_object_meta(metadata, bool(metadata.namespace), name_is_path_segment, at)
    return errors
