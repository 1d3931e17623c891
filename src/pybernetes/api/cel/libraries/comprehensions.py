"""The growing map that macros with two variables build."""

from __future__ import annotations

from typing import Any

from ..functions import Library, function
from ..types import MAP_AB, A, B
from ..values import EvaluationError, show


def _insert(target: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    if key in target:
        raise EvaluationError(f"insert failed: key {show(key)} already exists")
    return {**target, key: value}


def _merge(target: dict[Any, Any], update: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in update.items():
        target = _insert(target, key, value)
    return target


LIBRARY: Library = {
    "cel.@mapInsert": [
        function("@mapInsert_map_key_value", (MAP_AB, A, B), MAP_AB, _insert),
        function("@mapInsert_map_map", (MAP_AB, MAP_AB), MAP_AB, _merge),
    ]
}
