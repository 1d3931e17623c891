"""`a.b`, `a[b]`, `has(a.b)` and their optional forms."""

from __future__ import annotations

from typing import Any

from .ast import Call
from .frames import Frame, Step
from .values import NONE, EvaluationError, Optional, UInt, show, type_of


def missing_key(key: Any) -> EvaluationError:
    """The error of a key that is not there."""
    return EvaluationError(f"no such key: {show(key)}")


def field_of(value: Any, key: str) -> Any:
    """`value.key`. Raises EvaluationError."""
    if isinstance(value, dict):
        try:
            return value[key]
        except KeyError:
            raise missing_key(key) from None
    if isinstance(value, Optional):
        if not value.present or not has_field(value.value, key):
            return NONE
        return Optional(True, field_of(value.value, key))
    get = getattr(value, "cel_field", None)
    if get is not None:
        return get(key)
    raise missing_key(key)


def has_field(value: Any, key: str) -> bool:
    """Whether `value.key` would have a value."""
    if isinstance(value, dict):
        return key in value
    if isinstance(value, Optional):
        return value.present and has_field(value.value, key)
    has = getattr(value, "cel_has", None)
    return bool(has(key)) if has is not None else False


def select(operand: Step, key: str) -> Step:
    """`operand.key`"""

    def select(frame: Frame) -> Any:
        value = operand(frame)
        frame.cost += 1
        if type(value) is dict:
            try:
                return value[key]
            except KeyError:
                raise missing_key(key) from None
        return field_of(value, key)

    return select


def test(operand: Step, key: str) -> Step:
    """`has(operand.key)`"""

    def test(frame: Frame) -> bool:
        value = operand(frame)
        return key in value if type(value) is dict else has_field(value, key)

    return test


def optional_select(steps: list[Step], node: Call) -> Step:
    """`operand.?key`"""
    operand, key = steps[0], node.key

    def select(frame: Frame) -> Optional:
        value = operand(frame)
        frame.cost += 1
        if isinstance(value, Optional):
            if not value.present:
                return NONE
            value = value.value
        return Optional(True, field_of(value, key)) if has_field(value, key) else NONE

    return select


def _at(container: Any, index: Any) -> Any:
    if isinstance(container, dict):
        try:
            return container[index]
        except (KeyError, TypeError):
            raise missing_key(index) from None
    if isinstance(container, list):
        if type(index) is float and index.is_integer():
            index = int(index)
        if type(index) is not int and type(index) is not UInt:
            raise EvaluationError(f"unsupported index type '{type_of(index).name}' in list")
        if 0 <= index < len(container):
            return container[index]
        raise EvaluationError(f"index out of bounds: {index}")
    get = getattr(container, "cel_field", None)
    if get is not None and isinstance(index, str):
        return get(index)
    raise missing_key(index)


def _holds(container: Any, index: Any) -> bool:
    if isinstance(container, dict):
        return isinstance(index, (str, int, float, bool)) and index in container
    if isinstance(container, list):
        return isinstance(index, (int, float)) and 0 <= index < len(container)
    return isinstance(index, str) and has_field(container, index)


def index(steps: list[Step], node: Call) -> Step:
    """`container[position]`"""
    container_step, index_step = steps

    def index(frame: Frame) -> Any:
        container, position = container_step(frame), index_step(frame)
        frame.cost += 1
        if isinstance(container, Optional):
            if not container.present or not _holds(container.value, position):
                return NONE
            return Optional(True, _at(container.value, position))
        return _at(container, position)

    return index


def optional_index(steps: list[Step], node: Call) -> Step:
    """`container[?position]`"""
    container_step, index_step = steps

    def index(frame: Frame) -> Optional:
        container, position = container_step(frame), index_step(frame)
        frame.cost += 1
        if isinstance(container, Optional):
            if not container.present:
                return NONE
            container = container.value
        return Optional(True, _at(container, position)) if _holds(container, position) else NONE

    return index
