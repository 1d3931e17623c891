"""Lists: Kubernetes' `isSorted`, `sum`, `min`, `max`, `indexOf`, and CEL's `slice`, `flatten`, `sort`, `distinct`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..functions import Library, Overload, function, method
from ..types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    LIST_A,
    LIST_DYN,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    Type,
    list_of,
)
from ..values import CostLimitExceeded, EvaluationError, UInt, duration, equal
from . import standard

_SUMMABLE: dict[str, tuple[Type, Any]] = {
    "int": (INT, 0),
    "uint": (UINT, UInt(0)),
    "double": (DOUBLE, 0.0),
    "duration": (DURATION, None),
}
_COMPARABLE = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}
_RANGE_LIMIT = 1_000_000


def _each_comparable(make: Callable[[str, Type], Overload]) -> list[Overload]:
    return [make(name, type) for name, type in _COMPARABLE.items()]


def _is_sorted(values: list[Any]) -> bool:
    try:
        return all(not values[index] > values[index + 1] for index in range(len(values) - 1))
    except TypeError:
        raise EvaluationError("no such overload") from None


def _sum(name: str, zero: Any) -> Callable[[list[Any]], Any]:
    def add(values: list[Any]) -> Any:
        if name == "duration":
            return duration(sum(int(each) for each in values))
        total = sum(values, zero)
        if name == "int":
            return standard._int(total)
        return standard._uint(int(total)) if name == "uint" else total

    return add


def _extreme(word: str) -> Callable[[list[Any]], Any]:
    pick: Callable[[list[Any]], Any] = min if word == "min" else max

    def extreme(values: list[Any]) -> Any:
        if not values:
            raise EvaluationError(f"{word} called on empty list")
        try:
            return pick(values)
        except TypeError:
            raise EvaluationError("no such overload") from None

    return extreme


def _index_of(values: list[Any], item: Any) -> int:
    return next((index for index, each in enumerate(values) if equal(each, item)), -1)


def _last_index_of(values: list[Any], item: Any) -> int:
    return next((index for index in range(len(values) - 1, -1, -1) if equal(values[index], item)), -1)


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return list(values[start:end])


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    found: list[Any] = []
    for each in values:
        if isinstance(each, list) and depth:
            found.extend(_flatten(each, depth - 1))
        else:
            found.append(each)
    return found


def _sort_by(values: list[Any], keys: list[Any]) -> list[Any]:
    if len(values) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got"
            f" {len(values)} and {len(keys)} elements respectively"
        )
    if any(type(key) is not type(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")
    try:
        return [values[index] for index in sorted(range(len(values)), key=keys.__getitem__)]
    except TypeError:
        raise EvaluationError("list elements must be comparable") from None


def _distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for each in values:
        if not any(equal(each, other) for other in found):
            found.append(each)
    return found


def _range(count: int) -> list[int]:
    if count > _RANGE_LIMIT:  # its cost is its size, which no limit allows
        raise CostLimitExceeded
    return list(range(count))


LIBRARY: Library = {
    "isSorted": _each_comparable(
        lambda name, type: method(f"list_{name}_is_sorted_bool", (list_of(type),), BOOL, _is_sorted)
    ),
    "sum": [
        method(f"list_{name}_sum_{name}", (list_of(type),), type, _sum(name, zero))
        for name, (type, zero) in _SUMMABLE.items()
    ],
    "max": _each_comparable(
        lambda name, type: method(f"list_{name}_max_{name}", (list_of(type),), type, _extreme("max"))
    ),
    "min": _each_comparable(
        lambda name, type: method(f"list_{name}_min_{name}", (list_of(type),), type, _extreme("min"))
    ),
    "indexOf": [method("list_a_index_of_int", (LIST_A, A), INT, _index_of)],
    "lastIndexOf": [method("list_a_last_index_of_int", (LIST_A, A), INT, _last_index_of)],
    "slice": [method("list_slice", (LIST_A, INT, INT), LIST_A, _slice)],
    "flatten": [
        method("list_flatten", (list_of(LIST_A),), LIST_A, _flatten),
        method("list_flatten_int", (LIST_DYN, INT), LIST_DYN, _flatten),
    ],
    "sort": _each_comparable(
        lambda name, type: method(f"list_{type.name}_sort", (list_of(type),), list_of(type), lambda v: _sort_by(v, v))
    ),
    "@sortByAssociatedKeys": _each_comparable(
        lambda name, type: method(f"list_{type.name}_sortByAssociatedKeys", (LIST_A, list_of(type)), LIST_A, _sort_by)
    ),
    "lists.range": [function("lists_range", (INT,), list_of(INT), _range)],
    "reverse": [method("list_reverse", (LIST_A,), LIST_A, lambda values: list(values)[::-1])],
    "distinct": [method("list_distinct", (LIST_A,), LIST_A, _distinct)],
}
