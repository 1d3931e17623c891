"""A custom resource in memory.

Metadata is the same Struct as every kind's, so that all that works on metadata works here; the rest is plain JSON, as
its schema is known only at run time. Numbers are Go's: of 64 bits, and written without a fraction if they are whole.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..gocompat import goencoder

Content = dict[str, Any]

TYPE_META: Final = ("apiVersion", "kind", "metadata")

_to_json: Final = msgspec.json.Encoder(order="deterministic").encode


class CustomObject:
    """An object of a kind that users defined. `content` is all but `kind`, `apiVersion` and `metadata`."""

    __slots__ = ("api_version", "content", "kind", "metadata")

    def __init__(self, kind: str | None, api_version: str | None, metadata: Any, content: Content) -> None:
        self.kind = kind
        self.api_version = api_version
        self.metadata = metadata
        self.content = content

    @property
    def spec(self) -> Any:
        """`spec`, if there is one."""
        return self.content.get("spec")

    @property
    def status(self) -> Any:
        """`status`, if there is one."""
        return self.content.get("status")


def encode(obj: CustomObject) -> bytes:
    """The object as JSON: type, metadata, and the rest by name, so that equal objects are equal bytes."""
    rest = _to_json(obj.content)
    if b".0" in rest or b"e1" in rest or b"e2" in rest:  # it may hold numbers that Go writes without a fraction
        rest = _to_json(whole_numbers(obj.content))
    return b'{"kind":"%b","apiVersion":"%b","metadata":%b%b' % (
        (obj.kind or "").encode(),
        (obj.api_version or "").encode(),
        goencoder.encode(obj.metadata),
        b"," + rest[1:] if len(rest) > 2 else b"}",
    )


def plain(obj: CustomObject) -> Content:
    """The object as plain JSON values; the content is shared, the metadata is not."""
    metadata: Content = msgspec.json.decode(goencoder.encode(obj.metadata))
    return {"apiVersion": obj.api_version, "kind": obj.kind, "metadata": metadata, **obj.content}


def whole_numbers(value: Any) -> Any:
    """The value as it is written: floats that are whole have no fraction."""
    match value:
        case float():
            return int(value) if value.is_integer() and abs(value) < 1e21 else value
        case dict():
            return {key: whole_numbers(each) for key, each in value.items()}
        case list():
            return [whole_numbers(each) for each in value]
    return value


def short_numbers(value: Any) -> Any:
    """The value as Go reads it: integers beyond 64 bits are floats."""
    match value:
        case bool():
            return value
        case int():
            return value if -(1 << 63) <= value < 1 << 63 else float(value)
        case dict():
            return {key: short_numbers(each) for key, each in value.items()}
        case list():
            return [short_numbers(each) for each in value]
    return value
