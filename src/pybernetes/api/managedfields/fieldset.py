"""Sets of fields: who owns what, and what changed.

A set is a frozenset of paths, so union, intersection and difference are Python's own. A path in the set says nothing
about the paths below or above it. On the wire a set is a tree (`FieldsV1`) in which `{}` is a leaf and `"."` says
that an inner node is a member too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from .paths import Path, order, parse

Set = frozenset[Path]
Tree = dict[str, Any]
"""Elements to subtrees; a member is marked by the key `"."` in its own subtree."""

EMPTY: Set = frozenset()

LONGEST_REMEMBERED = 16 << 10
"""Bytes of `fieldsV1` whose set is remembered; the sets of large objects would take gigabytes."""
LARGEST_REMEMBERED = 500
"""Paths in a set about which something is remembered."""


def decode(fields: Any) -> Set:
    """From `fieldsV1`: its bytes, or the decoded object. ValueError if it is malformed."""
    if fields is None:
        return EMPTY
    data = bytes(fields) if isinstance(fields, bytes | msgspec.Raw) else msgspec.json.encode(fields)
    return _known_set(data) if len(data) <= LONGEST_REMEMBERED else _decode(data)


def _decode(data: bytes) -> Set:
    tree = msgspec.json.decode(data)
    found: set[Path] = set()
    if tree is not None:
        _collect(tree, (), found)
    return frozenset(found)


_known_set = lru_cache(4096)(_decode)  # Objects made from one template have the same sets.


def _collect(tree: Any, path: Path, found: set[Path]) -> None:
    if not isinstance(tree, dict):
        raise ValueError("expected an object")
    inner = False
    for text, subtree in tree.items():
        if text == ".":
            continue
        element = parse(text)
        if element is not None:
            inner = True
            _collect(subtree or {}, (*path, element), found)
    if path and (not inner or "." in tree):
        found.add(path)


def encode(fields: Set) -> bytes:
    """To `fieldsV1`, in upstream's order of elements."""
    return _known_bytes(fields) if len(fields) <= LARGEST_REMEMBERED else _encode(fields)


def _encode(fields: Set) -> bytes:
    return msgspec.json.encode(_sorted(tree(fields)))


_known_bytes = lru_cache(4096)(_encode)


def tree(fields: Set) -> Tree:
    """The set as a tree, unsorted."""
    root: Tree = {}
    for path in fields:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return root


def _sorted(node: Tree) -> Tree:
    if len(node) == 1:
        ((element, subtree),) = node.items()
        return {} if element == "." else {element: _sorted(subtree)}
    inner = sorted((element for element in node if element != "."), key=order)
    result: Tree = {".": {}} if "." in node else {}
    for element in inner:
        result[element] = _sorted(node[element])
    return result


def without_below(fields: Set, removed: Set) -> Set:
    """The set without these paths and everything below them."""
    if not removed:
        return fields
    lengths = {len(path) for path in removed}
    return frozenset(path for path in fields if removed.isdisjoint([path[:length] for length in lengths]))


def walk(fields: Set) -> Iterator[Path]:
    """The paths in the order of messages: at each node first its members, then what is below them."""
    yield from _walk(tree(fields), ())


def _walk(node: Tree, path: Path) -> Iterator[Path]:
    inner = sorted((element for element in node if element != "."), key=order)
    for element in inner:
        if "." in node[element]:
            yield (*path, element)
    for element in inner:
        yield from _walk(node[element], (*path, element))
