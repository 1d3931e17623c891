"""Functions that visit every part of an object: written down as Python and compiled, as dataclasses do.

A walk that asks the schema what to do with each field costs ten times as much as one that knows. `Visits(rule)` makes
one function for each class from a rule, which says in lines of Python what to do with one field of `obj`. A class is
compiled when the first object of it comes by: a pod is made of a hundred classes, and most pods of a dozen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base import Struct
from .schema import LIST, MAP, STRUCT, FieldInfo, fields

Visit = Callable[..., None]
Rule = Callable[["Source", FieldInfo], list[str]]


class Visits(dict[type[Struct], Visit]):
    """The functions that follow one rule, by class; `extra` are parameters beside `obj`, handed down as they are."""

    def __init__(self, title: str, rule: Rule, *extra: str) -> None:
        super().__init__()
        self._title = title
        self._rule = rule
        self.parameters = ", ".join(("", *extra))

    def __missing__(self, cls: type[Struct]) -> Visit:
        source = Source(self)
        lines = [line for info in fields(cls) for line in self._rule(source, info)]
        text = "\n".join([f"def visit(obj{self.parameters}):", *indented(lines or ["pass"])])
        exec(compile(text, f"<{self._title} {cls.__name__}>", "exec"), source.names)
        visit: Visit = source.names["visit"]
        self[cls] = visit
        return visit


class Source:
    """The text of one function: what a rule may refer to, and how it goes on inside of a value."""

    def __init__(self, visits: Visits) -> None:
        self.names: dict[str, Any] = {}
        self._visits = visits

    def name(self, value: Any) -> str:
        """The name under which the generated code can use a value that is not text."""
        name = f"v{len(self.names)}"
        self.names[name] = value
        return name

    def inside(self, info: FieldInfo, at: str, depth: int = 0) -> list[str]:
        """The lines that visit the structs in a value, which is there; `at` is the expression for it."""
        if info.struct is not None:
            return [f"{self._visit(info.struct)}({at}{self._visits.parameters})"]
        each = f"each{depth}"
        if info.kind in (LIST, MAP) and info.items is not None:
            lines = self.inside(info.items, each, depth + 1)
            values = f"{at}.values()" if info.kind == MAP else at
            return [f"for {each} in {values}:", *indented(lines)] if lines else []
        result = []
        for variant in info.variants:
            if lines := self.inside(variant, at, depth):
                type_ = variant.struct if variant.kind == STRUCT else list if variant.kind == LIST else dict
                result += [f"if type({at}) is {self.name(type_)}:", *indented(lines)]
        return result

    def _visit(self, cls: type[Struct]) -> str:
        """The name of the function for a class: at first of one that compiles it and then steps aside."""
        visits, names = self._visits, self.names

        def first(*arguments: Any) -> None:
            visit = names[name] = visits[cls]
            visit(*arguments)

        name = self.name(first)
        return name


def indented(lines: list[str]) -> list[str]:
    """Lines, one level deeper."""
    return [f"    {line}" for line in lines]
