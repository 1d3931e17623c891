"""One evaluation of an expression, and what its parts have become: functions from a frame to a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Frame:
    """One evaluation: the variables' values, what was spent, what may be."""

    __slots__ = ("cost", "limit", "values")

    def __init__(self, values: list[Any], limit: int) -> None:
        self.values = values
        self.limit = limit
        self.cost = 0


Step = Callable[[Frame], Any]


class Unset:
    """A variable without a value."""


UNSET = Unset()
