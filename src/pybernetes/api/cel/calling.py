"""Calls: logic that absorbs errors, branches, and functions that are charged for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .ast import Call
from .frames import Frame, Step
from .functions import Overload, choose
from .runtimecosts import RuntimeCost, runtime_cost
from .values import CostLimitExceeded, EvaluationError, Optional, UInt
from .work import FREE, Work, work


def logical(steps: list[Step], node: Call) -> Step:
    """`&&` or `||`: an error counts only if the other side does not decide."""
    decisive = node.name == "_||_"
    if len(steps) == 2:
        first, second = steps

        def both(frame: Frame) -> Any:
            error: EvaluationError | None = None
            try:
                value = first(frame)
                if value is decisive:
                    return decisive
                if value is not (not decisive):
                    error = EvaluationError("no such overload")
            except EvaluationError as failed:
                error = failed
            value = second(frame) if error is None else _absorbing(second, frame, error)
            if value is decisive:
                return decisive
            if error is not None:
                raise error
            if value is not (not decisive):
                raise EvaluationError("no such overload")
            return not decisive

        return both

    def several(frame: Frame) -> Any:
        error: EvaluationError | None = None
        for step in steps:
            try:
                value = step(frame)
            except EvaluationError as failed:
                error = error or failed
                continue
            if value is decisive:
                return decisive
            if value is not (not decisive):
                error = error or EvaluationError("no such overload")
        if error is not None:
            raise error
        return not decisive

    return several


def _absorbing(step: Step, frame: Frame, error: EvaluationError) -> Any:
    try:
        return step(frame)
    except EvaluationError:
        raise error from None


def conditional(steps: list[Step], node: Call) -> Step:
    """`condition ? then : otherwise`"""
    condition, then, otherwise = steps

    def choose_branch(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return then(frame)
        if value is False:
            return otherwise(frame)
        raise EvaluationError("no such overload")

    return choose_branch


def optional_or(steps: list[Step], name: str) -> Step:
    """`or` and `orValue`, whose second side is evaluated only if it is needed."""
    first, second = steps

    def either(frame: Frame) -> Any:
        value = first(frame)
        frame.cost += 1
        if not isinstance(value, Optional):
            raise EvaluationError("no such overload")
        if value.present:
            return value.value if name == "orValue" else value
        return second(frame)

    return either


_PLAIN = frozenset((bool, int, UInt, float, str, bytes, list, dict, type(None)))
_WRONG = (TypeError, AttributeError, ValueError)
"""The exceptions of implementations for values that are not of the declared type."""


def direct(steps: list[Step], overload: Overload) -> Step:
    """A call whose overload the types have decided."""
    impl, cost, ahead = overload.impl, runtime_cost(overload), work(overload)
    if isinstance(cost, int) and ahead is None:
        charge = cost
        if len(steps) == 1:
            only = steps[0]

            def unary(frame: Frame) -> Any:
                value = only(frame)
                frame.cost += charge
                try:
                    return impl(value)
                except _WRONG:
                    raise EvaluationError("no such overload") from None

            return unary
        if len(steps) == 2:
            left, right = steps

            def binary(frame: Frame) -> Any:
                one, other = left(frame), right(frame)
                frame.cost += charge
                try:
                    return impl(one, other)
                except _WRONG:
                    raise EvaluationError("no such overload") from None

            return binary
    return _charged(steps, impl, cost, ahead)


def _charge_ahead(frame: Frame, ahead: Work, values: tuple[Any, ...]) -> None:
    try:
        units = ahead(values)
    except _WRONG:
        raise EvaluationError("no such overload") from None
    if units > FREE:
        frame.cost += units
        if frame.cost > frame.limit:
            raise CostLimitExceeded


def _charged(steps: list[Step], impl: Callable[..., Any], cost: RuntimeCost, ahead: Work | None) -> Step:
    def call(frame: Frame) -> Any:
        values = tuple([step(frame) for step in steps])
        if ahead is not None:
            _charge_ahead(frame, ahead, values)
        try:
            result = impl(*values)
        except _WRONG:
            raise EvaluationError("no such overload") from None
        frame.cost += cost if isinstance(cost, int) else cost(values, result)
        if frame.cost > frame.limit:
            raise CostLimitExceeded
        return result

    return call


def dispatched(steps: list[Step], name: str, overloads: list[Overload]) -> Step:
    """A call whose overload the values decide."""
    costs = {overload.id: (runtime_cost(overload), work(overload)) for overload in overloads}
    known: dict[tuple[type, ...], tuple[Callable[..., Any], RuntimeCost, Work | None]] = {}

    def call(frame: Frame) -> Any:
        values = tuple([step(frame) for step in steps])
        types = tuple(map(type, values))
        found = known.get(types)
        if found is None:
            overload = choose(name, overloads, values)
            found = overload.impl, *costs[overload.id]
            if _PLAIN.issuperset(types):
                known[types] = found
        impl, cost, ahead = found
        if ahead is not None:
            _charge_ahead(frame, ahead, values)
        try:
            result = impl(*values)
        except _WRONG:
            raise EvaluationError("no such overload") from None
        frame.cost += cost if isinstance(cost, int) else cost(values, result)
        if frame.cost > frame.limit:
            raise CostLimitExceeded
        return result

    return call
