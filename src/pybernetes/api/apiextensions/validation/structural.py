"""Whether a schema is structural: every field has one type, said in one place, so that objects can be pruned,
defaulted and converted without a choice.

The alternatives (`anyOf`, `allOf`, `oneOf`, `not`) may only restrict values of fields that are specified elsewhere.
"""

from __future__ import annotations

from typing import Final

from ...field import FieldError, Path, forbidden, invalid, required
from ..patterns import PatternError, compile_pattern
from ..v1 import JSONSchemaProps

ROOT: Final = "at the root"
ITEM: Final = "for specified array items"
FIELD: Final = "for specified object fields"

_INT_OR_STRING: Final = [JSONSchemaProps(type="integer"), JSONSchemaProps(type="string")]
_FORBIDDEN_INSIDE: Final = (
    ("type", "type", "must be empty to be structural"),
    ("default", "default", "must be undefined to be structural"),
    ("title", "title", "must be empty to be structural"),
    ("description", "description", "must be empty to be structural"),
    ("nullable", "nullable", "must be false to be structural"),
    (
        "x_kubernetes_preserve_unknown_fields",
        "x-kubernetes-preserve-unknown-fields",
        "must be false to be structural",
    ),
    ("x_kubernetes_embedded_resource", "x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x_kubernetes_int_or_string", "x-kubernetes-int-or-string", "must be false to be structural"),
    ("x_kubernetes_list_map_keys", "x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x_kubernetes_list_type", "x-kubernetes-list-type", "must be undefined to be structural"),
    ("x_kubernetes_map_type", "x-kubernetes-map-type", "must be undefined to be structural"),
    ("x_kubernetes_validations", "x-kubernetes-validations", "must be empty to be structural"),
)


def conversion_problem(schema: JSONSchemaProps) -> str | None:
    """Why a schema cannot even be read as a structural one: it uses something that these have no place for."""
    for name, value in (
        ("id", schema.id),
        ("schema", schema.schema),
        ("$ref", schema.ref),
        ("patternProperties", schema.pattern_properties),
        ("dependencies", schema.dependencies),
        ("additionalItems", schema.additional_items is not None),
        ("definitions", schema.definitions),
    ):
        if value:
            return f"OpenAPIV3Schema '{name}' is not supported"
    if schema.x_kubernetes_preserve_unknown_fields is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(schema.items, list) and schema.items:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    inner = [schema.not_, *(schema.all_of or ()), *(schema.any_of or ()), *(schema.one_of or ())]
    inner += [schema.items, schema.additional_properties]
    inner += (schema.properties or {}).values()
    for each in inner:
        problem = conversion_problem(each) if isinstance(each, JSONSchemaProps) else None
        if problem:
            return problem
    return None


def validate_structural(schema: JSONSchemaProps, path: Path) -> list[FieldError]:
    """The errors that make a schema not structural."""
    errors = _validate(schema, ROOT, path)
    errors += _validate_complete(schema, schema, path, path)
    return sorted(errors, key=FieldError.message)


def _validate(schema: JSONSchemaProps, level: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if schema.type == "array" and not isinstance(schema.items, JSONSchemaProps):
        errors.append(required(path.child("items"), "must be specified"))
    if isinstance(schema.items, JSONSchemaProps):
        errors += _validate(schema.items, ITEM, path.child("items"))
    for name, each in (schema.properties or {}).items():
        errors += _validate(each, FIELD, path.child("properties").key(name))
    others = schema.additional_properties
    if others is not None and level == ROOT:
        errors.append(forbidden(path.child("additionalProperties"), "must not be used at the root"))
    if isinstance(others, JSONSchemaProps):
        errors += _validate(others, FIELD, path.child("additionalProperties"))
    errors += _validate_extensions(schema, path)
    errors += _validate_junctors(schema, path, skip_any=_is_int_or_string(schema.any_of), skip_first=_all_of(schema))
    errors += _validate_type(schema, level, path)
    if level == ROOT or schema.x_kubernetes_embedded_resource:
        for name in ("kind", "apiVersion"):
            of_field = (schema.properties or {}).get(name)
            if of_field is not None and of_field.type != "string":
                at = path.child("properties").key(name).child("type")
                errors.append(invalid(at, of_field.type or "", "must be string"))
    metadata = (schema.properties or {}).get("metadata")
    if metadata is not None:
        errors += _validate_metadata(metadata, schema, level, path.child("properties").key("metadata"))
    embedded = schema.x_kubernetes_embedded_resource
    if embedded and not schema.x_kubernetes_preserve_unknown_fields and not schema.properties:
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(required(path.child("properties"), detail))
    return errors


def _validate_type(schema: JSONSchemaProps, level: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    embedded = schema.x_kubernetes_embedded_resource
    if embedded and schema.type != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        at = path.child("type")
        errors.append(invalid(at, schema.type, detail) if schema.type else required(at, detail))
    elif not (schema.type or schema.x_kubernetes_int_or_string or schema.x_kubernetes_preserve_unknown_fields):
        errors.append(required(path.child("type"), f"must not be empty {level}"))
    if embedded and schema.additional_properties is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(forbidden(path.child("additionalProperties"), detail))
    if level == ROOT and schema.type and schema.type != "object":
        errors.append(invalid(path.child("type"), schema.type, "must be object at the root"))
    return errors


def _validate_metadata(metadata: JSONSchemaProps, parent: JSONSchemaProps, level: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if (level == ROOT or parent.x_kubernetes_embedded_resource) and metadata.type != "object":
        errors.append(invalid(path.child("type"), metadata.type or "", "must be object"))
    if level == ROOT:
        others = [
            name
            for name in metadata.__struct_fields__
            if name not in ("type", "default", "properties") and getattr(metadata, name)
        ]
        if others or not {"name", "generateName"}.issuperset(metadata.properties or ()):
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            errors.append(forbidden(path, detail))
    return errors


def _validate_extensions(schema: JSONSchemaProps, path: Path) -> list[FieldError]:
    if not schema.x_kubernetes_int_or_string:
        return []
    errors: list[FieldError] = []
    detail = "must be false if x-kubernetes-int-or-string is true"
    if schema.x_kubernetes_preserve_unknown_fields:
        errors.append(invalid(path.child("x-kubernetes-preserve-unknown-fields"), True, detail))
    if schema.x_kubernetes_embedded_resource:
        errors.append(invalid(path.child("x-kubernetes-embedded-resource"), True, detail))
    return errors


def _is_int_or_string(schemas: list[JSONSchemaProps] | None) -> bool:
    return schemas == _INT_OR_STRING


def _all_of(schema: JSONSchemaProps) -> bool:
    return bool(schema.all_of) and _is_int_or_string((schema.all_of or [])[0].any_of)


def _validate_junctors(
    schema: JSONSchemaProps, path: Path, *, skip_any: bool = False, skip_first: bool = False
) -> list[FieldError]:
    """Restrictions of values. Integers or strings may be spelt out as an alternative of types, in two ways."""
    errors: list[FieldError] = []
    if not skip_any:
        for index, each in enumerate(schema.any_of or ()):
            errors += _validate_inside(each, path.child("anyOf").index(index))
    for index, each in enumerate(schema.all_of or ()):
        errors += _validate_inside(each, path.child("allOf").index(index), skip_any=skip_first and index == 0)
    for index, each in enumerate(schema.one_of or ()):
        errors += _validate_inside(each, path.child("oneOf").index(index))
    if schema.not_ is not None:
        errors += _validate_inside(schema.not_, path.child("not"))
    if schema.pattern:
        try:
            compile_pattern(schema.pattern)
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            errors.append(invalid(path.child("pattern"), schema.pattern, detail))
    return errors


def _validate_inside(schema: JSONSchemaProps, path: Path, *, skip_any: bool = False) -> list[FieldError]:
    errors = _validate_junctors(schema, path, skip_any=skip_any)
    if isinstance(schema.items, JSONSchemaProps):
        errors += _validate_inside(schema.items, path.child("items"))
    for name, each in (schema.properties or {}).items():
        errors += _validate_inside(each, path.child("properties").key(name))
    if schema.additional_properties:
        errors.append(forbidden(path.child("additionalProperties"), "must be undefined to be structural"))
    for attribute, name, detail in _FORBIDDEN_INSIDE:
        value = getattr(schema, attribute)
        if value if attribute != "default" else value is not None:
            errors.append(forbidden(path.child(name), detail))
    if "metadata" in (schema.properties or {}):
        at = path.child("properties").key("metadata")
        errors.append(forbidden(at, "must not be specified in a nested context"))
    return errors


def _validate_complete(
    restriction: JSONSchemaProps, schema: JSONSchemaProps | None, path: Path, inside: Path
) -> list[FieldError]:
    """Fields in `allOf`, `anyOf`, `oneOf` and `not` must be specified outside of them, too."""
    errors: list[FieldError] = []
    junctors: list[tuple[str, int | None, JSONSchemaProps | None]] = [("not", None, restriction.not_)]
    for name, schemas in (("allOf", restriction.all_of), ("anyOf", restriction.any_of), ("oneOf", restriction.one_of)):
        junctors += [(name, index, each) for index, each in enumerate(schemas or ())]
    for name, at, each in junctors:
        if each is not None:
            where = inside.child(name) if at is None else inside.child(name).index(at)
            errors += _validate_restriction(each, schema, path, where)
    return errors


def _validate_restriction(
    restriction: JSONSchemaProps, schema: JSONSchemaProps | None, path: Path, inside: Path
) -> list[FieldError]:
    if schema is None:
        return [required(path, f"because it is defined in {inside}")]
    errors = _validate_complete(restriction, schema, path, inside)
    if isinstance(restriction.items, JSONSchemaProps):
        items = schema.items if isinstance(schema.items, JSONSchemaProps) else None
        errors += _validate_restriction(restriction.items, items, path.child("items"), inside.child("items"))
    for name, each in (restriction.properties or {}).items():
        known = (schema.properties or {}).get(name)
        at, where = path.child("properties").key(name), inside.child("properties").key(name)
        if known is None:
            errors.append(required(at, f"because it is defined in {where}"))
        else:
            errors += _validate_restriction(each, known, at, where)
    return errors
