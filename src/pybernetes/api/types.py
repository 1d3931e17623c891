"""Types of fields: wire types with a meaning of their own, and markers for schemas.

Everything here is read through `Annotated`. Annotations are strings at run time, so a marker costs nothing until
`api/schema.py` asks for it; the decoder sees only the plain type.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec


class Marker(msgspec.Struct, frozen=True):
    """Markers that are equal have one class: Python before 3.11.4 keeps one `Annotated` for all whose markers are
    equal, and tuples of different classes may be.
    """


class Format(Marker, frozen=True):
    """The meaning of a plain type, as OpenAPI's `format`."""

    name: str


class Required:
    """The field must be given; validation says so, not the decoder."""


class Enum(tuple[str, ...]):
    """The values that the API knows today. Clients must expect others."""

    __slots__ = ()

    def __new__(cls, *values: str) -> Enum:
        return super().__new__(cls, values)


class ListType(Marker, frozen=True):
    """How server-side apply merges a list: `atomic`, `set`, or `map` by its keys."""

    name: str
    keys: tuple[str, ...] = ()


class MapType(Marker, frozen=True):
    """How server-side apply merges a map or a struct: `granular` unless it says `atomic`."""

    name: str


class Patch(Marker, frozen=True):
    """How a strategic merge patch treats the field."""

    strategy: str
    merge_key: str | None = None


class Always(Marker, frozen=True):
    """Upstream writes this value when the field is unset. It is the schema's default too, if a schema can say it."""

    value: Any


class Pointer:
    """Zero says something here: `false`, 0 and `""` are kept, as a pointer in Go keeps them.

    In a text, number or flag without this marker zero is the same as absent. Other types need no marker: what is not a
    pointer in Go is marked `Always`, and lists and maps are absent when empty.
    """


class Default(Marker, frozen=True):
    """The schema's default."""

    value: Any


class Union(Marker, frozen=True):
    """At most one of the fields may be set; the discriminator, if any, names which (wire name -> its value)."""

    discriminator: str | None
    fields: dict[str, str]


# Bounds as in Go, where a larger number is refused while decoding.
Int32 = Annotated[int, Format("int32"), msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Format("int64"), msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Double = Annotated[float, Format("double")]

Base64 = Annotated[str, Format("byte")]
Duration = Annotated[str, Format("duration")]
IntOrString = Annotated[int | str, Format("int-or-string")]
MicroTime = Annotated[str, Format("micro-time")]
Quantity = Annotated[str | int | float, Format("quantity")]
Time = Annotated[str, Format("date-time")]

# Anything at all, kept as it came.
FieldsV1 = Annotated[Any, Format("fields-v1")]
JSON = Annotated[Any, Format("json")]
RawExtension = Annotated[Any, Format("raw-extension")]
