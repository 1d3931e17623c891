"""From an answer's bytes to kinds, and back.

The fast path is the compiled decoder, which refuses fields it does not know. A server may be newer than we are, so a
refusal is not the end: the answer is read again without them (`api/strict.py`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw

from pybernetes.api import scheme
from pybernetes.api.base import Kind, Struct
from pybernetes.api.meta.v1 import ListMeta

K = TypeVar("K", bound=Kind)
S = TypeVar("S", bound=Struct)


class List(msgspec.Struct, Generic[S], kw_only=True, rename="camel"):
    """A list of objects, and the revision it is a picture of."""

    kind: str | None = None
    api_version: str | None = None
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[S] | None = None

    @property
    def resource_version(self) -> str:
        """Where a watch goes on."""
        return self.metadata.resource_version or ""

    @property
    def continue_token(self) -> str:
        """The continue token for the next page; empty at the end."""
        return self.metadata.continue_ or ""


class _RawList(msgspec.Struct, kw_only=True, rename="camel"):
    metadata: Any = None
    items: list[Raw] | None = None


class RawEvent(msgspec.Struct):
    """A watch event whose object is still bytes."""

    type: str
    object: Raw


decode_event = msgspec.json.Decoder(RawEvent).decode
_decode_raw_list = msgspec.json.Decoder(_RawList).decode


def decode(kind: type[S], body: bytes | Raw) -> S:
    """An object of this class."""
    try:
        obj: S = decoder(kind).decode(body)
    except msgspec.ValidationError:
        from pybernetes.api import strict

        obj, _ = strict.convert(kind, msgspec.json.decode(body))
    return obj


def decode_list(kind: type[S], body: bytes) -> List[S]:
    """A list of objects of this class."""
    try:
        found: List[S] = _list_decoder(kind).decode(body)
    except msgspec.ValidationError:
        from pybernetes.api import strict

        raw = _decode_raw_list(body)
        metadata, _ = strict.convert(ListMeta, raw.metadata or {})
        found = List(metadata=metadata, items=[decode(kind, item) for item in raw.items or ()])
    if found.items is None:
        found.items = []
    return found


def encode(obj: Struct, kind: str, api_version: str) -> bytes:
    """The body of a request; says what it is even if the object does not."""
    if getattr(obj, "kind", kind) is None or getattr(obj, "api_version", api_version) is None:
        obj = msgspec.structs.replace(obj, kind=kind, api_version=api_version)
    return scheme.encoder.encode(obj)


@cache
def decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    """From JSON to a class; refuses unknown fields."""
    return msgspec.json.Decoder(kind)


@cache
def _list_decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(List[kind])  # type: ignore[valid-type]
