"""Compares two values of one kind, field by field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .fieldset import Set
from .items import element
from .node import DEDUCED, LIST, MAP, UNTYPED, List, Map, Node, shape
from .paths import Path, field


class _Absent:
    """Not there, which is not the same as null."""


ABSENT: Final = _Absent()


class Comparison:
    """Paths that were added, removed, and are in both with different values; no path is in two of them."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self, added: Set, modified: Set, removed: Set) -> None:
        self.added, self.modified, self.removed = added, modified, removed

    def filtered(self, keep: Callable[[Set], Set] | None) -> Comparison:
        """The comparison without the fields that do not count."""
        if keep is None:
            return self
        return Comparison(keep(self.added), keep(self.modified), keep(self.removed))


class Walker:
    """Collects changes; `compare` may be called for several places of one object."""

    def __init__(self) -> None:
        self._added: set[Path] = set()
        self._modified: set[Path] = set()
        self._removed: set[Path] = set()

    def result(self) -> Comparison:
        """The comparison."""
        for found in (self._added, self._modified, self._removed):
            found.discard(())
        return Comparison(frozenset(self._added), frozenset(self._modified), frozenset(self._removed))

    def compare(self, old: Any, new: Any, node: Node, path: Path = ()) -> None:
        """Note how `new` differs from `old` at this place; one of them may be ABSENT."""
        if old is ABSENT:
            self._added.add(path)
            self._descend(shape(node, new), ABSENT, new, node, path)
        elif new is ABSENT:
            self._removed.add(path)
            self._descend(shape(node, old), old, ABSENT, node, path)
        else:
            # Equal is equal, unless a place may hold anything: then Python takes 1, 1.0 and True for one.
            if old == new and node is not DEDUCED and node is not UNTYPED:
                return
            before, after = shape(node, old), shape(node, new)
            if before != after:
                self._descend(before, old, new, node, path)
            self._descend(after, old, new, node, path)

    def _descend(self, what: str, old: Any, new: Any, node: Node, path: Path) -> None:
        if what == MAP:
            assert node.map is not None
            before, after = _expect(dict, old), _expect(dict, new)
            if not node.map.atomic and (before or after):
                self._maps(before or {}, after or {}, node.map, path)
                return
        elif what == LIST:
            assert node.list is not None
            items, others = _expect(list, old), _expect(list, new)
            if not node.list.atomic and (items or others):
                self._lists(items or [], others or [], node.list, path)
                return
        if old is not ABSENT and new is not ABSENT and not same(old, new):
            self._modified.add(path)

    def _maps(self, old: dict[str, Any], new: dict[str, Any], kind: Map, path: Path) -> None:
        for key, value in old.items():
            child = kind.child(key)
            if child is not None:
                self.compare(value, new.get(key, ABSENT), child, (*path, field(key)))
        for key, value in new.items():
            if key not in old:
                child = kind.child(key)
                if child is not None:
                    self.compare(ABSENT, value, child, (*path, field(key)))

    def _lists(self, old: list[Any], new: list[Any], kind: List, path: Path) -> None:
        before, after = _by_element(kind, old), _by_element(kind, new)
        for name in {**before, **after}:
            ours, theirs = before.get(name, ()), after.get(name, ())
            below = (*path, name)
            if len(ours) <= 1 and len(theirs) <= 1:
                self.compare(ours[0] if ours else ABSENT, theirs[0] if theirs else ABSENT, kind.element, below)
            elif len(ours) > 1 and len(theirs) > 1:
                # Duplicate items are one field.
                if not same(list(ours), list(theirs)):
                    self._modified.add(below)
            elif len(ours) > 1:
                if theirs:
                    self.compare(ABSENT, theirs[0], kind.element, below)
                self._removed.add(below)
            else:
                if ours:
                    self.compare(ours[0], ABSENT, kind.element, below)
                self._added.add(below)


def compare(old: Any, new: Any, node: Node) -> Comparison:
    """The changes from one value to the other."""
    walker = Walker()
    walker.compare(old, new, node)
    return walker.result()


def same(left: Any, right: Any) -> bool:
    """Whether two values are one in JSON, where 1 is 1.0 and not true."""
    if left != right:
        return False
    if isinstance(left, dict):
        return all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return all(map(same, left, right))
    return isinstance(left, bool) is isinstance(right, bool)


def _expect(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else None


def _by_element(kind: List, items: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(element(kind, item), []).append(item)
    return found
