"""The values of an `enum`, found by their hash: a schema may have tens of thousands, and an object look as many up."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any


def frozen(value: Any) -> Hashable:
    """A JSON value in a form that can be hashed; two forms are equal exactly if the values are."""
    if isinstance(value, dict):
        return frozenset([(key, frozen(each)) for key, each in value.items()])
    if isinstance(value, list):
        return tuple([frozen(each) for each in value])
    return value  # type: ignore[no-any-return]


class Enumeration:
    """Whether a value is one of an enumeration: null never is, and a fraction is cut off for a whole number."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = frozenset([(isinstance(each, bool), frozen(each)) for each in values])
        self._integers = frozenset([each for each in values if type(each) is int])

    def __contains__(self, value: Any) -> bool:
        if value is None:
            return False
        if (isinstance(value, bool), frozen(value)) in self._values:
            return True
        return type(value) is float and int(value) in self._integers
