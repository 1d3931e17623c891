"""Lists as sets: `sets.contains`, `sets.equivalent`, `sets.intersects`."""

from __future__ import annotations

from typing import Any

from ..functions import Library, function
from ..types import BOOL, LIST_A
from ..values import contains


def _contains(values: list[Any], wanted: list[Any]) -> bool:
    return all(contains(values, each) for each in wanted)


LIBRARY: Library = {
    "sets.contains": [function("list_sets_contains_list", (LIST_A, LIST_A), BOOL, _contains)],
    "sets.equivalent": [
        function("list_sets_equivalent_list", (LIST_A, LIST_A), BOOL, lambda a, b: _contains(a, b) and _contains(b, a))
    ],
    "sets.intersects": [
        function("list_sets_intersects_list", (LIST_A, LIST_A), BOOL, lambda a, b: any(contains(b, each) for each in a))
    ],
}
