"""Protobuf's encoding: numbered fields, each with as much of a type as is needed to skip it.

What is refused, and in which words, is what Go's generated code does; it skips fields that it does not know and takes a
field that comes twice as more of the same. Depth is bounded, as everywhere in protobuf, so that a body cannot exhaust
the stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

MAX_DEPTH: Final = 100  # messages within messages, protobuf's own limit elsewhere

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
_START_GROUP: Final = 3
_END_GROUP: Final = 4
_FIXED32: Final = 5

# The shapes of fields.
TEXT: Final = 0
SINGLE: Final = 1
LIST: Final = 2
MAP: Final = 3
INLINE: Final = 4
PACKED: Final = 5


class ProtobufError(ValueError):
    """Bytes that are not the message; its words are Go's."""


class Field(NamedTuple):
    """How a field of one tag is read. A list of numbers has two tags, as it may come packed."""

    shape: int
    name: str
    type: Type


class Type(NamedTuple):
    """How a value is read. Numbers are converted, bytes too, messages are read by their table and then converted."""

    wire: int
    convert: Callable[[Any], Any] | None = None
    message: Callable[[], Message] | None = None
    zero: Any = None
    """The value of a map's entry without one."""


class Message:
    """The fields of a message by their tags (number and wire type)."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: dict[int, Field]) -> None:
        self.name = name
        self.fields = fields


def read(message: Message, data: bytes) -> dict[str, Any]:
    """All fields of a message by their names. Raises ProtobufError."""
    try:
        return _message(message, data, 0, len(data), {}, MAX_DEPTH)
    except IndexError:  # cheaper than to look before every byte
        raise _eof() from None


def _message(message: Message, data: bytes, at: int, end: int, into: dict[str, Any], depth: int) -> dict[str, Any]:
    if depth < 0:
        raise ProtobufError("proto: message is nested too deeply")
    fields = message.fields
    while at < end:
        tag = data[at]
        at += 1
        if tag > 127:
            tag, at = varint(data, at - 1)
        field = fields.get(tag)
        if field is None:
            at = _skip(message, tag, data, at, end)
            continue
        shape, name, kind = field
        if tag & 7 == BYTES:
            size = data[at]
            at += 1
            if size > 127:
                size, at = _length(data, at - 1)
            stop = at + size
            if stop > end:
                raise _eof()
            if shape == TEXT:
                into[name] = text(data[at:stop])
            elif shape == SINGLE:
                value = _value(kind, data, at, stop, into.get(name), depth)
                if value is not None:
                    into[name] = value
            elif shape == LIST:
                into.setdefault(name, []).append(_value(kind, data, at, stop, None, depth))
            elif shape == MAP:
                key, value = _entry(kind, data, at, stop, depth)
                into.setdefault(name, {})[key] = value
            elif shape == INLINE:
                assert kind.message is not None
                _message(kind.message(), data, at, stop, into, depth - 1)
            else:
                into.setdefault(name, []).extend(_packed(kind, data, at, stop))
            at = stop
            continue
        value, at = _number(kind, data, at)
        if shape == LIST:
            into.setdefault(name, []).append(value)
        else:
            into[name] = value
    if at > end:
        raise _eof()
    return into


def _value(kind: Type, data: bytes, at: int, stop: int, before: Any, depth: int) -> Any:
    if kind.message is not None:
        if kind.convert is None:
            return _message(kind.message(), data, at, stop, before if before is not None else {}, depth - 1)
        return kind.convert(_message(kind.message(), data, at, stop, {}, depth - 1))
    assert kind.convert is not None
    return kind.convert(data[at:stop])


def _number(kind: Type, data: bytes, at: int) -> tuple[Any, int]:
    assert kind.convert is not None
    if kind.wire == FIXED64:
        raw = data[at : at + 8]
        if len(raw) < 8:
            raise _eof()
        return kind.convert(raw), at + 8
    number = data[at]
    at += 1
    if number > 127:
        number, at = varint(data, at - 1)
    return kind.convert(number), at


def _packed(kind: Type, data: bytes, at: int, stop: int) -> list[Any]:
    values = []
    while at < stop:
        value, at = _number(kind, data, at)
        values.append(value)
    if at > stop:
        raise _eof()
    return values


def _entry(kind: Type, data: bytes, at: int, stop: int, depth: int) -> tuple[str, Any]:
    """A map's entry, which is a message of a key (1) and a value (2)."""
    key, value = "", kind.zero
    while at < stop:
        tag, at = varint(data, at)
        if tag & 7 == BYTES and tag >> 3 in (1, 2):
            size, at = _length(data, at)
            if at + size > stop:
                raise _eof()
            if tag >> 3 == 1:
                key = text(data[at : at + size])
            else:
                value = _value(kind, data, at, at + size, None, depth)
            at += size
        else:
            at = _past(tag & 7, data, at, stop)
    return key, value


def text(raw: bytes) -> str:
    """A text; what is not UTF-8 in it becomes U+FFFD, as it does when Go writes JSON."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, seven bits a byte with the lowest first, and where it ends. Raises ProtobufError, IndexError."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift > 63:
            raise ProtobufError("proto: integer overflow")


def _length(data: bytes, at: int) -> tuple[int, int]:
    size, at = varint(data, at)
    if size >> 63:
        raise ProtobufError("proto: negative length found during unmarshaling")
    return size, at


def _skip(message: Message, tag: int, data: bytes, at: int, end: int) -> int:
    """Where the next field begins, after one with a tag that the message does not know."""
    number, kind = tag >> 3 & 0xFFFF_FFFF, tag & 7
    if kind == _END_GROUP:
        raise ProtobufError(f"proto: {message.name}: wiretype end group for non-group")
    if number == 0 or number >> 31:
        number -= number >> 31 << 32
        raise ProtobufError(f"proto: {message.name}: illegal tag {number} (wire type {tag})")
    for each in (VARINT, FIXED64, BYTES):
        field = message.fields.get(number << 3 | each)
        if field is not None:
            raise ProtobufError(f"proto: wrong wireType = {kind} for field {_go_name(field)}")
    return _past(kind, data, at, end)


def _past(kind: int, data: bytes, at: int, end: int) -> int:
    """Where a value of a wire type ends."""
    groups = 0
    while True:
        if kind == VARINT:
            _, at = varint(data, at)
        elif kind == FIXED64:
            at += 8
        elif kind == BYTES:
            size, at = _length(data, at)
            at += size
        elif kind == _START_GROUP:
            groups += 1
        elif kind == _END_GROUP:
            if not groups:
                raise ProtobufError("proto: unexpected end of group")
            groups -= 1
        elif kind == _FIXED32:
            at += 4
        else:
            raise ProtobufError(f"proto: illegal wireType {kind}")
        if at > end:
            raise _eof()
        if not groups:
            return at
        tag, at = varint(data, at)
        kind = tag & 7


def _go_name(field: Field) -> str:
    if field.name == "metadata":
        return "ObjectMeta"
    return field.name[:1].upper() + field.name[1:]


def _eof() -> ProtobufError:
    return ProtobufError("unexpected EOF")
