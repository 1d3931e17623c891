"""Schemas as types: what an expression may ask of a value, and how large the value can become.

A schema is the JSON of an OpenAPI v3 schema. Where CEL's value differs from JSON's (times, bytes, sets, whole
numbers that are doubles), the type carries a function that converts; it touches only what needs it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

from . import types as t
from .escaping import escape
from .types import Field, Type
from .values import Duration, EvaluationError, MapList, SetList, parse_go_duration, parse_timestamp

MAX_REQUEST_SIZE = 3 * 1024 * 1024

Convert = Callable[[Any], Any]
Schema = Mapping[str, Any]

_OBJECT_META: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
}
_ROOT: dict[str, Any] = {"kind": {"type": "string"}, "apiVersion": {"type": "string"}, "metadata": _OBJECT_META}


def type_from_schema(schema: Schema | None, root: bool = False) -> Type | None:
    """The type of values of a schema, or None if expressions may not see them.

    `root` is for whole objects: they have kind, apiVersion, metadata.name and metadata.generateName in any case."""
    if not schema:
        return None
    if schema.get("x-kubernetes-int-or-string"):
        return Type("dyn", max_elements=_length(schema, MAX_REQUEST_SIZE - 2), min_serialized=1)
    kind = schema.get("type")
    if kind == "array":
        return _array(schema)
    if kind == "object":
        return _object(schema, root or bool(schema.get("x-kubernetes-embedded-resource")))
    if kind == "string":
        return _string(schema)
    if kind == "boolean":
        return Type("bool", min_serialized=4)
    if kind == "number":
        made = Type("double", min_serialized=1)
        made.convert = _number
        return made
    if kind == "integer":
        return Type("int", min_serialized=1)
    return None


def _length(schema: Schema, default: int) -> int:
    limit = schema.get("maxLength")
    return default if limit is None else max(0, int(limit)) * 4  # a character may take four bytes


def _array(schema: Schema) -> Type | None:
    items = type_from_schema(schema.get("items"))
    if items is None:
        return None
    limit = schema.get("maxItems")
    most = (MAX_REQUEST_SIZE - 2) // (items.min_serialized + 1) if limit is None else max(0, int(limit))
    made = t.list_of(items, most)
    made.min_serialized = 2
    made.convert = _list_converter(items.convert, schema)
    return made


def _list_converter(convert: Convert | None, schema: Schema) -> Convert | None:
    kind = schema.get("x-kubernetes-list-type")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if convert is None and kind not in ("set", "map"):
        return None

    def list_value(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items = value if convert is None else [convert(item) for item in value]
        if kind == "set":
            return SetList(items)
        return MapList(items, keys) if kind == "map" else items

    return list_value


def _object(schema: Schema, root: bool) -> Type | None:
    additional = schema.get("additionalProperties")
    properties = dict(schema.get("properties") or {})
    if isinstance(additional, Mapping) and not root:
        return _map(schema, additional)
    if root:
        properties = _with_object_meta(properties)
    required = frozenset(schema.get("required") or ())
    fields: dict[str, Field] = {}
    converters: list[tuple[str, Convert]] = []
    smallest = 2
    for name, property in properties.items():
        type = type_from_schema(property)
        if type is None:
            continue
        identifier = escape(name)
        if identifier is not None:
            fields[identifier] = Field(type, name, name in required)
        if name in required and property.get("default") is None:
            smallest += len(name.encode()) + type.min_serialized + 4
        if type.convert is not None:
            converters.append((name, type.convert))
    made = Type("object", "object", fields=fields, min_serialized=smallest)
    made.name = f"object{id(made)}"  # two objects are of one type only if they are of one schema
    made.convert = _object_converter(converters)
    return made


def _with_object_meta(properties: dict[str, Any]) -> dict[str, Any]:
    metadata = (properties.get("metadata") or {}).get("properties") or {}
    known = all(properties.get(name, {}).get("type") == "string" for name in ("kind", "apiVersion"))
    if known and all(metadata.get(name, {}).get("type") == "string" for name in ("name", "generateName")):
        return properties
    return properties | _ROOT


def _object_converter(converters: list[tuple[str, Convert]]) -> Convert | None:
    if not converters:
        return None

    def object_value(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        copy = None
        for name, convert in converters:
            found = value.get(name)
            if found is not None:
                changed = convert(found)
                if changed is not found:
                    copy = dict(value) if copy is None else copy
                    copy[name] = changed
        return value if copy is None else copy

    return object_value


def _map(schema: Schema, additional: Schema) -> Type | None:
    value = type_from_schema(additional)
    if value is None:
        return None
    limit = schema.get("maxProperties")
    most = (MAX_REQUEST_SIZE - 2) // (value.min_serialized + 6) if limit is None else max(0, int(limit))
    made = t.map_of(t.STRING, value, most)
    made.min_serialized = 2
    convert = value.convert
    if convert is not None:
        made.convert = lambda found: (
            {key: convert(item) for key, item in found.items()} if isinstance(found, dict) else found
        )
    return made


_FORMATS: dict[str, tuple[Type, int, int]] = {
    "duration": (t.DURATION, 32, 3),
    "date": (t.TIMESTAMP, 12, 12),
    "date-time": (t.TIMESTAMP, 32, 21),
}


def _string(schema: Schema) -> Type:
    format = schema.get("format")
    if format in _FORMATS:
        base, most, smallest = _FORMATS[format]
        made = Type(base.kind, base.name, max_elements=most, min_serialized=smallest)
        made.convert = _duration if format == "duration" else _timestamp
        return made
    if format == "byte":
        limit = schema.get("maxLength")
        made = Type(
            "bytes", max_elements=MAX_REQUEST_SIZE - 2 if limit is None else max(0, int(limit)), min_serialized=2
        )
        made.convert = _bytes
        return made
    longest = MAX_REQUEST_SIZE - 2
    if schema.get("enum"):
        longest = max((len(each.encode()) for each in schema["enum"] if isinstance(each, str)), default=0)
    return Type("string", max_elements=_length(schema, longest), min_serialized=2)


def _number(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return value


def _timestamp(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = f"{value}T00:00:00Z" if len(value) == 10 else value.replace("t", "T").replace("z", "Z").replace(" ", "T", 1)
    try:
        found = parse_timestamp(text)
    except EvaluationError:  # year 0: no timestamp of CEL's
        return value
    return value if found is None else found


_WORDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_LONGEST_NUMBER = 40  # digits; no span of time has as many
_SPAN = re.compile(r"(\d+)\s*([A-Za-z]+)")
_UNITS = {
    "nano": "ns", "micro": "us", "milli": "ms", "mill": "ms", "second": "s", "sec": "s", "minute": "m", "min": "m",
    "hour": "h", "hr": "h", "day": "d",
}  # fmt: skip


def _duration(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = parse_go_duration(value)
    if found is not None:
        return found
    total = 0
    for number, unit in _SPAN.findall(value):
        if len(number) > _LONGEST_NUMBER:
            return value
        name = _UNITS.get(unit.lower().removesuffix("s"), unit.lower())
        if name in ("w", "week", "wk", "weeks"):
            total += int(number) * 7 * _WORDS["d"]
        elif name in _WORDS:
            total += int(number) * _WORDS[name]
        else:
            return value
    return Duration(total)
