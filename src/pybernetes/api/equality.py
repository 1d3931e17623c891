"""Whether two values mean the same: an absent list, map or text and an empty one are one and the same to the API.

Clients send `labels: {}` or leave it out as they please; neither is a change, none bumps a generation and none hurts an
immutable field. Quantities and times are canonical once defaults are filled in, so plain equality is enough for them.
"""

from __future__ import annotations

from typing import Any

import msgspec

_CAN_BE_EMPTY = (str, list, dict)


def semantically_equal(one: Any, other: Any) -> bool:
    """Whether two values of the same field mean the same."""
    if one == other:
        return True
    if _empty(one):
        return _empty(other)
    if isinstance(one, msgspec.Struct):
        return type(one) is type(other) and all(
            semantically_equal(getattr(one, name), getattr(other, name)) for name in one.__struct_fields__
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(semantically_equal, one, other))
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(semantically_equal(value, other[key]) for key, value in one.items())
        )
    return False


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, _CAN_BE_EMPTY) and not value)
