"""Prunes and completes a custom resource: unknown fields and forbidden nulls are removed, defaults added.

`Acceptor` is made once for each schema. A function compiled from the schema fills in defaults and looks for what does
not belong; most objects hold nothing of that kind, and then it is all. Only otherwise the exact way is gone, which
takes things out and can say what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

from ..apiextensions.pruning import prune
from ..apiextensions.v1 import JSONSchemaProps
from .embedded import coerce

Accept = Callable[[Any], bool]
"""Fills in defaults, in place; False if something may have to be taken out."""

_SCALARS: Final = ("string", "integer", "number", "boolean")
_COMPOUND: Final[frozenset[type]] = frozenset((dict, list))


class Acceptor:
    """The schema of a version, made ready for its objects."""

    def __init__(self, schema: JSONSchemaProps | None, preserve_unknown_fields: bool = False) -> None:
        self._schema = schema
        self._preserve = preserve_unknown_fields
        self._accept = _compile(schema) if schema is not None and not preserve_unknown_fields else None

    def __call__(self, content: dict[str, Any], *, keep_nulls: bool = False) -> list[str]:
        """Make an object's content (all but its type and metadata) fit, in place; tells which fields were unknown.

        What was applied keeps its nulls (`keep_nulls`) and is refused for them: upstream drops them while decoding, and
        the outcome of an apply patch is not decoded.

        Raises `FieldError` for an object inside whose metadata is none.
        """
        accept = self._accept
        if accept is not None and accept(content):
            return []
        unknown = self.trim(content, keep_nulls=keep_nulls)
        add_defaults(content, self._schema)
        return unknown

    def trim(self, content: dict[str, Any], *, keep_nulls: bool = False) -> list[str]:
        """The same without defaults: an object that comes from another version has had those of its own."""
        unknown: list[str] = []
        if not self._preserve:
            unknown = prune(content, self._schema, is_root=True)
            if not keep_nulls:
                drop_nulls(content, self._schema)
        return unknown + coerce(content, self._schema)


def drop_nulls(value: Any, schema: JSONSchemaProps | None) -> None:
    """Remove nulls of fields that may not be null and have no default to take its place."""
    if isinstance(value, dict):
        for key in list(value):
            below = _below(schema, key)
            if value[key] is None and below is not None and not below.nullable and below.default is None:
                del value[key]
            else:
                drop_nulls(value[key], below)
    elif isinstance(value, list):
        items = schema.items if schema is not None and isinstance(schema.items, JSONSchemaProps) else None
        for each in value:
            drop_nulls(each, items)


def add_defaults(value: Any, schema: JSONSchemaProps | None) -> None:
    """Put defaults where nothing is, and where null is that may not be."""
    if schema is None:
        return
    if isinstance(value, dict):
        for key, each in (schema.properties or {}).items():
            if each.default is not None and (key not in value or (value[key] is None and not each.nullable)):
                value[key] = deepcopy(each.default)
        for key in value:
            if (below := _below(schema, key)) is not None:
                if value[key] is None and not below.nullable and key not in (schema.properties or {}):
                    value[key] = deepcopy(below.default)
                add_defaults(value[key], below)
    elif isinstance(value, list) and isinstance(schema.items, JSONSchemaProps):
        for index, each in enumerate(value):
            if each is None and not schema.items.nullable:
                value[index] = deepcopy(schema.items.default)
            add_defaults(value[index], schema.items)


def _below(schema: JSONSchemaProps | None, key: str) -> JSONSchemaProps | None:
    if schema is None:
        return None
    if schema.properties and key in schema.properties:
        return schema.properties[key]
    others = schema.additional_properties
    return others if isinstance(others, JSONSchemaProps) else None


# --- the compiled way


def _leaf(value: Any) -> bool:
    """A scalar's place; objects and lists there are looked at the long way."""
    return type(value) not in _COMPOUND


def _anything(value: Any) -> bool:
    """A place of which nothing is known and everything is kept."""
    return True


def _compile(schema: JSONSchemaProps) -> Accept:
    if schema.x_kubernetes_embedded_resource:
        return lambda value: False
    keeps = bool(schema.x_kubernetes_preserve_unknown_fields)
    if schema.type == "array":
        return _list(schema) if not keeps else lambda value: False
    if schema.type == "object":
        if keeps and not schema.properties and schema.additional_properties is None:
            return _anything
        return _object(schema, keeps)
    if schema.type in _SCALARS or schema.x_kubernetes_int_or_string:
        return _leaf
    if keeps and not schema.properties and schema.items is None and schema.additional_properties is None:
        return _anything
    return lambda value: False


def _list(schema: JSONSchemaProps) -> Accept:
    if not isinstance(schema.items, JSONSchemaProps):
        return lambda value: False
    item, nullable = _compile(schema.items), bool(schema.items.nullable)
    if item is _leaf:

        def scalars(value: Any) -> bool:
            if type(value) is not list:
                return type(value) is not dict
            return _COMPOUND.isdisjoint(map(type, value)) and (nullable or None not in value)

        return scalars

    def accept(value: Any) -> bool:
        if type(value) is not list:
            return type(value) is not dict
        return (nullable or None not in value) and all(map(item, value))

    return accept


def _object(schema: JSONSchemaProps, keeps: bool) -> Accept:
    properties, others = schema.properties or {}, schema.additional_properties
    children = {key: _compile(each) for key, each in properties.items()}
    nullable = frozenset(key for key, each in properties.items() if each.nullable)
    defaults = [
        (key, each.default, type(each.default) in _COMPOUND)
        for key, each in properties.items()
        if each.default is not None
    ]
    other: Accept | None = None
    other_nullable = False
    if isinstance(others, JSONSchemaProps):
        other, other_nullable = _compile(others), bool(others.nullable)
    elif others:
        other = _leaf
    elif keeps:
        other, other_nullable = _anything, True

    def accept(value: Any) -> bool:
        if type(value) is not dict:
            return type(value) is not list
        for key, default, compound in defaults:
            if key not in value or (value[key] is None and key not in nullable):
                value[key] = deepcopy(default) if compound else default
        for key, each in value.items():
            child = children.get(key)
            if child is None:
                if other is None or (each is None and not other_nullable) or not other(each):
                    return False
            elif each is None:
                if key not in nullable:
                    return False
            elif child is _leaf:
                if type(each) in _COMPOUND:
                    return False
            elif not child(each):
                return False
        return True

    return accept
