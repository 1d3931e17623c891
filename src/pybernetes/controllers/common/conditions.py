"""Conditions of a status: one of each type, replaced only when it says something new."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Condition(Protocol):
    """The common fields of the conditions of all kinds."""

    type: str | None
    status: str | None
    reason: str | None
    last_transition_time: str | None


C = TypeVar("C", bound=Condition)


def find_condition(conditions: Iterable[C] | None, kind: str) -> C | None:
    """The condition of a type."""
    return next((each for each in conditions or () if each.type == kind), None)


def with_condition(conditions: list[C] | None, condition: C) -> list[C] | None:
    """The list with this condition in it, last; the same list if its status and reason are there already.

    The time of the last transition stays unless the status turns.
    """
    current = find_condition(conditions, condition.type or "")
    if current is not None:
        if current.status == condition.status and current.reason == condition.reason:
            return conditions
        if current.status == condition.status:
            condition.last_transition_time = current.last_transition_time
    return [*(without_condition(conditions, condition.type or "") or ()), condition]


def without_condition(conditions: list[C] | None, kind: str) -> list[C] | None:
    """The list without the condition of a type; None if nothing remains."""
    return [each for each in conditions or () if each.type != kind] or None
