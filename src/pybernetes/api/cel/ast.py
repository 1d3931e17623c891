"""The syntax tree of expressions, and errors with their position."""

from __future__ import annotations

from typing import Any

from .types import ERROR, Type


class Node:
    """A part of an expression. `at` is where in the text it stands, `type` what the checker found."""

    __slots__ = ("at", "type")

    def __init__(self, at: int) -> None:
        self.at = at
        self.type: Type = ERROR


class Literal(Node):
    """A constant."""

    __slots__ = ("value",)

    def __init__(self, at: int, value: Any) -> None:
        super().__init__(at)
        self.value = value


class Ident(Node):
    """A variable, or the name of a type (then `constant` is that type)."""

    __slots__ = ("constant", "name")

    def __init__(self, at: int, name: str) -> None:
        super().__init__(at)
        self.name = name
        self.constant: Type | None = None


class Select(Node):
    """`operand.field`, or `has(operand.field)`. `key` is the field's name in JSON."""

    __slots__ = ("field", "key", "operand", "test", "variable")

    def __init__(self, at: int, operand: Node, field: str, test: bool = False) -> None:
        super().__init__(at)
        self.operand = operand
        self.field = field
        self.key = field
        self.test = test
        self.variable: Ident | None = None  # a qualified name that is a variable as a whole


class Call(Node):
    """A function, an operator or a method (then `target` is set)."""

    __slots__ = ("args", "key", "name", "overloads", "target")

    def __init__(self, at: int, name: str, args: list[Node], target: Node | None = None) -> None:
        super().__init__(at)
        self.name = name
        self.args = args
        self.target = target
        self.overloads: list[Any] = []
        self.key = ""  # of an optional field selection: the field's name in JSON


class ListNode(Node):
    """`[a, ?b]`"""

    __slots__ = ("items", "optional")

    def __init__(self, at: int, items: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(at)
        self.items = items
        self.optional = optional


class Entry:
    """`key: value` in a map, or `field: value` in an object."""

    __slots__ = ("at", "field", "json", "key", "optional", "value")

    def __init__(self, at: int, key: Node | None, field: str, value: Node, optional: bool) -> None:
        self.at = at
        self.key = key
        self.field = field
        self.json = field
        self.value = value
        self.optional = optional


class MapNode(Node):
    """`{key: value}`"""

    __slots__ = ("entries",)

    def __init__(self, at: int, entries: list[Entry]) -> None:
        super().__init__(at)
        self.entries = entries


class StructNode(Node):
    """`Name{field: value}`"""

    __slots__ = ("entries", "name")

    def __init__(self, at: int, name: str, entries: list[Entry]) -> None:
        super().__init__(at)
        self.name = name
        self.entries = entries


class Comprehension(Node):
    """A loop, as macros write it: `macro` says which one, so that evaluation can take a short way."""

    __slots__ = (
        "accu",
        "body",
        "condition",
        "filter",
        "init",
        "macro",
        "range",
        "result",
        "step",
        "variable",
        "variable2",
    )

    def __init__(
        self,
        at: int,
        macro: str,
        range: Node,
        variables: tuple[str, str],
        accu: str,
        init: Node,
        condition: Node,
        step: Node,
        result: Node,
        body: Node,
        filter: Node | None = None,
    ) -> None:
        super().__init__(at)
        self.macro = macro
        self.range = range
        self.variable, self.variable2 = variables
        self.accu = accu
        self.init = init
        self.condition = condition
        self.step = step
        self.result = result
        self.body = body
        self.filter = filter


class Problem:
    """Something wrong at a place of the text."""

    __slots__ = ("at", "message")

    def __init__(self, at: int, message: str) -> None:
        self.at = at
        self.message = message


class CompileError(ValueError):
    """Why an expression is refused, as CEL shows it: one or more places with an arrow under each."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        self.source = source
        self.problems = sorted(problems, key=lambda problem: problem.at)
        super().__init__("\n".join(_display(source, problem) for problem in self.problems[:100]))


def _display(source: str, problem: Problem) -> str:
    if problem.at < 0:
        return f"ERROR: <input>:-1:0: {problem.message}"
    if not source:
        return f"ERROR: <input>:1:0: {problem.message}"
    before = source[: problem.at]
    line = before.count("\n")
    column = problem.at - (before.rfind("\n") + 1)
    text = source.split("\n")[line].replace("\t", " ")
    dots = "".join("．" if ord(char) > 127 else "." for char in text[:column])  # noqa: RUF001 - as wide as what is above
    arrow = "＾" if column < len(text) and ord(text[column]) > 127 else "^"  # noqa: RUF001
    return f"ERROR: <input>:{line + 1}:{column + 1}: {problem.message}\n | {text}\n | {dots}{arrow}"
