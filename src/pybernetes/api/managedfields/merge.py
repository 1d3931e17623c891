"""Laying an applied configuration over an object, and taking fields out of an object.

Both return new values that share what they did not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .compare import ABSENT
from .fieldset import Set, Tree, tree
from .items import element
from .node import LIST, MAP, List, Map, Node, shape
from .paths import field


def merge(live: Any, applied: Any, node: Node) -> Any:
    """The live value with everything the applied one says; nothing is removed."""
    what = shape(node, applied)
    if what == MAP:
        assert node.map is not None
        ours, theirs = _or_empty(dict, live), _or_empty(dict, applied)
        if not node.map.atomic and (ours or theirs):
            return _merge_maps(ours, theirs, node.map)
    elif what == LIST:
        assert node.list is not None
        ours, theirs = _or_empty(list, live), _or_empty(list, applied)
        if not node.list.atomic and (ours or theirs):
            return _merge_lists(ours, theirs, node.list)
    return applied


def _merge_maps(live: dict[str, Any], applied: dict[str, Any], kind: Map) -> dict[str, Any]:
    result = dict(live)
    for key, value in applied.items():
        child = kind.child(key)
        result[key] = merge(live.get(key, ABSENT), value, child) if child is not None else value
    return result


def _merge_lists(live: list[Any], applied: list[Any], kind: List) -> list[Any]:
    """Items of both in the order of the applied list; those that only live has stay in front of what they preceded."""
    names = [element(kind, item) for item in live]
    ours: dict[str, Any] = {}
    for name, item in zip(names, live, strict=True):
        # Nothing merges into duplicate items.
        ours[name] = None if name in ours else item
    theirs = {element(kind, item): item for item in applied}
    waiting = iter(theirs)
    shared = [name for name in theirs if name in ours]
    shared.reverse()
    result = []

    def take(until: str | None) -> Iterator[Any]:
        for name in waiting:
            yield merge(ours.get(name, ABSENT), theirs[name], kind.element)
            if until is None or name == until:
                return

    for name, item in zip(names, live, strict=True):
        if name not in theirs:
            result.append(item)
        elif not shared:
            result += take(None)
        elif name == shared[-1]:
            result += take(shared.pop())
    for name in waiting:
        result.append(merge(ours.get(name, ABSENT), theirs[name], kind.element))
    return result


def remove(value: Any, fields: Set, node: Node) -> Any:
    """The value without these fields and all below them; what is left empty becomes null."""
    return _remove(value, tree(fields), node)


def _remove(value: Any, gone: Tree, node: Node) -> Any:
    what = shape(node, value)
    if what == MAP:
        assert node.map is not None
        if not isinstance(value, dict) or node.map.atomic:
            return None
        return _remove_keys(value, gone, node.map) or None
    if what == LIST:
        assert node.list is not None
        if not isinstance(value, list) or node.list.atomic:
            return None
        return _remove_items(value, gone, node.list) or None
    return value


def _remove_keys(value: dict[str, Any], gone: Tree, kind: Map) -> dict[str, Any]:
    result = {}
    for key, item in value.items():
        below = gone.get(field(key))
        if below is None:
            result[key] = item
        elif "." not in below:
            child = kind.child(key)
            result[key] = _remove(item, below, child) if child is not None else item
    return result


def _remove_items(value: list[Any], gone: Tree, kind: List) -> list[Any]:
    result = []
    for item in value:
        below = gone.get(element(kind, item))
        if below is None:
            result.append(item)
        elif "." not in below:
            result.append(_remove(item, below, kind.element))
    return result


def _or_empty(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else kind()
