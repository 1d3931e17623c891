"""The JSON paths of printer columns, in client-go's dialect, compiled to functions.

    .spec.replicas    .metadata.annotations.example\\.com/x    .status.conditions[?(@.type=="Ready")].status
    .items[0]  .items[-1]  .items[0:4:2]  .items[*]  .items[0,2]  .spec['a.b']  ..name

A path is a list of steps, each from a list of values to another; what is not there is left out.

Paths and objects are other people's, and `..` or `[*,*]` often enough in a row would take for ever. So every value that
a step looks at or gives is charged to the evaluation, which ends with PathError when it has become too expensive.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final

_END: Final = frozenset(" \t\r\n.,[]$@{}")
_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_DIGITS: Final = 20
"""Digits of an index: Go's integers have no more."""
_FILTER: Final = re.compile("([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?[\d.]+")
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class PathError(ValueError):
    """A path that cannot be read, or does not fit the value."""


class TooExpensive(PathError):
    """A path that takes too long."""


COST: Final = 10_000
"""Values that one evaluation may look at, a few milliseconds: many times what a column needs of an ordinary object."""

Values = list[Any]


class Budget:
    """The remaining cost of an evaluation."""

    __slots__ = ("left",)

    def __init__(self, left: int = COST) -> None:
        self.left = left

    def spend(self, cost: int) -> None:
        """Raises PathError when there is not enough left."""
        self.left -= cost
        if self.left < 0:
            raise TooExpensive("the path is too expensive for this object")


Step = Callable[[Values, Budget], Values]


def compile_path(text: str) -> Callable[[Any], Values]:
    """The function from a document to what is at the path. Raises PathError; so does the function."""
    steps = _Parser(text).steps()

    def find(document: Any) -> Values:
        return _walk([document], steps, Budget())

    return find


def _walk(values: Values, steps: list[Step], budget: Budget) -> Values:
    for step in steps:
        values = step(values, budget)
        budget.spend(len(values) + 1)
    return values


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def steps(self) -> list[Step]:
        """All steps of the path."""
        steps: list[Step] = []
        text = self._text
        while self._at < len(text):
            if text.startswith("[?(", self._at):
                steps.append(self._filter())
            elif text.startswith("..", self._at):
                self._at += 2
                steps.append(_recursive)
                if self._at < len(text) and (text[self._at].isalnum() or text[self._at] == "_"):
                    steps.append(self._field())
            elif text[self._at] in " @$":
                self._at += 1
            elif text[self._at] == "[":
                steps += self._array()
            elif text[self._at] in "\"'":
                steps.append(_constant(self._quoted()))
            elif text[self._at] == ".":
                self._at += 1
                steps.append(self._field())
            elif found := _NUMBER.match(text, self._at):
                self._at = found.end()
                steps.append(_constant(_number(found[0])))
            else:
                steps.append(_constant(self._word()))
        return steps

    def _name(self) -> str:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _END:
            self._at += 2 if self._text[self._at] == "\\" else 1
        return self._text[start : self._at].replace("\\", "")

    def _field(self) -> Step:
        name = self._name()
        return _wildcard if name == "*" else _field(name)

    def _word(self) -> bool:
        word = self._name()
        if word not in ("true", "false"):
            raise PathError(f"unrecognized identifier {word}")
        return word == "true"

    def _quoted(self) -> str:
        quote, start = self._text[self._at], self._at + 1
        end = start
        while end < len(self._text) and self._text[end] != quote:
            end += 2 if self._text[end] == "\\" else 1
        if end >= len(self._text):
            raise PathError("unterminated quoted string")
        self._at = end + 1
        return re.sub(r"\\(.)", r"\1", self._text[start:end])

    def _array(self) -> list[Step]:
        end = self._text.find("]", self._at)
        if end < 0:
            raise PathError("unterminated array")
        inside = self._text[self._at + 1 : end]
        self._at = end + 1
        parts = inside.split(",")
        if len(parts) > 1:
            ways = [_Parser(f"[{part.strip(' ')}]").steps() for part in parts]
            return [lambda values, budget: [found for way in ways for found in _walk(values, way, budget)]]
        if key := _KEY.fullmatch(inside):
            return _Parser(f".{key[1]}").steps()
        return [_slice(":" if inside == "*" else inside)]

    def _filter(self) -> Step:
        start, quote = self._at + 3, ""
        self._at = start
        while True:
            if self._at >= len(self._text):
                raise PathError("unterminated filter")
            char = self._text[self._at]
            if quote:
                if char == "\\":
                    self._at += 1
                elif char == quote:
                    quote = ""
            elif char in "\"'":
                quote = char
            elif char == ")":
                break
            self._at += 1
        inside = self._text[start : self._at]
        if not self._text.startswith(")]", self._at):
            raise PathError("unclosed array expect ]")
        self._at += 2
        return _compared(inside)


def _number(text: str) -> int | float:
    try:
        return int(text) if "." not in text else float(text)
    except ValueError:
        raise PathError(f"cannot parse number {text}") from None


def _constant(value: Any) -> Step:
    return lambda values, budget: [value] * len(values)


def _field(name: str) -> Step:
    return lambda values, budget: [value[name] for value in values if type(value) is dict and name in value]


def _inside(value: Any) -> Values:
    if type(value) is dict:
        return list(value.values())
    return value if type(value) is list else []


def _wildcard(values: Values, budget: Budget) -> Values:
    result: Values = []
    for value in values:
        inside = _inside(value)
        budget.spend(len(inside))
        result += inside
    return result


def _recursive(values: Values, budget: Budget) -> Values:
    """Every value that has others inside, before these, however deep."""
    result: Values = []
    left = values[::-1]
    while left:
        value = left.pop()
        inside = _inside(value)
        if inside:
            budget.spend(len(inside))
            result.append(value)
            left += inside[::-1]
    return result


def _slice(text: str) -> Step:
    parts = _SLICE.fullmatch(text)
    if parts is None:
        raise PathError(f"invalid array index {text}")
    numbers = [(part or "").removeprefix(":") for part in parts.groups()]
    if "-" in numbers:
        raise PathError(f"array index {text} is not a number")
    if max(map(len, numbers)) > _DIGITS:
        raise PathError(f"array index {text[:_DIGITS]}... is out of range")
    first, last, step = (int(number) if number else None for number in numbers)
    single = parts[2] is None

    def cut(values: Values, budget: Budget) -> Values:
        result: Values = []
        for value in values:
            if value is None:
                continue
            if type(value) is not list:
                raise PathError("not an array")
            length = len(value)
            low = (first or 0) + (length if (first or 0) < 0 else 0)
            high = low + 1 if single else length if last is None else last + (length if last < 0 else 0)
            if low == high:
                return result
            if not (0 <= low < length and 0 <= high <= length and low < high):
                raise PathError("array index out of bounds")
            if step is not None and step <= 0:
                raise PathError("step must be > 0")
            result += value[low : high : step or 1]
        return result

    return cut


def _compared(text: str) -> Step:
    found = _FILTER.fullmatch(text)
    if found is None:
        exists = _Parser(text).steps()
        return lambda values, budget: [
            item for value in values for item in _items(value, budget) if _there(item, exists, budget)
        ]
    compare = _COMPARE.get(found[2])
    if compare is None:
        raise PathError(f"unrecognized filter operator {found[2]}")
    left, right = _Parser(found[1]).steps(), _Parser(found[3]).steps()

    def passes(item: Any, budget: Budget) -> bool:
        ours, theirs = _walk([item], left, budget), _walk([item], right, budget)
        if not ours or not theirs:
            return False
        if len(ours) > 1 or len(theirs) > 1:
            raise PathError("can only compare one element at a time")
        try:
            return bool(compare(ours[0], theirs[0]))
        except TypeError:
            raise PathError("incompatible types for comparison") from None

    return lambda values, budget: [item for value in values for item in _items(value, budget) if passes(item, budget)]


def _there(item: Any, steps: list[Step], budget: Budget) -> bool:
    try:
        return bool(_walk([item], steps, budget))
    except TooExpensive:
        raise
    except PathError:
        return False


def _items(value: Any, budget: Budget) -> Values:
    if type(value) is not list:
        raise PathError("not an array, and cannot be filtered")
    budget.spend(len(value))
    return value
