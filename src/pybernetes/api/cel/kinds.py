"""Built-in kinds as types, as far as their published schemas say what they are."""

from __future__ import annotations

from functools import cache

from .. import schema
from ..base import Struct
from ..schema import FieldInfo
from . import types as t
from .escaping import escape
from .types import Field, Type

_SCALARS = {"string": t.STRING, "int": t.INT, "bool": t.BOOL, "float": t.DOUBLE}
_FORMATS = {
    "date-time": t.TIMESTAMP,
    "micro-time": t.TIMESTAMP,
    "byte": t.BYTES,
    "int-or-string": t.DYN,
    "fields-v1": Type("object", "FieldsV1", fields={}),
    "raw-extension": Type("object", "RawExtension", fields={}),
}


@cache
def type_of_kind(cls: type[Struct]) -> Type:
    """The type of a built-in kind's objects."""
    return _struct(cls, {})


def _struct(cls: type[Struct], known: dict[type[Struct], Type]) -> Type:
    if cls in known:  # some kinds contain themselves
        return known[cls]
    fields: dict[str, Field] = {}
    made = known[cls] = Type("object", f"{cls.__module__}.{cls.__name__}", fields=fields)
    for info in schema.fields(cls):
        type, name = _field(info, known), escape(info.wire)
        if type is not None and name is not None:
            fields[name] = Field(type, info.wire, info.required)
    return made


def _field(info: FieldInfo, known: dict[type[Struct], Type]) -> Type | None:
    """The type of a field, or None if expressions may not see it."""
    if info.format in _FORMATS:
        return _FORMATS[info.format]
    if info.struct is not None:
        return _struct(info.struct, known)
    if info.kind in (schema.LIST, schema.MAP):
        assert info.items is not None
        element = _field(info.items, known)
        if element is None:
            return None
        return t.list_of(element) if info.kind == schema.LIST else t.map_of(t.STRING, element)
    return _SCALARS.get(info.kind)
