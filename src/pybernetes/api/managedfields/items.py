"""Which item of a list is which."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ..gocompat import quote
from . import paths
from .node import List


class NoIdentity(ValueError):
    """The item has no key; with upstream's message."""


def element(kind: List, item: Any) -> str:
    """The path element of an item of a set, or of a list with keys."""
    return _keyed(kind, item) if kind.keys else _scalar(item)


def _keyed(kind: List, item: Any) -> str:
    if item is None:
        raise NoIdentity("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise NoIdentity("associative list with keys may not have non-map elements")
    fields = kind.element.map.fields if kind.element.map is not None else {}
    pairs = []
    for key in kind.keys:
        value = item.get(key, UNSET)
        if value is UNSET and key in fields:
            value = fields[key].default
        # A key without a value and a default is not part of the name: with it the item would be another one.
        if value is not UNSET:
            pairs.append((key, value))
    if not pairs:
        names = "[" + " ".join(map(quote.quote, kind.keys)) + "]"
        raise NoIdentity(
            f"associative list with keys has an element that omits all key fields {names} "
            "(and doesn't have default values for any key fields)"
        )
    return paths.key(pairs)


def _scalar(item: Any) -> str:
    if isinstance(item, dict):
        raise NoIdentity("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise NoIdentity("not supported: associative list with lists as elements")
    if item is None:
        raise NoIdentity("associative list without keys has an element that's an explicit null")
    return paths.value(item)
