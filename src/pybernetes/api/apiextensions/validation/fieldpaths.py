"""Paths to fields of custom resources, as definitions write them: `.spec.replicas`, `.status['odd name']`."""

from __future__ import annotations

import re

from ...field import FieldError, Path, invalid
from ..v1 import JSONSchemaProps

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+")


class FieldPathError(ValueError):
    """A text that names no field of a schema."""


def validate_simple_path(text: str, path: Path) -> list[FieldError]:
    """Something that begins with a dot."""
    return [] if text.startswith(".") else [invalid(path, text, "must be a simple json path starting with .")]


def find_field(text: str, schema: JSONSchemaProps, *, allow_brackets: bool = True) -> tuple[list[str], JSONSchemaProps]:
    """The names on the way to a field, and its schema. Raises FieldPathError."""
    tokens = _TOKEN.findall(text)
    names: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token == "[":
            if not allow_brackets:
                raise FieldPathError("array notation is not allowed")
            name, at = _bracketed(tokens, at)
        elif token == ".":
            if at + 1 >= len(tokens):
                raise FieldPathError("unexpected end of JSON path")
            name = tokens[at + 1]
            at += 2
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
        names.append(name)
        schema = _inner(schema, name)
    if not names:
        raise FieldPathError("unexpected end of JSON path")
    return names, schema


def _bracketed(tokens: list[str], at: int) -> tuple[str, int]:
    if at + 1 >= len(tokens):
        raise FieldPathError("unexpected end of JSON path")
    quoted = tokens[at + 1]
    if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {quoted}")
    if at + 2 >= len(tokens):
        raise FieldPathError("unexpected end of JSON path")
    if tokens[at + 2] != "]":
        raise FieldPathError(f"expected ] but got {tokens[at + 2]}")
    return re.sub(r"\\(.)", r"\1", quoted[1:-1]), at + 3


def _inner(schema: JSONSchemaProps, name: str) -> JSONSchemaProps:
    if schema.properties is not None:
        found = schema.properties.get(name)
    else:
        others = schema.additional_properties
        found = others if isinstance(others, JSONSchemaProps) else None
    if found is None:
        raise FieldPathError("does not refer to a valid field")
    return found
