"""The loops of macros: they run as Python's and charge what upstream's written-out form would have cost."""

from __future__ import annotations

from typing import Any

from .frames import Frame, Step
from .runtimecosts import LIST_CREATE
from .values import CostLimitExceeded, EvaluationError


def iterate(items: Any, values: list[Any], slots: tuple[int, int]) -> Any:
    """Go through a range, setting the loop's variables; yields how many are left."""
    first, second = slots
    left = len(items) if isinstance(items, (list, dict)) else 0
    if isinstance(items, list):
        if second < 0:
            for item in items:
                values[first] = item
                left -= 1
                yield left
        else:
            for index, item in enumerate(items):
                values[first], values[second] = index, item
                left -= 1
                yield left
    elif isinstance(items, dict):
        for key in items:
            values[first] = key
            if second >= 0:
                values[second] = items[key]
            left -= 1
            yield left
    else:
        raise EvaluationError("no such overload")


def quantified(ranged: Step, slots: tuple[int, int], body: Step, *, decisive: bool, each: int, again: int) -> Step:
    """`all` (a false one decides) or `exists` (a true one does); `each` and `again` are what a round costs."""

    def run(frame: Frame) -> Any:
        items = ranged(frame)
        error: EvaluationError | None = None
        frame.cost += 1
        for left in iterate(items, frame.values, slots):
            frame.cost += each
            try:
                value = body(frame)
            except EvaluationError as failed:
                error = error or failed
                continue
            if value is decisive:
                if left:
                    frame.cost += again
                return decisive
            if value is not (not decisive):
                error = error or EvaluationError("no such overload")
            if frame.cost > frame.limit:
                raise CostLimitExceeded
        if error is not None:
            raise error
        return not decisive

    return run


def exists_one(ranged: Step, slots: tuple[int, int], body: Step) -> Step:
    """`exists_one`"""

    def run(frame: Frame) -> bool:
        items = ranged(frame)
        found = 0
        for _ in iterate(items, frame.values, slots):
            value = body(frame)
            if value is True:
                found += 1
                frame.cost += 2
            elif value is False:
                frame.cost += 1
            else:
                raise EvaluationError("no such overload")
            if frame.cost > frame.limit:
                raise CostLimitExceeded
        frame.cost += 2
        return found == 1

    return run


def mapped(ranged: Step, slots: tuple[int, int], body: Step, filter: Step | None) -> Step:
    """`map`, `filter` and `transformList`."""

    def run(frame: Frame) -> list[Any]:
        items = ranged(frame)
        frame.cost += LIST_CREATE + 1
        found: list[Any] = []
        for _ in iterate(items, frame.values, slots):
            if filter is not None:
                wanted = filter(frame)
                if wanted is False:
                    frame.cost += 1
                    continue
                if wanted is not True:
                    raise EvaluationError("no such overload")
            found.append(body(frame))
            frame.cost += LIST_CREATE + 2
            if frame.cost > frame.limit:
                raise CostLimitExceeded
        return found

    return run


def bind(init: Step, slot: int, body: Step) -> Step:
    """`cel.bind`"""

    def run(frame: Frame) -> Any:
        frame.cost += LIST_CREATE
        frame.values[slot] = init(frame)
        return body(frame)

    return run
