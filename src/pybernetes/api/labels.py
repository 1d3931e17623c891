"""Label selectors: `app=web,tier in (front,back),!legacy,rev>3`.

A selector is parsed once and asked many times (every event, every watcher), so it is compiled to one function of the
labels; the all-equal selector, which is nearly every one, to a loop over pairs. Selectors are immutable; parsed ones
are cached.

Field selectors, the other kind, are in `fields.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from . import field
from .field import FieldError, Path
from .gocompat.quote import quote
from .names import is_label_key, is_label_value

IN: Final = "in"
NOT_IN: Final = "notin"
EQUALS: Final = "="
DOUBLE_EQUALS: Final = "=="
NOT_EQUALS: Final = "!="
EXISTS: Final = "exists"
DOES_NOT_EXIST: Final = "!"
GREATER_THAN: Final = "gt"
LESS_THAN: Final = "lt"

Labels = Mapping[str, str] | None
Matches = Callable[[Labels], bool]

_BINARY: Final = (IN, NOT_IN, EQUALS, DOUBLE_EQUALS, NOT_EQUALS, GREATER_THAN, LESS_THAN)
_TOKEN_OPERATORS: Final = {
    "in": IN,
    "notin": NOT_IN,
    "=": EQUALS,
    "==": DOUBLE_EQUALS,
    "!=": NOT_EQUALS,
    ">": GREATER_THAN,
    "<": LESS_THAN,
}
_SIGNS: Final = {EQUALS: "=", DOUBLE_EQUALS: "==", NOT_EQUALS: "!=", GREATER_THAN: ">", LESS_THAN: "<"}
_STRUCT_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST}


class SelectorError(ValueError):
    """Text or a struct that is no selector; its words are upstream's."""


class Requirement:
    """One condition on one label."""

    __slots__ = ("key", "operator", "values")

    def __init__(self, key: str, operator: str, values: Iterable[str] = ()) -> None:
        self.key = key
        self.operator = operator
        self.values: tuple[str, ...] = tuple(values)

    def __str__(self) -> str:
        if self.operator == EXISTS:
            return self.key
        if self.operator == DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in (IN, NOT_IN):
            return f"{self.key} {self.operator} ({values})"
        return f"{self.key}{_SIGNS[self.operator]}{values}"

    def __repr__(self) -> str:
        return f"Requirement({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Requirement):
            return NotImplemented
        return (self.key, self.operator, self.values) == (other.key, other.operator, other.values)

    def __hash__(self) -> int:
        return hash((self.key, self.operator, self.values))

    def matches(self, labels: Labels) -> bool:
        """Whether labels fulfil this condition."""
        return _compile(self)(labels)


class Selector:
    """All of some requirements, ordered by key; without any it selects everything."""

    __slots__ = ("_text", "matches", "requirements", "selects_nothing")

    matches: Matches

    def __init__(self, requirements: Iterable[Requirement] = (), *, selects_nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda each: each.key))
        self.selects_nothing = selects_nothing
        self.matches = _never if selects_nothing else _compile_all(self.requirements)
        self._text: str | None = None

    def empty(self) -> bool:
        """Whether it selects everything."""
        return not self.requirements and not self.selects_nothing

    def requires(self, key: str) -> str | None:
        """The one value this label must have, if the selector says so; for indexes."""
        for each in self.requirements:
            if each.key == key:
                exact = each.operator in (EQUALS, DOUBLE_EQUALS, IN) and len(each.values) == 1
                return each.values[0] if exact else None
        return None

    def __str__(self) -> str:
        if self._text is None:
            self._text = ",".join(map(str, self.requirements))
        return self._text

    def __repr__(self) -> str:
        return "Selector(nothing)" if self.selects_nothing else f"Selector({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self.requirements == other.requirements and self.selects_nothing == other.selects_nothing

    def __hash__(self) -> int:
        return hash((self.requirements, self.selects_nothing))


@lru_cache(maxsize=1024)
def parse(text: str) -> Selector:
    """The selector a text stands for; `SelectorError` if for none."""
    return Selector(_Parser(text).parse()) if text else EVERYTHING


def from_set(labels: Mapping[str, str] | None) -> Selector:
    """All of these labels, unchecked, for selectors that are plain maps (a Service's); none selects everything."""
    if not labels:
        return EVERYTHING
    return Selector(Requirement(key, EQUALS, (value,)) for key, value in labels.items())


def from_label_selector(selector: Any) -> Selector:
    """From a LabelSelector (has `match_labels`, `match_expressions`); None selects nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    match_labels, expressions = selector.match_labels, selector.match_expressions
    if not match_labels and not expressions:
        return EVERYTHING
    requirements = [checked(key, EQUALS, (value,)) for key, value in (match_labels or {}).items()]
    for each in expressions or ():
        operator = _STRUCT_OPERATORS.get(each.operator or "")
        if operator is None:
            raise SelectorError(f"{quote(each.operator or '')} is not a valid label selector operator")
        requirements.append(checked(each.key or "", operator, each.values or ()))
    return Selector(requirements)


def checked(key: str, operator: str, values: Sequence[str] = (), path: Path | None = None) -> Requirement:
    """A requirement whose parts are valid; `SelectorError` with all that is wrong otherwise."""
    problems = validate(key, operator, values, path)
    if problems:
        raise SelectorError(field.aggregate(problems))
    return Requirement(key, operator, values)


def validate(key: str, operator: str, values: Sequence[str], path: Path | None = None) -> list[FieldError]:
    """Validate the parts of a requirement."""
    at = path.child if path is not None else Path
    problems: list[FieldError] = []
    wrong = is_label_key(key)
    if wrong:
        problems.append(field.invalid(at("key"), key, "; ".join(wrong)))
    printed = list(values) or None  # an empty list is nil upstream and printed so
    if operator in (IN, NOT_IN):
        if not values:
            detail = "for 'in', 'notin' operators, values set can't be empty"
            problems.append(field.invalid(at("values"), printed, detail))
    elif operator in (EQUALS, DOUBLE_EQUALS, NOT_EQUALS):
        if len(values) != 1:
            detail = "exact-match compatibility requires one single value"
            problems.append(field.invalid(at("values"), printed, detail))
    elif operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            detail = "values set must be empty for exists and does not exist"
            problems.append(field.invalid(at("values"), printed, detail))
    elif operator in (GREATER_THAN, LESS_THAN):
        if len(values) != 1:
            detail = "for 'Gt', 'Lt' operators, exactly one value is required"
            problems.append(field.invalid(at("values"), printed, detail))
        for index, value in enumerate(values):
            if _integer(value) is None:
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                problems.append(field.invalid(at("values").index(index), value, detail))
    else:
        problems.append(field.not_supported(at("operator"), operator, [*_BINARY, EXISTS, DOES_NOT_EXIST]))
    for index, value in enumerate(values):
        wrong = is_label_value(value)
        if wrong:
            problems.append(field.invalid(at("values").index(index).key(key), value, "; ".join(wrong)))
    return problems


def validate_labels(labels: Mapping[str, str] | None, path: Path) -> list[FieldError]:
    """Validate the keys and values of a map of labels."""
    problems: list[FieldError] = []
    for key, value in (labels or {}).items():
        problems.extend(field.invalid(path, key, wrong) for wrong in is_label_key(key))
        problems.extend(field.invalid(path, value, wrong) for wrong in is_label_value(value))
    return problems


# --- matching


def _always(labels: Labels) -> bool:
    return True


def _never(labels: Labels) -> bool:
    return False


def _compile_all(requirements: tuple[Requirement, ...]) -> Matches:
    if not requirements:
        return _always
    if len(requirements) == 1:
        return _compile(requirements[0])
    if all(each.operator in (EQUALS, DOUBLE_EQUALS) and len(each.values) == 1 for each in requirements):
        pairs = tuple((each.key, each.values[0]) for each in requirements)

        def equal(labels: Labels) -> bool:
            if not labels:
                return False
            get = labels.get
            for key, value in pairs:  # noqa: SIM110 - a generator costs more than the comparison
                if get(key) != value:
                    return False
            return True

        return equal
    conditions = tuple(map(_compile, requirements))

    def every(labels: Labels) -> bool:
        for condition in conditions:  # noqa: SIM110
            if not condition(labels):
                return False
        return True

    return every


def _compile(requirement: Requirement) -> Matches:
    key, values, operator = requirement.key, frozenset(requirement.values), requirement.operator
    if operator in (IN, EQUALS, DOUBLE_EQUALS):
        if len(values) == 1:
            (only,) = values
            return lambda labels: bool(labels) and labels.get(key) == only  # type: ignore[union-attr]
        return lambda labels: bool(labels) and labels.get(key) in values  # type: ignore[union-attr,operator]
    if operator in (NOT_IN, NOT_EQUALS):
        return lambda labels: not labels or labels.get(key) not in values
    if operator == EXISTS:
        return lambda labels: bool(labels) and key in labels  # type: ignore[operator]
    if operator == DOES_NOT_EXIST:
        return lambda labels: not labels or key not in labels
    limit = _integer(requirement.values[0]) if len(requirement.values) == 1 else None
    if limit is None or operator not in (GREATER_THAN, LESS_THAN):
        return _never

    def compare(labels: Labels, limit: int = limit, greater: bool = operator == GREATER_THAN) -> bool:
        value = _integer(labels.get(key, "")) if labels else None
        return value is not None and (value > limit if greater else value < limit)

    return compare


_is_integer = re.compile("[+-]?[0-9]{1,4000}", re.ASCII).fullmatch


def _integer(text: str) -> int | None:
    value = int(text) if _is_integer(text) else None
    return value if value is not None and -(1 << 63) <= value < 1 << 63 else None


# --- parsing

# A word ends at a symbol or blank; a NUL ends everything, as it does for upstream's lexer.
_TOKENS = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^ \t\r\n=!(),<>\0]+))")
_END: Final = ""


class _Parser:
    """Upstream's grammar. A token is its text; the end is the empty text; `in` and `notin` are words too."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        position = 0
        while (match := _TOKENS.match(text, position)) is not None:
            self.tokens.append(match[1] or match[2])
            position = match.end()
        self.tokens.append(_END)
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position]

    def take(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1]

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            token = self.peek()
            if token == _END:
                return requirements
            if token != "!" and not _word(token):
                raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self.requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            token = self.take()
            if token == _END:
                return requirements
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
            following = self.peek()
            if following != "!" and not _word(following):
                raise SelectorError(f"found '{following}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        token = self.take()
        absent = token == "!"
        key = self.take() if absent else token
        if not _word(key):
            raise SelectorError(f"found '{key}', expected: identifier")
        wrong = is_label_key(key)
        if wrong:
            raise SelectorError(str(field.invalid(None, key, "; ".join(wrong))))
        if absent or self.peek() in (_END, ","):
            # `!key = value` fails on the operator, as it does upstream: the caller finds no comma.
            return checked(key, DOES_NOT_EXIST if absent else EXISTS)
        token = self.take()
        operator = _TOKEN_OPERATORS.get(token)
        if operator is None:
            raise SelectorError(f"found '{token}', expected: {', '.join(_BINARY)}")
        values = self.values() if operator in (IN, NOT_IN) else {self.value()}
        return checked(key, operator, sorted(values))

    def values(self) -> set[str]:
        token = self.take()
        if token != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        token = self.peek()
        if token == ")":
            self.take()
            return {""}
        if token != "," and not _word(token):
            raise SelectorError(f"found '{token}', expected: ',', ')' or identifier")
        values = self.listed()
        self.take()
        return values

    def listed(self) -> set[str]:
        """Words between commas; a comma beside a comma or a parenthesis stands for the empty value."""
        values: set[str] = set()
        while True:
            token = self.take()
            if _word(token):
                values.add(token)
                following = self.peek()
                if following == ")":
                    return values
                if following != ",":
                    raise SelectorError(f"found '{following}', expected: ',' or ')'")
            elif token == ",":
                if not values:
                    values.add("")
                if self.peek() == ")":
                    values.add("")
                    return values
                if self.peek() == ",":
                    values.add("")
            else:
                raise SelectorError(f"found '{token}', expected: ',', or identifier")

    def value(self) -> str:
        if self.peek() in (_END, ","):
            return ""
        token = self.take()
        if not _word(token):
            raise SelectorError(f"found '{token}', expected: identifier")
        return token


def _word(token: str) -> bool:
    return token != _END and token[0] not in "=!(),<>"


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(selects_nothing=True)
