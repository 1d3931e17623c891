"""The form of netlink messages: a header, a fixed part for each family of messages, then attributes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
ATTRIBUTE = struct.Struct("=HH")  # length, type
NESTED = 0x8000
_TYPE_MASK = 0x3FFF


def attribute(kind: int, value: bytes | str | int) -> bytes:
    """One attribute; numbers are of 32 bits and texts end with a zero, as most attributes want them."""
    if isinstance(value, str):
        value = value.encode() + b"\0"
    elif isinstance(value, int):
        value = struct.pack("=I", value)
    return ATTRIBUTE.pack(4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def nested(kind: int, *attributes: bytes) -> bytes:
    """An attribute that holds attributes."""
    return attribute(kind | NESTED, b"".join(attributes))


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes in a piece of a message; of several with one number the last."""
    return dict(each_attribute(data))


def each_attribute(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes in a piece of a message, one after another."""
    at = 0
    while at + 4 <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, at)
        if length < 4:
            return
        yield kind & _TYPE_MASK, data[at + 4 : at + length]
        at += (length + 3) & ~3


def message(kind: int, flags: int, sequence: int, body: bytes) -> bytes:
    """A whole message."""
    return HEADER.pack(HEADER.size + len(body), kind, flags, sequence, 0) + body


def messages(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Type, flags, sequence and body of each message in what was received."""
    at = 0
    while at + HEADER.size <= len(data):
        length, kind, flags, sequence, _ = HEADER.unpack_from(data, at)
        if length < HEADER.size:
            return
        yield kind, flags, sequence, data[at + HEADER.size : at + length]
        at += (length + 3) & ~3


def text(value: bytes) -> str:
    """A text attribute."""
    return value.rstrip(b"\0").decode()


def number(value: bytes | None) -> int:
    """A number of 8, 16 or 32 bits; nothing is 0."""
    return int.from_bytes(value or b"", "little" if struct.pack("=H", 1)[0] else "big")
