"""The actual cost of a call, in upstream's units (one is about 50 ns of its engine).

A cost is a number, or a function of the arguments and the result.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from .functions import Overload
from .values import size

RuntimeCost = int | Callable[[tuple[Any, ...], Any], int]

STRING_FACTOR = 0.1
REGEX_FACTOR = 0.25
LIST_CREATE, MAP_CREATE, STRUCT_CREATE = 10, 30, 40
AUTHORIZATION_CHECK = 350_000
NAME_FORMAT_REGEX = 128


def _traverse(value: Any) -> int:
    if type(value) is str:
        return int(len(value.encode()) * STRING_FACTOR)
    if type(value) is bytes:
        return int(len(value) * STRING_FACTOR)
    if isinstance(value, list):
        return sum(map(_traverse, value))
    if isinstance(value, dict):
        return sum(_traverse(key) + _traverse(item) for key, item in value.items())
    return 1


def _first(args: tuple[Any, ...], _result: Any) -> int:
    return ceil(size(args[0]) * STRING_FACTOR)


def _first_twice(args: tuple[Any, ...], _result: Any) -> int:
    return ceil(size(args[0]) * 2 * STRING_FACTOR)


def _regex(args: tuple[Any, ...], _result: Any) -> int:
    return ceil((1.0 + size(args[0])) * STRING_FACTOR) * ceil(size(args[1]) * REGEX_FACTOR)


def _smaller(args: tuple[Any, ...], _result: Any) -> int:
    one, other = args
    kind = type(one)
    if kind is int or kind is bool:
        return 1 if type(other) is not str or other else 0
    return ceil(min(size(one), size(other)) * STRING_FACTOR)


def _equality(args: tuple[Any, ...], result: Any) -> int:
    return 1 if hasattr(args[0], "cel_type") else _smaller(args, result)


def _selector(args: tuple[Any, ...], _result: Any) -> int:
    length = size(args[1])
    return LIST_CREATE + ceil(length * STRING_FACTOR) + ceil(ceil(length * 0.5) * float(LIST_CREATE + STRUCT_CREATE))


def _network(args: tuple[Any, ...], string: bool, masked: bool) -> int:
    mask = size(args[0])
    cost = ceil((mask + mask) * STRING_FACTOR)
    if masked:
        cost += ceil(mask * STRING_FACTOR) + 1
    return cost + (ceil(size(args[1]) * STRING_FACTOR) if string else 0)


def _validate(args: tuple[Any, ...], _result: Any) -> int:
    longest: int = args[0].max_regex_size
    return ceil((1.0 + size(args[1])) * STRING_FACTOR) * ceil(longest * REGEX_FACTOR)


def _listing(args: tuple[Any, ...], _result: Any) -> int:
    return _traverse(args[0])


_BY_FUNCTION: dict[str, RuntimeCost] = {
    "check": AUTHORIZATION_CHECK,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    "replace": _first_twice,
    "split": _first_twice,
    "ip.isCanonical": _first_twice,
    "join": lambda args, result: ceil(size(result) * 2 * STRING_FACTOR),
    "find": _regex,
    "findAll": _regex,
    "validate": _validate,
    "_==_": _equality,
}
_BY_FUNCTION |= dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _listing)
_BY_FUNCTION |= dict.fromkeys(
    [
        "url",
        "lowerAscii",
        "upperAscii",
        "substring",
        "trim",
        "jsonpatch.escapeKey",
        "cidr",
        "ip",
        "isIP",
        "isCIDR",
        "quantity",
        "isQuantity",
        "semver",
        "isSemver",
    ],
    _first,
)
_BY_OVERLOAD: dict[str, RuntimeCost] = {
    "cidr_ip": 1,
    "cidr_contains_ip": lambda args, _: _network(args, False, False),
    "cidr_contains_ip_string": lambda args, _: _network(args, True, False),
    "cidr_contains_cidr": lambda args, _: _network(args, False, True),
    "cidr_contains_cidr_string": lambda args, _: _network(args, True, True),
    "in_list": lambda args, _: size(args[1]),
    "not_equals": _smaller,
    "matches_string": _regex,
    "contains_string": lambda args, _: ceil(size(args[0]) * STRING_FACTOR) * ceil(size(args[1]) * STRING_FACTOR),
    "add_string": lambda args, _: ceil((size(args[0]) + size(args[1])) * STRING_FACTOR),
    "add_bytes": lambda args, _: ceil((size(args[0]) + size(args[1])) * STRING_FACTOR),
}
_BY_OVERLOAD |= dict.fromkeys(
    ["starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote", "string_format"],
    _first,
)
_BY_OVERLOAD |= dict.fromkeys(
    (f"{word}_{type}" for word in ("less", "less_equals", "greater", "greater_equals") for type in ("string", "bytes")),
    _smaller,
)


def _allocated(factor: float, count: int) -> int:
    return int(count * factor) + 1 + LIST_CREATE


def _self_compared(values: list[Any]) -> int:
    factor = 2.0 + (STRING_FACTOR if values and isinstance(values[0], (str, bytes)) else 0.0)
    return _allocated(factor, len(values) ** 2)


def _sets(args: tuple[Any, ...], _result: Any) -> int:
    return int(size(args[0]) * size(args[1]) * 1.0) + 1


_BY_OVERLOAD |= dict.fromkeys(
    ("list_slice", "lists_range", "list_reverse"), lambda args, result: _allocated(1, len(result))
)
_BY_OVERLOAD |= {
    "list_flatten": lambda args, _: _allocated(1, len(args[0])),
    "list_flatten_int": lambda args, _: _allocated(args[1], len(args[0])),
    "list_distinct": lambda args, _: _self_compared(args[0]),
}
COMPARABLE = (
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "string",
    "bytes",
)
for _name in COMPARABLE:
    _BY_OVERLOAD[f"list_{_name}_sort"] = lambda args, _: _self_compared(args[0])
    _BY_OVERLOAD[f"list_{_name}_sortByAssociatedKeys"] = lambda args, _: _self_compared(args[1])
_BY_OVERLOAD |= dict.fromkeys(("list_sets_contains_list", "list_sets_intersects_list"), _sets)
_BY_OVERLOAD["list_sets_equivalent_list"] = lambda args, _: int(size(args[0]) * size(args[1]) * 2.0) + 1


def runtime_cost(overload: Overload) -> RuntimeCost:
    """The cost of calling this overload."""
    if overload.id in _BY_OVERLOAD:
        return _BY_OVERLOAD[overload.id]
    return _BY_FUNCTION.get(overload.function, 1)
