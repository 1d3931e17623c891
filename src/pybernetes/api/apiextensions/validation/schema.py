"""Validates the use of JSON schema in definitions, and how lists and maps are merged.

Rules written in CEL (`x-kubernetes-validations`) are checked for form here, and not compiled.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ...field import FieldError, Path, forbidden, invalid, not_supported, repeated, required
from ..v1 import JSONSchemaProps, ValidationRule
from .fieldpaths import FieldPathError, find_field
from .structural import conversion_problem

TYPES: Final = frozenset({"array", "boolean", "integer", "number", "object", "string"})
REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")

_META: Final = frozenset({"apiVersion", "kind", "metadata"})
_has_line_breaks = re.compile("[\n\r]").search


class Rules(msgspec.Struct, frozen=True):
    """The checks to run on a schema; those that an old definition already fails are off."""

    valid_types: bool = True
    atomic_sets: bool = True
    list_map_keys: bool = True
    no_defaults: str | None = None
    """Why there may be no defaults here; None where there may."""
    inside_metadata: bool = False


def validate_schema(schema: JSONSchemaProps, path: Path, rules: Rules, *, is_root: bool = False) -> list[FieldError]:
    """Validate a schema and all schemas inside it."""
    errors = _validate_supported(schema, path, rules)
    if schema.unique_items:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden(path.child("uniqueItems"), detail))
    errors += _validate_properties(schema, path, rules, is_root)
    if schema.not_ is not None:
        errors += validate_schema(schema.not_, path.child("not"), rules)
    for name, schemas in (("allOf", schema.all_of), ("oneOf", schema.one_of), ("anyOf", schema.any_of)):
        for index, each in enumerate(schemas or ()):
            errors += validate_schema(each, path.child(name).index(index), rules)
    for name, each in (schema.definitions or {}).items():
        errors += validate_schema(each, path.child("definitions").key(name), rules)
    if isinstance(schema.items, JSONSchemaProps):
        errors += validate_schema(schema.items, path.child("items"), rules)
    for index, each in enumerate(schema.items if isinstance(schema.items, list) else ()):
        errors += validate_schema(each, path.child("items").index(index), rules)
    for name, dependency in (schema.dependencies or {}).items():
        if isinstance(dependency, JSONSchemaProps):
            errors += validate_schema(dependency, path.child("dependencies").key(name), rules)
    if schema.x_kubernetes_preserve_unknown_fields is False:
        at = path.child("x-kubernetes-preserve-unknown-fields")
        errors.append(invalid(at, False, "must be true or undefined"))
    errors += _validate_map_type(schema, path)
    errors += _validate_list_type(schema, path, rules)
    if rules.list_map_keys:
        errors += validate_list_map_keys(schema, path)
    for index, rule in enumerate(schema.x_kubernetes_validations or ()):
        errors += _validate_rule(rule, schema, path.child("x-kubernetes-validations").index(index))
    return errors


def _validate_supported(schema: JSONSchemaProps, path: Path, rules: Rules) -> list[FieldError]:
    errors: list[FieldError] = []
    if rules.valid_types and schema.type and schema.type not in TYPES:
        errors.append(not_supported(path.child("type"), schema.type, TYPES))
    if schema.default is not None and rules.no_defaults is not None:
        errors.append(forbidden(path.child("default"), f"must not be set {rules.no_defaults}".rstrip()))
    for name, value in (
        ("id", schema.id),
        ("additionalItems", schema.additional_items is not None),
        ("patternProperties", schema.pattern_properties),
        ("definitions", schema.definitions),
        ("dependencies", schema.dependencies is not None),
        ("$ref", schema.ref is not None),
    ):
        if value:
            errors.append(forbidden(path.child(name), f"{name} is not supported"))
    if schema.type == "null":
        errors.append(forbidden(path.child("type"), "type cannot be set to null, use nullable as an alternative"))
    if isinstance(schema.items, list) and schema.items:
        errors.append(forbidden(path.child("items"), "items must be a schema object and not an array"))
    if rules.inside_metadata and schema.x_kubernetes_embedded_resource:
        at = path.child("x-kubernetes-embedded-resource")
        errors.append(forbidden(at, "must not be used inside of resource meta"))
    return errors


def _validate_properties(schema: JSONSchemaProps, path: Path, rules: Rules, is_root: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    others = schema.additional_properties
    if others is not None:
        if schema.properties and others is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            errors.append(forbidden(path.child("additionalProperties"), detail))
        if isinstance(others, JSONSchemaProps):
            inner = rules
            if rules.inside_metadata:
                why = "inside additionalProperties applying to object metadata"
                inner = msgspec.structs.replace(rules, no_defaults=why)
            errors += validate_schema(others, path.child("additionalProperties"), inner)
    for name, each in (schema.properties or {}).items():
        inner = rules
        if (is_root or schema.x_kubernetes_embedded_resource) and name in _META:
            inner = msgspec.structs.replace(rules, inside_metadata=True)
            if is_root:
                inner = msgspec.structs.replace(inner, no_defaults=f"in top-level {name}")
        errors += validate_schema(each, path.child("properties").key(name), inner)
    return errors


def _needs_type(schema: JSONSchemaProps, wanted: str, extension: str, path: Path) -> FieldError:
    detail = f"must be {wanted} if {extension} is specified"
    at = path.child("type")
    return invalid(at, schema.type, detail) if schema.type else required(at, detail)


def _validate_map_type(schema: JSONSchemaProps, path: Path) -> list[FieldError]:
    kind = schema.x_kubernetes_map_type
    if kind is None:
        return []
    errors: list[FieldError] = []
    if schema.type != "object":
        errors.append(_needs_type(schema, "object", "x-kubernetes-map-type", path))
    if kind not in ("atomic", "granular"):
        errors.append(not_supported(path.child("x-kubernetes-map-type"), kind, ("atomic", "granular")))
    return errors


def _validate_list_type(schema: JSONSchemaProps, path: Path, rules: Rules) -> list[FieldError]:
    errors: list[FieldError] = []
    kind, at = schema.x_kubernetes_list_type, path.child("x-kubernetes-list-type")
    if kind is not None and schema.type != "array":
        errors.append(_needs_type(schema, "array", "x-kubernetes-list-type", path))
    elif rules.atomic_sets and has_non_atomic_items(schema) and isinstance(schema.items, JSONSchemaProps):
        inner = schema.items.x_kubernetes_list_type
        name = "x-kubernetes-list-type" if schema.items.type == "array" else "x-kubernetes-map-type"
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        errors.append(invalid(path.child("items", name), inner, detail))
    if kind is not None and kind not in ("atomic", "set", "map"):
        errors.append(not_supported(at, kind, ("atomic", "set", "map")))
    if schema.x_kubernetes_list_map_keys and kind != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        errors.append(required(at, detail) if kind is None else invalid(at, kind, detail))
    if kind == "map":
        errors += _validate_list_map(schema, path)
    return errors


def has_non_atomic_items(schema: JSONSchemaProps) -> bool:
    """Whether a schema is a set of things that are merged piece by piece, and so have no identity."""
    items = schema.items
    if schema.x_kubernetes_list_type != "set" or not isinstance(items, JSONSchemaProps):
        return False
    if items.type == "array":
        return items.x_kubernetes_list_type not in (None, "atomic")
    return items.type == "object" and items.x_kubernetes_map_type != "atomic"


def _validate_list_map(schema: JSONSchemaProps, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    keys, items = schema.x_kubernetes_list_map_keys or [], schema.items
    at = path.child("x-kubernetes-list-map-keys")
    if not keys:
        errors.append(required(at, "must not be empty if x-kubernetes-list-type is map"))
    if items is None:
        errors.append(required(path.child("items"), "must have a schema if x-kubernetes-list-type is map"))
    elif isinstance(items, list):
        detail = "must only have a single schema if x-kubernetes-list-type is map"
        errors.append(invalid(path.child("items"), items, detail))
    elif items.type != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        errors.append(invalid(path.child("items", "type"), items.type or "", detail))
    else:
        again = repeated(keys)
        for index, key in enumerate(keys):
            known = (items.properties or {}).get(key)
            if known is None:
                errors.append(invalid(at, keys, "entries must all be names of item properties"))
            elif known.type in ("array", "object"):
                detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
                of_key = path.child("items", "properties").key(key).child("type")
                errors.append(invalid(of_key, items.type, detail))
            if index in again:
                errors.append(invalid(at, keys, "must not contain duplicate entries"))
    return errors


def validate_list_map_keys(schema: JSONSchemaProps, path: Path) -> list[FieldError]:
    """Items of sets and maps are never null, and the keys of map items always there."""
    items, kind = schema.items, schema.x_kubernetes_list_type
    if not isinstance(items, JSONSchemaProps) or kind not in ("set", "map"):
        return []
    errors: list[FieldError] = []
    path = path.child("items")
    if items.nullable:
        errors.append(forbidden(path.child("nullable"), f"cannot be nullable when x-kubernetes-list-type is {kind}"))
    for key in schema.x_kubernetes_list_map_keys or () if kind == "map" else ():
        known = (items.properties or {}).get(key)
        if known is None:
            continue
        at = path.child("properties").key(key)
        if key not in (items.required or ()) and known.default is None:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            errors.append(required(at.child("default"), detail))
        if known.nullable:
            detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            errors.append(forbidden(at.child("nullable"), detail))
    return errors


def _validate_rule(rule: ValidationRule, schema: JSONSchemaProps, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    text, message = (rule.rule or "").strip(), rule.message or ""
    if not text:
        errors.append(required(path.child("rule"), "rule is not specified"))
    elif message and not message.strip():
        errors.append(invalid(path.child("message"), message, "must be non-empty if specified"))
    elif _has_line_breaks(message.strip()):
        errors.append(invalid(path.child("message"), message, "must not contain line breaks"))
    elif _has_line_breaks(text) and not message.strip():
        errors.append(required(path.child("message"), "message must be specified if rule contains line breaks"))
    if rule.message_expression and not rule.message_expression.strip():
        at = path.child("messageExpression")
        errors.append(required(at, "messageExpression must be non-empty if specified"))
    if rule.reason is not None and rule.reason not in REASONS:
        errors.append(not_supported(path.child("reason"), rule.reason, REASONS))
    if rule.field_path:
        at = path.child("fieldPath")
        if not rule.field_path.strip():
            errors.append(invalid(at, rule.field_path, "must be non-empty if specified"))
        if _has_line_breaks(rule.field_path):
            errors.append(invalid(at, rule.field_path, "must not contain line breaks"))
        if not _names_field(rule.field_path, schema):
            errors.append(invalid(at, rule.field_path, "must be a valid path"))
    return errors


def _names_field(text: str, schema: JSONSchemaProps) -> bool:
    if conversion_problem(schema):
        return True  # reported elsewhere
    try:
        find_field(text, schema)
    except FieldPathError:
        return False
    return True
