"""D-Bus messages as bytes: the types that logind's and systemd's calls use. Pure.

Everything is aligned to its size, counted from the beginning of the message; we write little-endian and read both.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Final

METHOD_CALL, METHOD_RETURN, ERROR, SIGNAL = 1, 2, 3, 4
NO_REPLY_EXPECTED: Final = 1
PROTOCOL: Final = 1
HEADER_SIZE: Final = 16

_NUMBERS: Final = {"y": "B", "b": "I", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d", "h": "I"}
_ALIGN: Final = {"s": 4, "o": 4, "g": 1, "a": 4, "(": 8, "{": 8, "v": 1}
_FIELDS: Final = {
    "path": (1, "o"),
    "interface": (2, "s"),
    "member": (3, "s"),
    "error": (4, "s"),
    "reply_to": (5, "u"),
    "destination": (6, "s"),
    "sender": (7, "s"),
    "signature": (8, "g"),
    "fds": (9, "u"),
}
_NAMES: Final = {code: name for name, (code, _) in _FIELDS.items()}
MAX_MESSAGE: Final = 1 << 27
"""Bytes; the specification's."""


class WireError(Exception):
    """Bytes that are no message."""


@dataclass(slots=True)
class Message:
    """A call, its answer, an error or a signal."""

    type: int
    serial: int = 0
    flags: int = 0
    body: tuple[Any, ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)
    """`path`, `interface`, `member`, `error`, `reply_to`, `destination`, `sender`, `signature`, `fds`."""
    fds: list[int] = field(default_factory=list)
    """File descriptors that came with it; `h` in the body is an index."""


def split(signature: str) -> list[str]:
    """The single types that a signature is made of."""
    parts, at = [], 0
    while at < len(signature):
        end = _end(signature, at)
        parts.append(signature[at:end])
        at = end
    return parts


def _end(signature: str, at: int) -> int:
    if at >= len(signature):
        raise WireError(f"signature {signature!r} ends too soon")
    char = signature[at]
    if char == "a":
        return _end(signature, at + 1)
    if char in "({":
        close = {"(": ")", "{": "}"}[char]
        at += 1
        while at < len(signature) and signature[at] != close:
            at = _end(signature, at)
        if at >= len(signature):
            raise WireError(f"signature {signature!r} is not closed")
        return at + 1
    if char not in _NUMBERS and char not in "sogv":
        raise WireError(f"signature {signature!r} has an unknown type {char!r}")
    return at + 1


class _Writer:
    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, size: int) -> None:
        self.data += bytes(-len(self.data) % size)

    def put(self, kind: str, value: Any) -> None:
        if kind in _NUMBERS:
            code = _NUMBERS[kind]
            self.align(struct.calcsize(code))
            self.data += struct.pack("<" + code, value)
        elif kind in "so":
            text = str(value).encode()
            self.put("u", len(text))
            self.data += text + b"\0"
        elif kind == "g":
            self.data += bytes([len(value)]) + value.encode() + b"\0"
        elif kind == "v":
            inner, content = value
            self.put("g", inner)
            self.put(inner, content)
        elif kind[0] == "a":
            self._array(kind[1:], value)
        else:
            self.align(8)
            for each, content in zip(split(kind[1:-1]), value, strict=True):
                self.put(each, content)

    def _array(self, kind: str, values: Any) -> None:
        self.put("u", 0)
        at = len(self.data)
        self.align(_alignment(kind))
        start = len(self.data)
        for each in values.items() if kind[0] == "{" else values:
            self.put(kind, each)
        struct.pack_into("<I", self.data, at - 4, len(self.data) - start)


class _Reader:
    def __init__(self, data: bytes, order: str, at: int = 0) -> None:
        self.data, self.order, self.at = data, order, at

    def align(self, size: int) -> None:
        self.at += -self.at % size

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if len(found) < size:
            raise WireError("the message ends too soon")
        self.at += size
        return found

    def get(self, kind: str) -> Any:
        if kind in _NUMBERS:
            code = _NUMBERS[kind]
            size = struct.calcsize(code)
            self.align(size)
            (value,) = struct.unpack(self.order + code, self.take(size))
            return bool(value) if kind == "b" else value
        if kind in "so":
            text = self.take(self.get("u"))
            self.take(1)
            return text.decode()
        if kind == "g":
            text = self.take(self.take(1)[0])
            self.take(1)
            return text.decode("ascii")
        if kind == "v":
            (inner,) = split(self.get("g"))
            return self.get(inner)
        if kind[0] == "a":
            return self._array(kind[1:])
        self.align(8)
        return tuple(self.get(each) for each in split(kind[1:-1]))

    def _array(self, kind: str) -> Any:
        size = self.get("u")
        self.align(_alignment(kind))
        end = self.at + size
        if end > len(self.data):
            raise WireError("an array is longer than its message")
        values = []
        while self.at < end:
            values.append(self.get(kind))
        return dict(values) if kind[0] == "{" else values


def _alignment(kind: str) -> int:
    return _ALIGN.get(kind[0]) or struct.calcsize(_NUMBERS[kind[0]])


def encode(message: Message, signature: str = "") -> bytes:
    """The bytes of a message whose body has this signature."""
    body = _Writer()
    for kind, value in zip(split(signature), message.body, strict=True):
        body.put(kind, value)
    given = {**message.fields, **({"signature": signature} if signature else {})}
    head = _Writer()
    for kind, value in zip(
        "yyyyuu", (ord("l"), message.type, message.flags, PROTOCOL, len(body.data), message.serial), strict=True
    ):
        head.put(kind, value)
    head.put("a(yv)", [(_FIELDS[name][0], (_FIELDS[name][1], value)) for name, value in given.items()])
    head.align(8)
    return bytes(head.data + body.data)


def size(head: bytes) -> int:
    """How long the message is whose first `HEADER_SIZE` bytes these are."""
    order = _order(head)
    body, _, fields = struct.unpack(order + "III", head[4:HEADER_SIZE])
    total: int = HEADER_SIZE + fields + -(HEADER_SIZE + fields) % 8 + body
    if total > MAX_MESSAGE:
        raise WireError(f"a message of {total} bytes is too long")
    return total


def decode(data: bytes) -> Message:
    """The message that these bytes are."""
    order = _order(data)
    reader = _Reader(data, order, 4)
    body_size, serial = reader.get("u"), reader.get("u")
    fields = {_NAMES[code]: value for code, value in reader.get("a(yv)") if code in _NAMES}
    reader.align(8)
    body = _Reader(data[reader.at : reader.at + body_size], order)
    values = tuple(body.get(kind) for kind in split(fields.get("signature", "")))
    return Message(data[1], serial, data[2], values, fields)


def _order(data: bytes) -> str:
    try:
        return {ord("l"): "<", ord("B"): ">"}[data[0]]
    except (KeyError, IndexError):
        raise WireError("no D-Bus message") from None
