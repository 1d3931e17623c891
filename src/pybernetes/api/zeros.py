"""The values Go writes although nobody set them: `status: {}`, `attached: false`, `name: ""`.

The `Always` markers of a kind say which. `fill(obj)` puts them in, with a function compiled once for each class. Kinds
that are written thousands of times a second do it by hand in their defaults; all others ask here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from msgspec import UNSET

from .base import Kind, Struct
from .omitempty import drop
from .schema import LIST, MAP, STRUCT, FieldInfo, fields

Fill = Callable[[Any], None]


def normalize(obj: Struct) -> None:
    """Write the object as Go does: without zeros that may be left out, with those that may not."""
    drop(obj)
    fill(obj)


def fill(obj: Struct) -> None:
    """Put the zero values that are always written into the object and all its parts; its own metadata is left alone."""
    _filler(type(obj))(obj)


@cache
def _filler(cls: type[Struct]) -> Fill:
    constants: list[tuple[str, Any]] = []
    structs: list[tuple[str, type[Struct]]] = []
    parts: list[tuple[str, FieldInfo]] = []
    for field in fields(cls):
        if field.name == "metadata" and issubclass(cls, Kind):
            continue
        if field.kind == STRUCT and field.always == {} and field.struct:
            structs.append((field.name, field.struct))
        elif field.always is not UNSET and field.always is not None:
            constants.append((field.name, field.always))
        if _innermost(field).struct is not None:
            parts.append((field.name, field))
    if not constants and not structs and not parts:
        return _nothing

    def run(obj: Any) -> None:
        for name, value in constants:
            if getattr(obj, name) is None:
                setattr(obj, name, value)
        for name, struct in structs:
            if getattr(obj, name) is None:
                setattr(obj, name, struct())
        for name, field in parts:
            value = getattr(obj, name)
            if value is not None:
                _descend(field, value)

    return run


def _innermost(field: FieldInfo) -> FieldInfo:
    while field.items is not None:
        field = field.items
    return field


def _descend(field: FieldInfo, value: Any) -> None:
    if field.kind == STRUCT:
        assert field.struct is not None
        _filler(field.struct)(value)
        return
    assert field.items is not None
    for each in value if field.kind == LIST else value.values() if field.kind == MAP else ():
        if each is not None:
            _descend(field.items, each)


def _nothing(obj: Any) -> None:
    pass
