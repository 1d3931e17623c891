"""Objects of a kind with one list or map field at a size of choice, for every such field; and with all at once.

Elements are copies of the element that a good object has there, or made up from the types of the fields. `same`
elements are all equal, others differ in their names and numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from fuzz.wild import graft

from pybernetes.api.base import Struct
from pybernetes.api.schema import ANY, LIST, MAP, STRUCT, FieldInfo, fields

_NOT_GROWN = frozenset({"managedFields"})
DEPTH = 2
"""Levels of an element that is made up. Lists and maps deeper inside have a size of their own in another run."""
_FORMATS: dict[str, Any] = {
    "byte": "YQ==",
    "date-time": "2024-01-01T00:00:00Z",
    "micro-time": "2024-01-01T00:00:00.000000Z",
    "duration": "1h",
}


class Place(NamedTuple):
    """A list or map field, by the way to it from the object."""

    owner: type[Struct]
    info: FieldInfo
    way: tuple[str, ...]

    @property
    def name(self) -> str:
        return ".".join((*self.way, self.info.wire))


def groups(cls: type[Struct]) -> dict[type[Struct], list[Place]]:
    """The same by the class that has the fields."""
    found: dict[type[Struct], list[Place]] = {}
    for place in places(cls):
        found.setdefault(place.owner, []).append(place)
    return found


def places(cls: type[Struct]) -> Iterator[Place]:
    """Every list and map field of every class below a class, by the shortest way."""
    seen = {cls}
    todo: list[tuple[type[Struct], tuple[str, ...]]] = [(cls, ())]
    while todo:
        owner, way = todo.pop(0)
        for info in fields(owner):
            if info.wire in _NOT_GROWN:
                continue
            here = (*way, info.wire)
            inner = info
            if info.kind in (LIST, MAP):
                yield Place(owner, info, way)
            while inner.items is not None:
                here = (*here, "[]" if inner.kind == LIST else "{}")
                inner = inner.items
            if inner.struct is not None and inner.struct not in seen:
                seen.add(inner.struct)
                todo.append((inner.struct, here))


def grown(base: dict[str, Any], place: Place, count: int, same: bool) -> dict[str, Any]:
    """The base with so many elements in one field."""
    document = deepcopy(base)
    at: Any = document
    for step in place.way:
        if step == "[]":
            at = at[0]
        elif step == "{}":
            at = next(iter(at.values()))
        else:
            at = at.setdefault(step, {})
        at = at if at is not None else {}
    at[place.info.wire] = _many(place.info, at.get(place.info.wire), count, same)
    return document


def reachable(base: dict[str, Any], place: Place) -> dict[str, Any]:
    """The base with everything on the way to a field."""
    document: Any = {}
    for step in reversed(place.way):
        document = [document] if step == "[]" else {"k": document} if step == "{}" else {step: document}
    return graft(deepcopy(base), document)  # type: ignore[no-any-return]


def full(cls: type[Struct], base: dict[str, Any], count: int, same: bool) -> dict[str, Any]:
    """The base with so many elements in every list and map field of every class, each class once."""
    return _full(cls, base, count, same, set())


def _full(cls: type[Struct], base: Any, count: int, same: bool, seen: set[type[Struct]]) -> Any:
    seen.add(cls)
    result = dict(base) if isinstance(base, dict) else {}
    for info in fields(cls):
        if info.wire in _NOT_GROWN or info.wire in ("kind", "apiVersion"):
            continue
        there = result.get(info.wire)
        if info.kind in (LIST, MAP) and info.items is not None:
            value = _many(info, there, count, same)
            struct = info.items.struct
            if struct is not None and struct not in seen:
                key: Any = 0 if info.kind == LIST else next(iter(value))
                value[key] = _full(struct, value[key], count, same, seen)
            result[info.wire] = value
        elif info.struct is not None and info.struct not in seen:
            result[info.wire] = _full(info.struct, there, count, same, seen)
    return result


def _many(info: FieldInfo, there: Any, count: int, same: bool) -> Any:
    """A list or map of so many elements, like those that are there."""
    assert info.items is not None
    if info.kind == MAP:
        sample = next(iter(there.items())) if isinstance(there, dict) and there else None
        value = sample[1] if sample else _sample(info.items, 0, DEPTH)
        return {f"k{number}": value for number in range(count)}
    if isinstance(there, list) and there:
        return [deepcopy(there[0]) if same else _renamed(there[0], number) for number in range(count)]
    return [_sample(info.items, 0 if same else number, DEPTH) for number in range(count)]


def _renamed(value: Any, number: int) -> Any:
    """A copy with other names and numbers."""
    if isinstance(value, dict):
        return {
            key: f"{each}{number}"
            if isinstance(each, str) and key in _NAMES
            else (each + number) % 60000 + 1
            if type(each) is int and "ort" in key
            else deepcopy(each)
            for key, each in value.items()
        }
    return f"{value}{number}" if isinstance(value, str) else value


_NAMES = frozenset({"name", "key", "topologyKey", "mountPath", "devicePath", "type", "uid", "ip", "host", "claimName"})


def _sample(info: FieldInfo, number: int, depth: int) -> Any:
    match info.kind:
        case "string":
            if info.enum:
                return info.enum[number % len(info.enum)]
            if info.format in ("quantity", "int-or-string"):
                return str(number + 1) if info.format == "quantity" else number + 1
            return _FORMATS.get(info.format or "") or _text(info.wire, number)
        case "int" | "float":
            return number + 1
        case "bool":
            return True
        case "list" | "map" if info.items is not None:
            inner = _sample(info.items, number, depth - 1) if depth > 0 else None
            if inner is None:
                return [] if info.kind == LIST else {}
            return [inner] if info.kind == LIST else {f"k{number}": inner}
        case "struct" if info.struct is not None and depth > 0:
            return {each.wire: _sample(each, number, depth - 1) for each in fields(info.struct) if _simple(each, depth)}
    return None if info.kind == ANY and not info.variants else {}


def _simple(info: FieldInfo, depth: int) -> bool:
    if info.kind == ANY or info.wire in _NOT_GROWN:
        return False
    return info.kind not in (STRUCT, LIST, MAP) or depth > 1


def _text(wire: str, number: int) -> str:
    if "ath" in wire:
        return f"/a{number}"
    if wire == "ip" or wire.endswith("IP"):
        return f"10.0.{number // 250}.{number % 250}"
    return f"a{number}"
