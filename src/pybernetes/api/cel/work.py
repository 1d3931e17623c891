"""Charges calls before they run, where their work can be far more than upstream's charge for it.

Upstream looks at the cost of a call afterwards, joins lists without copying them, and takes a nested value for as large
as its outermost list. So `a.flatten()`, `sets.contains(a, b)` or `b == c`, of lists that hold another list many times,
run for hours or take all memory, which would end the API server or the scheduler. Up to FREE a call costs what it costs
upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .functions import Overload
from .values import CostLimitExceeded, Optional

FREE = 100
"""Units (an element, or ten characters) of one call for which nothing is charged beyond upstream's cost."""
MOST = 1_000_000
"""Units that are counted: as many as one evaluation may spend."""

Work = Callable[[Sequence[Any]], int]


def units(value: Any, found: int = 0) -> int:
    """How large a value is with all that is inside it, counted as often as it is there; added to what was found."""
    found += len(value) // 10 + 1 if type(value) in (str, bytes) else 1
    if found > MOST:
        raise CostLimitExceeded
    if isinstance(value, list):
        for each in value:
            found = units(each, found)
    elif isinstance(value, dict):
        for key, each in value.items():
            found = units(each, units(key, found))
    elif isinstance(value, Optional) and value.present:
        found = units(value.value, found)
    return found


def _compared(args: Sequence[Any]) -> int:
    return units(args[0]) if isinstance(args[0], (list, dict, Optional)) else 0


def _flat(values: list[Any], depth: int, found: int = 0) -> int:
    if depth <= 0:
        return found + len(values)
    for each in values:
        found = _flat(each, depth - 1, found) if isinstance(each, list) else found + 1
        if found > MOST:
            raise CostLimitExceeded
    return found


def _replaced(args: Sequence[Any]) -> int:
    text, old, new = args[:3]
    return (len(text) + text.count(old) * max(0, len(new) - len(old))) // 10  # type: ignore[no-any-return]


def _each_with_each(args: Sequence[Any]) -> int:
    """The cost of comparing each element with each beyond the product of the lengths, which upstream charges itself."""
    found = units(args[0]) * len(args[-1])
    if found > MOST:
        raise CostLimitExceeded
    return found - len(args[0]) * len(args[-1])


_BY_OVERLOAD: dict[str, Work] = {
    "add_list": lambda args: len(args[0]) + len(args[1]),
    "list_flatten": lambda args: _flat(args[0], 1),
    "list_flatten_int": lambda args: _flat(args[0], args[1]),
    "list_distinct": _each_with_each,
    "list_sets_contains_list": _each_with_each,
    "list_sets_intersects_list": _each_with_each,
    "list_sets_equivalent_list": _each_with_each,
    "equals": _compared,
    "not_equals": _compared,
    "in_list": lambda args: _compared(args) * len(args[1]),
}
_BY_FUNCTION: dict[str, Work] = {
    "replace": _replaced,
    "join": lambda args: units(args[0]) + len(args[0]) * sum(map(len, args[1:])) // 10,
    "format": lambda args: units(args[1]),
    "indexOf": lambda args: units(args[0]) if isinstance(args[0], list) else 0,
    "lastIndexOf": lambda args: units(args[0]) if isinstance(args[0], list) else 0,
}
_BY_FUNCTION |= dict.fromkeys(("isSorted", "sum", "min", "max"), lambda args: units(args[0]))


def work(overload: Overload) -> Work | None:
    """The function that tells the units of a call of this overload, if they can be far more than its cost."""
    return _BY_OVERLOAD.get(overload.id) or _BY_FUNCTION.get(overload.function)
