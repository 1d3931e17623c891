"""Names of places in an object, as `metadata.managedFields` writes them.

A path is a tuple of elements and an element is its text on the wire, in one canonical spelling, so that equal
elements are equal strings:

    f:replicas                       a field of a struct, a key of a map
    k:{"port":80,"protocol":"TCP"}   the item of a list with these keys, sorted by name
    v:"a.io/b"                       an item of a set of scalars
    i:0                              an item by its index; read, never written
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from ..gocompat import quote

Path = tuple[str, ...]

# Numbers before strings before booleans before lists before maps before null: upstream's order of unlike values.
_RANK = {int: 0, float: 0, str: 1, bool: 2, list: 3, dict: 4, type(None): 5}


_SHORT = 512
"""Characters of an element that is remembered: names and keys of the usual lengths."""


def field(name: str) -> str:
    """The element of a field."""
    return "f:" + name


def key(pairs: Iterable[tuple[str, Any]]) -> str:
    """The element of a list's item with these keys."""
    pairs = tuple(pairs)
    # Lists are full of names and ports; Python treats other values as equal (1 and True).
    plain = all(value.__class__ is int or (value.__class__ is str and len(value) <= _SHORT) for _, value in pairs)
    return _known_key(pairs) if plain else _key(pairs)


def _key(pairs: tuple[tuple[str, Any], ...]) -> str:
    return "k:{" + ",".join(f"{_name(name)}:{_json(value)}" for name, value in sorted(pairs, key=_first)) + "}"


_known_key = lru_cache(16384)(_key)


def value(scalar: Any) -> str:
    """The element of an item of a set."""
    return "v:" + _json(scalar)


def parse(text: str) -> str | None:
    """The canonical spelling; nothing for an element of a kind from the future; ValueError if it is malformed."""
    return _known_element(text) if len(text) <= _SHORT else _parse(text)


def _parse(text: str) -> str | None:
    kind, content = text[:1], text[2:]
    if len(text) < 2:
        raise ValueError("key must be 2 characters long:")
    if text[1] != ":":
        raise ValueError(f"missing colon: {text}")
    if kind == "f":
        return text
    if kind == "k":
        pairs = msgspec.json.decode(content)
        if not isinstance(pairs, dict):
            raise ValueError(f"expected an object: {text}")
        return key(pairs.items())
    if kind == "v":
        return value(msgspec.json.decode(content))
    return f"i:{int(content)}" if kind == "i" else None


_known_element = lru_cache(8192)(_parse)


def order(element: str) -> tuple[Any, ...]:
    """Sorts elements as upstream does: fields, keys, values, indexes."""
    return _known_order(element) if len(element) <= _SHORT else _order_of(element)


def _order_of(element: str) -> tuple[Any, ...]:
    kind, content = element[0], element[2:]
    if kind == "f":
        return (0, content)
    if kind == "k":
        return (1, tuple((name, *_order(item)) for name, item in msgspec.json.decode(content).items()))
    if kind == "v":
        return (2, *_order(msgspec.json.decode(content)))
    return (3, int(content))


_known_order = lru_cache(8192)(_order_of)


def show(path: Path) -> str:
    """The path as messages write it: `.spec.containers[name="app"].image`."""
    return "".join(map(_show, path))


def _show(element: str) -> str:
    kind, content = element[0], element[2:]
    if kind == "f":
        return "." + content
    if kind == "k":
        pairs = msgspec.json.decode(content).items()
        return "[" + ",".join(f"{name}={show_value(item)}" for name, item in pairs) + "]"
    return f"[={show_value(msgspec.json.decode(content))}]" if kind == "v" else f"[{content}]"


def show_value(item: Any) -> str:
    """A value inside a path."""
    match item:
        case None:
            return "null"
        case bool():
            return "true" if item else "false"
        case str():
            return quote.quote(item)
        case float():
            return quote.number(item)
        case list():
            return "[" + ",".join(map(show_value, item)) + "]"
        case dict():
            return "".join(f"{name}={show_value(each)}" for name, each in item.items())
    return str(item)


def _order(item: Any) -> tuple[Any, ...]:
    return (_RANK[type(item)], quote.json(item) if isinstance(item, list | dict | None) else item)


def _json(item: Any) -> str:
    # To upstream 1 and 1.0 are one value.
    if isinstance(item, float) and item.is_integer():
        item = int(item)
    return quote.json(item)


def _name(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]
