"""Lists that are sets or maps (`x-kubernetes-list-type`) hold nothing twice."""

from __future__ import annotations

from typing import Any

import msgspec

from ..apiextensions.v1 import JSONSchemaProps
from ..field import FieldError, Path, duplicate, invalid

_to_json = msgspec.json.Encoder(order="sorted").encode


def validate(value: Any, schema: JSONSchemaProps | None, path: Path | None = None) -> list[FieldError]:
    """Errors for duplicates in sets and maps, at any depth."""
    errors: list[FieldError] = []
    if schema is None:
        return errors
    if isinstance(value, dict):
        others = schema.additional_properties
        if isinstance(others, JSONSchemaProps):
            for key, each in value.items():
                errors += validate(each, others, path.key(key) if path is not None else Path(f"[{key}]"))
        for key, each in value.items():
            if schema.properties and key in schema.properties:
                errors += validate(each, schema.properties[key], path.child(key) if path is not None else Path(key))
    elif isinstance(value, list) and path is not None:
        errors += _list(value, schema, path)
        if isinstance(schema.items, JSONSchemaProps):
            for index, each in enumerate(value):
                errors += validate(each, schema.items, path.index(index))
    return errors


def _list(value: list[Any], schema: JSONSchemaProps, path: Path) -> list[FieldError]:
    if schema.x_kubernetes_list_type == "set":
        return [duplicate(path.index(index), value[index]) for index in repeated(value)]
    if schema.x_kubernetes_list_type != "map":
        return []
    for index, each in enumerate(value):
        if each is not None and not isinstance(each, dict):
            return [invalid(path.index(index), each, "must be an object for an array of list-type map")]
    names = [key_of(each, schema) for each in value]
    return [duplicate(path.index(index), names[index]) for index in repeated(names)]


def key_of(item: dict[str, Any] | None, schema: JSONSchemaProps) -> dict[str, Any]:
    """The keys that identify an item of a map."""
    item = item or {}
    return {key: item[key] for key in schema.x_kubernetes_list_map_keys or () if key in item}


def repeated(values: list[Any]) -> list[int]:
    """The indexes of second occurrences; third ones are not reported."""
    if len(values) < 2:
        return []
    seen: dict[bytes, int] = {}
    found = []
    for index, value in enumerate(values):
        name = _to_json(value)
        seen[name] = seen.get(name, 0) + 1
        if seen[name] == 2:
            found.append(index)
    return found
