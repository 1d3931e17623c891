"""Prunes unknown fields: the server stores only fields that the schema specifies."""

from __future__ import annotations

from typing import Any

from .v1 import JSONSchemaProps

OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})


def prune(value: Any, schema: JSONSchemaProps | None, *, is_root: bool = False) -> list[str]:
    """Remove unknown fields from a value, in place, and tell which; the root of an object keeps its metadata."""
    pruner = _Pruner()
    if is_root and schema is None:
        schema = JSONSchemaProps()
    pruner.prune(value, schema, "", is_root)
    return sorted(pruner.unknown)


class _Pruner:
    def __init__(self) -> None:
        self.unknown: list[str] = []

    def prune(self, value: Any, schema: JSONSchemaProps | None, path: str, is_object: bool = False) -> None:
        if isinstance(value, list):
            items = schema.items if schema and isinstance(schema.items, JSONSchemaProps) else None
            preserves = bool(schema and schema.x_kubernetes_preserve_unknown_fields)
            for index, each in enumerate(value):
                if preserves:
                    self._keep(each, items, f"{path}[{index}]")
                else:
                    self.prune(each, items, f"{path}[{index}]")
        elif isinstance(value, dict):
            self._object(value, schema, path, is_object)

    def _object(self, value: dict[str, Any], schema: JSONSchemaProps | None, path: str, is_object: bool) -> None:
        schema = schema or JSONSchemaProps()
        is_object = is_object or bool(schema.x_kubernetes_embedded_resource)
        properties, others = schema.properties or {}, schema.additional_properties
        for key in list(value):
            if is_object and key in OF_EVERY_OBJECT:
                continue
            at = f"{path}.{key}" if path else key
            if key in properties:
                self.prune(value[key], properties[key], at)
            elif others:  # of `true` nothing is known, so nothing stays of the objects it allows
                self.prune(value[key], others if isinstance(others, JSONSchemaProps) else None, at)
            elif not schema.x_kubernetes_preserve_unknown_fields:
                self.unknown.append(at)
                del value[key]

    def _keep(self, value: Any, schema: JSONSchemaProps | None, path: str) -> None:
        """Prune inside a list that preserves unknown fields: only parts with a schema of their own."""
        if schema is None:
            return
        if isinstance(value, list):
            for index, each in enumerate(value):
                items = schema.items if isinstance(schema.items, JSONSchemaProps) else None
                self._keep(each, items, f"{path}[{index}]")
        elif isinstance(value, dict):
            kept = JSONSchemaProps(
                properties=schema.properties,
                additional_properties=schema.additional_properties,
                x_kubernetes_embedded_resource=schema.x_kubernetes_embedded_resource,
                x_kubernetes_preserve_unknown_fields=True,
            )
            self._object(value, kept, path, False)
