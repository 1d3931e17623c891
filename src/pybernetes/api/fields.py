"""Field selectors: `metadata.name=web-0,status.phase!=Running`.

Only equality and inequality, on the few fields a resource offers. Which those are is the resource's affair; here a
selector is matched against a map of field to text, in which an absent field is the empty text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

EQUALS: Final = "="
NOT_EQUALS: Final = "!="

_OPERATORS: Final = ("!=", "==", "=")


class FieldSelectorError(ValueError):
    """Text that is no field selector; its words are upstream's."""


class Requirement(NamedTuple):
    """One condition: `operator` is `=` or `!=`."""

    field: str
    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{escape(self.value)}"


class Selector:
    """All of some requirements; without any it selects everything."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        self.requirements = tuple(requirements)

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether an object with these fields is selected."""
        for name, operator, value in self.requirements:
            if (fields.get(name, "") == value) is not (operator == EQUALS):
                return False
        return True

    def empty(self) -> bool:
        """Whether it selects everything."""
        return not self.requirements

    def requires(self, name: str) -> str | None:
        """The one value this field must have, if the selector says so; for indexes and single-object watches."""
        for each in self.requirements:
            if each.field == name and each.operator == EQUALS:
                return each.value
        return None

    def transform(self, convert: Callable[[str, str], tuple[str, str]]) -> Selector:
        """With every field and value converted; a requirement whose both become empty is dropped."""
        converted = [(each.operator, *convert(each.field, each.value)) for each in self.requirements]
        return Selector(Requirement(name, op, value) for op, name, value in converted if name or value)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"Selector({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.requirements == other.requirements if isinstance(other, Selector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.requirements)


@lru_cache(maxsize=1024)
def parse(text: str) -> Selector:
    """The selector a text stands for; `FieldSelectorError` if for none."""
    if not text:
        return EVERYTHING
    requirements = []
    for term in sorted(_terms(text)):
        if not term:
            continue
        split = _split(term)
        if split is None:
            raise FieldSelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        name, operator, value = split
        if not name and not value:
            continue  # says nothing
        requirements.append(Requirement(name, NOT_EQUALS if operator == "!=" else EQUALS, unescape(value)))
    return Selector(requirements)


def escape(value: str) -> str:
    """A value as it is written in a selector."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def unescape(value: str) -> str:
    """A value from a selector as it is meant."""
    if "\\" not in value and "," not in value and "=" not in value:
        return value
    result: list[str] = []
    escaped = False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise FieldSelectorError(f"invalid field selector: invalid escape sequence: \\{char}")
            result.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise FieldSelectorError(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            result.append(char)
    if escaped:
        raise FieldSelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(result)


def _terms(text: str) -> list[str]:
    """Split at commas that are not escaped."""
    terms: list[str] = []
    start, escaped = 0, False
    for index, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            terms.append(text[start:index])
            start = index + 1
    return [*terms, text[start:]]


def _split(term: str) -> tuple[str, str, str] | None:
    """Field, operator and raw value at the first operator."""
    for index in range(len(term)):
        for operator in _OPERATORS:
            if term.startswith(operator, index):
                return term[:index], operator, term[index + len(operator) :]
    return None


EVERYTHING: Final = Selector()
