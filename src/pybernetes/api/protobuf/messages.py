"""The messages of all served groups: which field has which number and type, and what it looks like in JSON.

The facts are in `messages.txt`, written by tools/extract_protobuf.py, which explains its form. The file is read when
the first protobuf body arrives, and a line of it is understood when its message is first met.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache, lru_cache, partial
from importlib.resources import files
from math import isfinite
from struct import unpack
from typing import Any

import msgspec

from ..times import format_duration, rfc3339
from . import wire
from .wire import Field, Message, ProtobufError, Type

# What is a message in protobuf and something else in JSON.
_SPECIAL = """
Unknown typeMeta=1:TypeMeta raw=2:raw contentEncoding=3:string contentType=4:string
TypeMeta apiVersion=1:string kind=2:string
Quantity string=1:string
Timestamp seconds=1:int64 nanos=2:int32
Duration duration=1:int64
IntOrString type=1:int64 intVal=2:int32 strVal=3:string
JSON raw=1:raw
Texts items=1:[]string
SchemaOrList schema=1:apiextensions/v1.JSONSchemaProps list=2:[]apiextensions/v1.JSONSchemaProps
SchemaOrBool allows=1:bool schema=2:apiextensions/v1.JSONSchemaProps
SchemaOrTexts schema=1:apiextensions/v1.JSONSchemaProps texts=2:[]string
"""


@lru_cache(4096)  # bodies name any message; there are about 1,000
def message(section: str, name: str) -> Message | None:
    """A message by its section (`core/v1`) and name, if there is one."""
    line = _lines().get((section, name))
    if line is None:
        return None
    fields: dict[int, Field] = {}
    for word in line:
        label, _, rest = word.partition("=")
        number, _, kind = rest.partition(":")
        field, tag = _field(section, label, kind), int(number) << 3
        fields[tag | field.type.wire] = field
        if field.shape == wire.LIST and field.type.wire != wire.BYTES:
            fields[tag | wire.BYTES] = field._replace(shape=wire.PACKED)
    return Message(name, fields)


@cache
def _lines() -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    section = ""
    for line in (_SPECIAL + (files(__package__) / "messages.txt").read_text("ascii")).splitlines():
        if line.startswith("["):
            section = line[1:-1]
        elif line and not line.startswith("#"):
            name, *fields = line.split(" ")
            found[section, name] = tuple(fields)
    return found


def _field(section: str, label: str, kind: str) -> Field:
    if kind == "string":
        return Field(wire.TEXT, label, _TYPES[kind])
    if label == ".":
        return Field(wire.INLINE, label, _type(section, kind))
    shape = {"[]": wire.LIST, "{}": wire.MAP}.get(kind[:2], wire.SINGLE)
    return Field(shape, label, _type(section, kind if shape == wire.SINGLE else kind[2:]))


def _type(section: str, kind: str) -> Type:
    found = _TYPES.get(kind)
    if found is not None:
        return found
    where, _, name = kind.rpartition(".")
    return Type(wire.BYTES, None, partial(_known, where or section, name), {})


def _known(section: str, name: str) -> Message:
    found = message(section, name)
    assert found is not None, (section, name)
    return found


# --- Values in JSON's form


def _int32(number: int) -> int:
    number &= 0xFFFF_FFFF
    return number - (number >> 31 << 32)


def _int64(number: int) -> int:
    return number - (number >> 63 << 64)


def _double(raw: bytes) -> float | int:
    number: float = unpack("<d", raw)[0]
    if not isfinite(number):
        raise ProtobufError(f"json: unsupported value: {'NaN' if number != number else f'{number:+}'.title()}")
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


def _base64(raw: bytes) -> str:
    return b64encode(raw).decode()


def _json(value: dict[str, Any]) -> Any:
    """Bytes that are JSON already, or an object in an envelope of its own."""
    raw: bytes = value.get("raw", b"")
    if not raw:
        return None
    from . import envelope

    if raw.startswith(envelope.PREFIX):
        nested = envelope.as_json(envelope.open_envelope(raw))
        return msgspec.Raw(nested) if nested is not None else None
    try:
        return None if msgspec.json.decode(raw) is None else msgspec.Raw(raw)
    except (ValueError, RecursionError) as error:
        raise ProtobufError(f"json: {error}") from None


def _quantity(value: dict[str, Any]) -> str:
    text: str = value.get("string", "0")
    return text


def _time(value: dict[str, Any]) -> str | None:
    if not value:
        return None
    return _moment(value.get("seconds", 0))


def _micro_time(value: dict[str, Any]) -> str | None:
    if not value:
        return None
    nanos = value.get("nanos", 0)
    micros = nanos // 1000 if nanos >= 0 else -(-nanos // 1000)  # towards zero
    carried, micros = divmod(micros, 1_000_000)
    return f"{_moment(value.get('seconds', 0) + carried)[:-1]}.{micros:06d}Z"


def _moment(seconds: int) -> str:
    try:
        return rfc3339(seconds)
    except OverflowError:
        raise ProtobufError("Time.MarshalJSON: year outside of range [0,9999]") from None


def _duration(value: dict[str, Any]) -> str:
    return format_duration(value.get("duration", 0))


def _int_or_string(value: dict[str, Any]) -> int | str:
    which = value.get("type", 0)
    if which not in (0, 1):
        raise ProtobufError("impossible IntOrString.Type")
    found: int | str = value.get("strVal", "") if which else value.get("intVal", 0)
    return found


def _texts(value: dict[str, Any]) -> list[str]:
    found: list[str] = value.get("items", [])
    return found


def _schema_or_list(value: dict[str, Any]) -> Any:
    return value.get("list") or value.get("schema")


def _schema_or_bool(value: dict[str, Any]) -> Any:
    return value["schema"] if "schema" in value else value.get("allows", False)


def _schema_or_texts(value: dict[str, Any]) -> Any:
    return value.get("texts") or value.get("schema")


def _same(raw: bytes) -> bytes:
    return raw


def _special(name: str, convert: Any, zero: Any = None) -> Type:
    return Type(wire.BYTES, convert, partial(_known, "", name), zero)


_TYPES = {
    "string": Type(wire.BYTES, wire.text, zero=""),
    "bytes": Type(wire.BYTES, _base64, zero=""),
    "raw": Type(wire.BYTES, _same),
    "bool": Type(wire.VARINT, bool, zero=False),
    "int32": Type(wire.VARINT, _int32, zero=0),
    "int64": Type(wire.VARINT, _int64, zero=0),
    "double": Type(wire.FIXED64, _double, zero=0),
    "quantity": _special("Quantity", _quantity, "0"),
    "date-time": _special("Timestamp", _time),
    "micro-time": _special("Timestamp", _micro_time),
    "duration": _special("Duration", _duration, "0s"),
    "int-or-string": _special("IntOrString", _int_or_string, 0),
    "json": _special("JSON", _json),
    "texts": _special("Texts", _texts),
    "schema-or-list": _special("SchemaOrList", _schema_or_list),
    "schema-or-bool": _special("SchemaOrBool", _schema_or_bool, False),
    "schema-or-texts": _special("SchemaOrTexts", _schema_or_texts),
}
