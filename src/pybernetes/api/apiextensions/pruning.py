"""Taking away what a schema does not know: the server keeps no field that nobody has specified."""

from __future__ import annotations

from typing import Any

from .v1 import JSONSchemaProps

_OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})


def prune(value: Any, schema: JSONSchemaProps | None, *, is_root: bool = False) -> None:
    """Remove unknown fields from a value, in place; the root of an object keeps its metadata."""
    _prune(value, schema, is_root or bool(schema and schema.x_kubernetes_embedded_resource), False)


def _prune(value: Any, schema: JSONSchemaProps | None, is_object: bool, preserve: bool) -> None:
    if schema is not None and schema.x_kubernetes_preserve_unknown_fields:
        preserve = True
    if isinstance(value, list):
        items = schema.items if schema and isinstance(schema.items, JSONSchemaProps) else None
        for each in value:
            _prune_inner(each, items, preserve)
    elif isinstance(value, dict):
        properties = schema.properties or {} if schema else {}
        others = schema.additional_properties if schema else None
        for key in list(value):
            if is_object and key in _OF_EVERY_OBJECT:
                continue
            known = properties.get(key)
            if known is not None:
                _prune_inner(value[key], known, False)
            elif others is not None and others is not False:
                _prune_inner(
                    value[key], others if isinstance(others, JSONSchemaProps) else None, preserve or others is True
                )
            elif preserve:
                _prune_inner(value[key], None, True)
            else:
                del value[key]


def _prune_inner(value: Any, schema: JSONSchemaProps | None, preserve: bool) -> None:
    if schema is None and preserve:
        return
    _prune(value, schema, bool(schema and schema.x_kubernetes_embedded_resource), preserve and schema is None)
