"""Protobuf made from JSON by what `messages.txt` says, with nothing taken from the code that reads it."""

from __future__ import annotations

import base64
import json
import struct
from datetime import datetime
from importlib.resources import files
from typing import Any

from pybernetes.api.times import parse_duration

SCHEMA = "apiextensions/v1.JSONSchemaProps"


def _messages() -> dict[str, dict[str, tuple[int, str]]]:
    found = {}
    section = ""
    for line in (files("pybernetes.api.protobuf") / "messages.txt").read_text().splitlines():
        if line[0] == "#":
            continue
        if line[0] == "[":
            section = line[1:-1]
            continue
        name, *fields = line.split()
        found[f"{section}.{name}"] = {
            label: (int(number), kind)
            for label, number, kind in (field.replace(":", "=", 1).split("=") for field in fields)
        }
    return found


MESSAGES = _messages()
"""`core/v1.Pod` -> field -> number and type."""


def qualified(kind: str, message: str) -> str:
    """The full name of a message that is named within another one."""
    return kind if "/" in kind else f"{message.rpartition('.')[0]}.{kind}"


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    """What client-go sends."""
    about = sized(1, api_version.encode()) + sized(2, kind.encode())
    return b"k8s\0" + sized(1, about) + sized(2, raw) + sized(3, b"") + sized(4, b"")


def encode(message: str, value: dict[str, Any]) -> bytes:
    """A message from its JSON."""
    out = b""
    for label, (number, kind) in MESSAGES[message].items():
        if label == ".":
            out += sized(number, encode(qualified(kind, message), value))
        elif label in value:
            out += _field(number, kind, value[label], message)
    return out


def _field(number: int, kind: str, value: Any, message: str) -> bytes:
    if kind[:2] == "[]":
        return b"".join(_field(number, kind[2:], each, message) for each in value)
    if kind[:2] == "{}":
        entries = (_field(1, "string", k, message) + _field(2, kind[2:], v, message) for k, v in value.items())
        return b"".join(sized(number, entry) for entry in entries)
    match kind:
        case "bool" | "int32" | "int64":
            return varint(number << 3) + varint(value)
        case "double":
            return varint(number << 3 | 1) + struct.pack("<d", value)
        case "string":
            return sized(number, value.encode())
        case "bytes":
            return sized(number, base64.b64decode(value))
        case "json":
            return sized(number, sized(1, json.dumps(value).encode()))
        case "quantity":
            return sized(number, sized(1, value.encode()))
        case "duration":
            return sized(number, varint(8) + varint(parse_duration(value)))
        case "date-time" | "micro-time":
            moment = datetime.fromisoformat(value)
            seconds, nanos = int(moment.replace(microsecond=0).timestamp()), moment.microsecond * 1000
            return sized(number, varint(8) + varint(seconds) + varint(16) + varint(nanos))
        case "int-or-string":
            text, whole = (value, 0) if isinstance(value, str) else ("", value)
            kind_of = varint(8) + varint(int(isinstance(value, str)))
            return sized(number, kind_of + varint(16) + varint(whole) + sized(3, text.encode()))
        case "texts":
            return sized(number, b"".join(sized(1, each.encode()) for each in value))
        case "schema-or-bool":
            if isinstance(value, bool):
                return sized(number, varint(8) + varint(value))
            return sized(number, varint(8) + varint(True) + sized(2, encode(SCHEMA, value)))
        case "schema-or-list" | "schema-or-texts":
            if isinstance(value, dict):
                return sized(number, sized(1, encode(SCHEMA, value)))
            each = ((encode(SCHEMA, one) if isinstance(one, dict) else one.encode()) for one in value)
            return sized(number, b"".join(sized(2, one) for one in each))
    return sized(number, encode(qualified(kind, message), value))


def sized(number: int, raw: bytes) -> bytes:
    """A field of bytes, texts or messages."""
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def varint(number: int) -> bytes:
    """A number; negative ones take ten bytes."""
    number %= 1 << 64
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
