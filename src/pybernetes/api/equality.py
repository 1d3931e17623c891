"""Whether two values mean the same: an absent list, map or text and an empty one are one and the same to the API.

Clients send `labels: {}` or leave it out as they please; neither is a change, none bumps a generation and none hurts an
immutable field. `1Gi` is 1073741824 bytes. But where Go has a pointer, zero is not absent: a missing `hostUsers` is not
`false`, and a missing `storageClassName` is not `""`.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from .base import Struct
from .quantity import QuantityError, parse
from .schema import WITHOUT_ZERO, FieldInfo, fields


def semantically_equal(one: Any, other: Any, info: FieldInfo | None = None) -> bool:
    """Whether two values mean the same; what is known about their field helps with zeros and quantities."""
    if one is other or one == other:
        return True
    if one is None or other is None:
        return _says_nothing(other if one is None else one, info)
    if isinstance(one, Struct):
        known = fields(type(one))
        return type(one) is type(other) and all(
            semantically_equal(getattr(one, each.name), getattr(other, each.name), each) for each in known
        )
    items = info.items if info else None
    if isinstance(one, list):
        return (
            isinstance(other, list)
            and len(one) == len(other)
            and all(semantically_equal(a, b, items) for a, b in zip(one, other, strict=True))
        )
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(semantically_equal(value, other[key], items) for key, value in one.items())
        )
    return info is not None and info.format == "quantity" and _same_quantity(one, other)


def _says_nothing(value: Any, info: FieldInfo | None) -> bool:
    """Whether a value is as good as absent."""
    if isinstance(value, list | dict):
        return not value
    if isinstance(value, Struct):
        return False
    if info is None:
        return bool(value == "")
    if info.format in WITHOUT_ZERO:
        return info.always is not UNSET and value == info.always
    return not value and not info.pointer


def _same_quantity(one: Any, other: Any) -> bool:
    try:
        return parse(str(one)) == parse(str(other))
    except QuantityError:
        return False
