"""Optional values: `optional.of`, `.?field`, `[?index]`, `orValue` and what goes with them."""

from __future__ import annotations

from typing import Any

from ..functions import Library, function, method
from ..types import BOOL, DYN, INT, STRING, A, B, list_of, map_of, optional_of
from ..values import NONE, Duration, EvaluationError, Optional, Timestamp

_OPTIONAL = optional_of(B)
_LIST, _MAP = list_of(B), map_of(A, B)


def _of(value: Any) -> Optional:
    return Optional(True, value)


def _of_non_zero(value: Any) -> Optional:
    if value is None or (isinstance(value, Optional) and not value.present):
        return NONE
    if isinstance(value, (bool, int, float, str, bytes, list, dict, Duration, Timestamp)) and not value:
        return NONE
    return Optional(True, value)


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _unwrap(values: list[Any]) -> list[Any]:
    return [each.value for each in values if each.present]


def _unused(*_: Any) -> Any:
    raise AssertionError("planned by the planner")


LIBRARY: Library = {
    "optional.of": [function("optional_of", (B,), _OPTIONAL, _of)],
    "optional.ofNonZeroValue": [function("optional_ofNonZeroValue", (B,), _OPTIONAL, _of_non_zero)],
    "optional.none": [function("optional_none", (), _OPTIONAL, lambda: NONE)],
    "value": [method("optional_value", (_OPTIONAL,), B, _value)],
    "hasValue": [method("optional_hasValue", (_OPTIONAL,), BOOL, lambda optional: optional.present)],
    "or": [method("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, _unused)],
    "orValue": [method("optional_orValue_value", (_OPTIONAL, B), B, _unused)],
    "_?._": [function("select_optional_field", (DYN, STRING), _OPTIONAL, _unused)],
    "_[?_]": [
        function("list_optindex_optional_int", (_LIST, INT), _OPTIONAL, _unused),
        function("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL, _unused),
        function("map_optindex_optional_value", (_MAP, A), _OPTIONAL, _unused),
        function("optional_map_optindex_optional_value", (optional_of(_MAP), A), _OPTIONAL, _unused),
    ],
    "_[_]": [
        function("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL, _unused),
        function("optional_map_index_value", (optional_of(_MAP), A), _OPTIONAL, _unused),
    ],
    "first": [method("list_first", (_LIST,), _OPTIONAL, lambda values: _of(values[0]) if values else NONE)],
    "last": [method("list_last", (_LIST,), _OPTIONAL, lambda values: _of(values[-1]) if values else NONE)],
    "optional.unwrap": [function("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrap)],
    "unwrapOpt": [method("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, _unwrap)],
}
