"""The values Go leaves out although somebody set them: `paused: false`, `labels: {}`, `serviceName: ""`.

Only where Go has no pointer: `replicas: 0` says something. `drop(obj)` takes them away, with a function compiled once
for each class, so that clients read back what an upstream server would show and a zero is no change. Pod templates have
rules of their own (`core/defaults/empty.py`) and are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from msgspec import UNSET

from .base import Struct
from .pointers import POINTERS
from .schema import LIST, MAP, FieldInfo, fields

Drop = Callable[[Any], None]

_PLAIN: Final = ("string", "int", "bool", "float")
_NEVER_ZERO: Final = ("date-time", "int-or-string", "micro-time", "quantity")
_LEFT_ALONE: Final = ("ManagedFieldsEntry", "PodTemplateSpec")


def drop(obj: Struct) -> None:
    """Take away what says nothing, in the object and all its parts."""
    _dropper(type(obj))(obj)


@cache
def _dropper(cls: type[Struct]) -> Drop:
    if cls.__name__ in _LEFT_ALONE:
        return _nothing
    pointers = POINTERS.get(f"{cls.__module__.split('.')[2]}.{cls.__name__}", frozenset())
    names: list[str] = []
    parts: list[tuple[str, FieldInfo]] = []
    for field in fields(cls):
        plain = field.kind in _PLAIN and field.format not in _NEVER_ZERO and field.wire not in pointers
        if field.always is UNSET and (plain or field.kind in (LIST, MAP)):
            names.append(field.name)
        inner = _innermost(field).struct
        if inner is not None and inner.__name__ not in _LEFT_ALONE:
            parts.append((field.name, field))

    def run(obj: Any) -> None:
        for name in names:
            value = getattr(obj, name)
            if value is not None and not value:
                setattr(obj, name, None)
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
    if isinstance(value, Struct):
        _dropper(type(value))(value)
    elif field.items is not None:
        for each in value if field.kind == LIST else value.values() if field.kind == MAP else ():
            if each is not None:
                _descend(field.items, each)


def _nothing(obj: Any) -> None:
    pass
