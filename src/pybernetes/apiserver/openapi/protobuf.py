"""OpenAPI documents as the protobuf messages of gnostic, which old versions of kubectl insist on.

Only the messages and fields that the documents use have a place here; an unknown key is an error and not left out
silently. Extensions (`x-...`) and other free values travel as YAML text, and JSON is YAML.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack
from typing import Any

import msgspec

Encode = Callable[[Any], bytes]
"""From a value to the content of a message."""
Put = Callable[[int, Any], bytes]
"""From a field's number and its value to the field."""
Fields = dict[str, tuple[int, Put]]


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _delimited(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _text(number: int, value: str) -> bytes:
    return _delimited(number, value.encode())


def _texts(number: int, value: list[str]) -> bytes:
    return b"".join([_text(number, each) for each in value])


def _flag(number: int, value: bool) -> bytes:
    return _varint(number << 3) + b"\1" if value else b""


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value % 2**64)


def _real(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + pack("<d", value)


def _any(number: int, value: Any) -> bytes:
    return _delimited(number, _delimited(2, msgspec.json.encode(value) + b"\n"))


def _anys(number: int, value: list[Any]) -> bytes:
    return b"".join([_any(number, each) for each in value])


def _one(encode: Encode) -> Put:
    return lambda number, value: _delimited(number, encode(value))


def _many(encode: Encode) -> Put:
    return lambda number, values: b"".join([_delimited(number, encode(value)) for value in values])


def _in(number: int, put: Put) -> Encode:
    """A message with a single field."""
    return lambda value: put(number, value)


def _named(encode: Encode, number: int = 1) -> Encode:
    """An object with any keys: pairs of name and value."""

    def pairs(value: dict[str, Any]) -> bytes:
        return b"".join(
            [_delimited(number, _text(1, name) + _delimited(2, encode(each))) for name, each in value.items()]
        )

    return pairs


def _message(fields: Fields, extensions: int) -> Encode:
    def encode(value: dict[str, Any]) -> bytes:
        parts = []
        for name, each in value.items():
            if name.startswith("x-"):
                parts.append(_delimited(extensions, _text(1, name) + _any(2, each)))
            else:
                number, put = fields[name]
                parts.append(put(number, each))
        return b"".join(parts)

    return encode


_security = _named(_in(1, _texts))


# -- version 2 ----------------------------------------------------------------------------------------------------


def _schema(value: dict[str, Any]) -> bytes:
    return _schema_message(value)


def _additional(value: Any) -> bytes:
    return _flag(2, value) if isinstance(value, bool) else _delimited(1, _schema(value))


def _types(number: int, value: str | list[str]) -> bytes:
    return _delimited(number, _texts(1, [value] if isinstance(value, str) else value))


_schema_message = _message(
    {
        "$ref": (1, _text),
        "format": (2, _text),
        "title": (3, _text),
        "description": (4, _text),
        "default": (5, _any),
        "multipleOf": (6, _real),
        "maximum": (7, _real),
        "exclusiveMaximum": (8, _flag),
        "minimum": (9, _real),
        "exclusiveMinimum": (10, _flag),
        "maxLength": (11, _whole),
        "minLength": (12, _whole),
        "pattern": (13, _text),
        "maxItems": (14, _whole),
        "minItems": (15, _whole),
        "uniqueItems": (16, _flag),
        "maxProperties": (17, _whole),
        "minProperties": (18, _whole),
        "required": (19, _texts),
        "enum": (20, _anys),
        "additionalProperties": (21, _one(_additional)),
        "type": (22, _types),
        "items": (23, _one(_in(1, _one(_schema)))),
        "allOf": (24, _many(_schema)),
        "properties": (25, _one(_named(_schema))),
        "example": (30, _any),
    },
    extensions=31,
)

_body_parameter = _message(
    {
        "description": (1, _text),
        "name": (2, _text),
        "in": (3, _text),
        "required": (4, _flag),
        "schema": (5, _one(_schema)),
    },
    extensions=6,
)
_query_parameter = _message(
    {
        "required": (1, _flag),
        "in": (2, _text),
        "description": (3, _text),
        "name": (4, _text),
        "type": (6, _text),
        "format": (7, _text),
        "uniqueItems": (20, _flag),
    },
    extensions=23,
)
_path_parameter = _message(
    {
        "required": (1, _flag),
        "in": (2, _text),
        "description": (3, _text),
        "name": (4, _text),
        "type": (5, _text),
        "format": (6, _text),
        "uniqueItems": (19, _flag),
    },
    extensions=22,
)


def _parameter(value: dict[str, Any]) -> bytes:
    if value["in"] == "body":
        return _delimited(1, _body_parameter(value))
    query = value["in"] == "query"
    return _delimited(2, _delimited(3, _query_parameter(value)) if query else _delimited(4, _path_parameter(value)))


def _parameter_item(value: dict[str, Any]) -> bytes:
    return _delimited(2, _text(1, value["$ref"])) if "$ref" in value else _delimited(1, _parameter(value))


_response = _message({"description": (1, _text), "schema": (2, _one(_in(1, _one(_schema))))}, extensions=5)

_operation = _message(
    {
        "tags": (1, _texts),
        "summary": (2, _text),
        "description": (3, _text),
        "operationId": (5, _text),
        "produces": (6, _texts),
        "consumes": (7, _texts),
        "parameters": (8, _many(_parameter_item)),
        "responses": (9, _one(_named(_in(1, _one(_response))))),
        "schemes": (10, _texts),
        "deprecated": (11, _flag),
    },
    extensions=13,
)

_path_item = _message(
    {
        "get": (2, _one(_operation)),
        "put": (3, _one(_operation)),
        "post": (4, _one(_operation)),
        "delete": (5, _one(_operation)),
        "options": (6, _one(_operation)),
        "head": (7, _one(_operation)),
        "patch": (8, _one(_operation)),
        "parameters": (9, _many(_parameter_item)),
    },
    extensions=10,
)

_api_key = _message({"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}, extensions=5)

encode_v2 = _message(
    {
        "swagger": (1, _text),
        "info": (2, _one(_message({"title": (1, _text), "version": (2, _text), "description": (3, _text)}, 7))),
        "paths": (8, _one(_named(_path_item, 2))),
        "definitions": (9, _one(_named(_schema))),
        "parameters": (10, _one(_named(_parameter))),
        "security": (12, _many(_security)),
        "securityDefinitions": (13, _one(_named(_in(2, _one(_api_key))))),
    },
    extensions=16,
)
"""A version 2 document."""


# -- version 3 ----------------------------------------------------------------------------------------------------


def _or_reference(encode: Encode) -> Encode:
    def either(value: dict[str, Any]) -> bytes:
        return _delimited(2, _text(1, value["$ref"])) if "$ref" in value else _delimited(1, encode(value))

    return either


def _schema3_plain(value: dict[str, Any]) -> bytes:
    return _schema3_message(value)


_schema3 = _or_reference(_schema3_plain)


def _additional3(value: Any) -> bytes:
    return _flag(2, value) if isinstance(value, bool) else _delimited(1, _schema3(value))


def _default3(number: int, value: Any) -> bytes:
    """Numbers, booleans and strings; the message has no place for others, and is empty then."""
    match value:
        case bool():
            return _delimited(number, _varint(2 << 3) + bytes([value]))
        case int() | float():
            return _delimited(number, _real(1, value))
        case str():
            return _delimited(number, _text(3, value))
    return _delimited(number, b"")


_schema3_message = _message(
    {
        "nullable": (1, _flag),
        "title": (9, _text),
        "multipleOf": (10, _real),
        "maximum": (11, _real),
        "exclusiveMaximum": (12, _flag),
        "minimum": (13, _real),
        "exclusiveMinimum": (14, _flag),
        "maxLength": (15, _whole),
        "minLength": (16, _whole),
        "pattern": (17, _text),
        "maxItems": (18, _whole),
        "minItems": (19, _whole),
        "uniqueItems": (20, _flag),
        "maxProperties": (21, _whole),
        "minProperties": (22, _whole),
        "required": (23, _texts),
        "enum": (24, _anys),
        "type": (25, _text),
        "allOf": (26, _many(_schema3)),
        "oneOf": (27, _many(_schema3)),
        "anyOf": (28, _many(_schema3)),
        "not": (29, _one(_schema3_plain)),
        "items": (30, _one(_in(1, _one(_schema3)))),
        "properties": (31, _one(_named(_schema3))),
        "additionalProperties": (32, _one(_additional3)),
        "default": (33, _default3),
        "description": (34, _text),
        "format": (35, _text),
        "example": (7, _any),
    },
    extensions=36,
)

_content3 = _named(_message({"schema": (1, _one(_schema3))}, extensions=5))
_parameter3 = _or_reference(
    _message(
        {
            "name": (1, _text),
            "in": (2, _text),
            "description": (3, _text),
            "required": (4, _flag),
            "schema": (10, _one(_schema3)),
        },
        extensions=14,
    )
)
_body3 = _or_reference(
    _message({"description": (1, _text), "content": (2, _one(_content3)), "required": (3, _flag)}, extensions=4)
)
_response3 = _or_reference(_message({"description": (1, _text), "content": (3, _one(_content3))}, extensions=5))

_operation3 = _message(
    {
        "tags": (1, _texts),
        "summary": (2, _text),
        "description": (3, _text),
        "operationId": (5, _text),
        "parameters": (6, _many(_parameter3)),
        "requestBody": (7, _one(_body3)),
        "responses": (8, _one(_named(_response3, 2))),
        "deprecated": (10, _flag),
    },
    extensions=13,
)

_path_item3 = _message(
    {
        "get": (4, _one(_operation3)),
        "put": (5, _one(_operation3)),
        "post": (6, _one(_operation3)),
        "delete": (7, _one(_operation3)),
        "options": (8, _one(_operation3)),
        "head": (9, _one(_operation3)),
        "patch": (10, _one(_operation3)),
        "parameters": (13, _many(_parameter3)),
    },
    extensions=14,
)

_scheme3 = _or_reference(
    _message({"type": (1, _text), "description": (2, _text), "name": (3, _text), "in": (4, _text)}, extensions=9)
)
_components3 = _message(
    {"schemas": (1, _one(_named(_schema3))), "securitySchemes": (7, _one(_named(_scheme3)))}, extensions=10
)

encode_v3 = _message(
    {
        "openapi": (1, _text),
        "info": (2, _one(_message({"title": (1, _text), "description": (2, _text), "version": (6, _text)}, 7))),
        "paths": (4, _one(_named(_path_item3, 1))),
        "components": (5, _one(_components3)),
        "security": (6, _many(_security)),
    },
    extensions=9,
)
"""A version 3 document."""
