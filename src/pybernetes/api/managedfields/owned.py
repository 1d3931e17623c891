"""The fields that a configuration names, and sets of fields against their schema."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .fieldset import LARGEST_REMEMBERED, Set
from .items import element
from .node import DEDUCED, LIST, MAP, List, Map, Node, shape
from .paths import Path, field

_REMEMBERED = 1024  # sets of one kind


def fields_of(value: Any, node: Node) -> Set:
    """Every leaf and every item of the value: what its applier owns.

    A struct's field that is a map or list with items is not in the set, its items are; a key of a map is, with all
    below it.
    """
    found: set[Path] = set()
    _collect(value, node, (), found)
    found.discard(())
    return frozenset(found)


def _collect(value: Any, node: Node, path: Path, found: set[Path]) -> None:
    what = shape(node, value)
    if what == MAP:
        assert node.map is not None
        if node.map.atomic:
            found.add(path)
        elif isinstance(value, dict):
            _collect_map(value, node.map, path, found)
    elif what == LIST:
        assert node.list is not None
        if node.list.atomic:
            found.add(path)
        elif isinstance(value, list):
            _collect_list(value, node.list, path, found)
    else:
        found.add(path)


def _collect_map(value: dict[str, Any], kind: Map, path: Path, found: set[Path]) -> None:
    for key, item in value.items():
        below = (*path, field(key))
        child = kind.child(key)
        if child is not None:
            _collect(item, child, below, found)
        if item is None or item == {} or key not in kind.fields:
            found.add(below)


def _collect_list(value: list[Any], kind: List, path: Path, found: set[Path]) -> None:
    names = [element(kind, item) for item in value]
    count = Counter(names)
    for name, item in zip(names, value, strict=True):
        below = (*path, name)
        if count[name] == 1:
            _collect(item, kind.element, below, found)
        found.add(below)


def with_named(fields: Set, node: Node) -> Set:
    """The set with every declared field that is above one of its paths.

    A manager of all that is in a struct is taken for the manager of the struct when fields are removed.
    """
    return fields | {path[:length] for path in fields for length in _declared(path[:-1], node)}


def _declared(path: Path, node: Node | None) -> list[int]:
    """The lengths of those beginnings of the path that end in a declared field."""
    found = []
    for length, name in enumerate(path, 1):
        if node is None:
            break
        if name[0] == "f" and node.map is not None:
            key = name[2:]
            if key in node.map.fields:
                found.append(length)
            node = node.map.child(key)
        else:
            node = node.list.element if name[0] == "k" and node.list is not None else None
    return found


def reconcile(fields: Set, node: Node) -> Set:
    """The set as the schema of today has it: who owned a part of what is atomic now owns the whole."""
    if len(fields) > LARGEST_REMEMBERED:
        return _reconcile(fields, node)
    known = node.reconciled
    if known is None:
        known = node.reconciled = {}
    found = known.get(fields)
    if found is None:
        if len(known) >= _REMEMBERED:
            known.clear()
        found = known[fields] = _reconcile(fields, node)
    return found


def _reconcile(fields: Set, node: Node) -> Set:
    return frozenset(_up_to_atomic(path, node) for path in fields)


def _up_to_atomic(path: Path, node: Node | None) -> Path:
    for length, name in enumerate(path):
        if node is None:
            return path
        if node.map is not None:
            if node.map.element is DEDUCED and not node.map.fields:
                return path
            if node.map.atomic and length:
                return path[:length]
            node = node.map.child(name[2:]) if name[0] == "f" else node.map.element
        elif node.list is not None:
            if node.list.atomic and length:
                return path[:length]
            node = node.list.element
        else:
            return path
    return path
