"""Checks constants before an evaluation: invalid patterns, and formats that do not match their arguments.

Upstream finds two kinds: some when it checks an expression (a place and an arrow), some when it makes the program,
where conversions of constants are computed at once and reported without a place (`Uninstantiable`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..apiextensions.patterns import PatternError, compile_pattern
from .ast import Call, CompileError, Comprehension, ListNode, Literal, MapNode, Node, Problem, Select, StructNode
from .functions import choose
from .libraries.strings import CLAUSE, UNFINISHED, clause_problem
from .types import Type
from .values import EvaluationError, Timestamp, parse_go_duration, parse_timestamp

_CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"))


class Uninstantiable(CompileError):
    """A constant that cannot be what a function makes of it, in an expression of this type. The text has no place."""

    def __init__(self, source: str, message: str, result_type: Type) -> None:
        super().__init__(source, [])
        self.args = (message,)
        self.result_type = result_type


def check_literals(source: str, root: Node) -> None:
    """Raise CompileError for constants that cannot work."""
    nodes = walk(root)
    calls = [node for node in nodes if isinstance(node, Call)]
    problems = [problem for call in calls for problem in _placed(call)]
    problems += _mixtures(nodes, calls)
    if problems:
        raise CompileError(source, problems)
    for call in calls:
        try:
            _instantiate(call)
        except (EvaluationError, PatternError) as error:
            raise Uninstantiable(source, str(error), root.type) from None


def _timestamp(text: str) -> Timestamp | None:
    try:
        return parse_timestamp(text)
    except EvaluationError:
        return None


def _placed(call: Call) -> Iterator[Problem]:
    if call.name in ("duration", "timestamp") and len(call.args) == 1:
        argument = call.args[0]
        read = parse_go_duration if call.name == "duration" else _timestamp
        if isinstance(argument, Literal) and isinstance(argument.value, str) and read(argument.value) is None:
            yield Problem(argument.at, f"invalid {call.name} argument")
    elif call.name == "matches":
        argument = call.args[-1]
        if isinstance(argument, Literal) and isinstance(argument.value, str):
            try:
                compile_pattern(argument.value)
            except PatternError:
                yield Problem(argument.at, "invalid matches argument")
    elif call.name == "format" and isinstance(call.target, Literal) and isinstance(call.args[0], ListNode):
        problem = _format(call, str(call.target.value), call.args[0].items)
        if problem is not None:
            yield problem


def _mixtures(nodes: list[Node], calls: list[Call]) -> Iterator[Problem]:
    """Lists and maps whose parts are of several types; even what is dynamic may not stand beside what is not."""
    exempt = {id(inner) for call in calls if call.name == "format" for each in call.args for inner in walk(each)}
    for node in nodes:
        if id(node) in exempt:
            continue
        if isinstance(node, ListNode):
            yield from _mixed([(item, index in node.optional) for index, item in enumerate(node.items)])
        elif isinstance(node, MapNode):
            yield from _mixed([(entry.key, False) for entry in node.entries if entry.key is not None])
            yield from _mixed([(entry.value, entry.optional) for entry in node.entries])


def _mixed(parts: list[tuple[Node, bool]]) -> Iterator[Problem]:
    first: Type | None = None
    for node, optional in parts:
        type = node.type.params[0] if optional and node.type.params else node.type
        if first is None:
            first = type
        elif not first.exact(type):
            yield Problem(node.at, f"expected type '{first}' but found '{type}'")
            return


def _format(call: Call, text: str, items: list[Node]) -> Problem | None:
    used = 0
    for match in CLAUSE.finditer(text):
        if match[0] == "%%":
            continue
        if used >= len(items):
            return Problem(call.at, f"index {used} out of range")
        kind = items[used].type
        message, misfit = clause_problem(match[2], kind.kind, _name(kind))
        if message:
            return Problem(items[used].at if misfit else call.at, message)
        used += 1
    if UNFINISHED.search(text):
        return Problem(call.at, "unexpected end of string")
    if len(items) > used:
        expected = f"(expected {used}, got {len(items)})"
        return Problem(call.at, f"too many arguments supplied to string.format {expected}")
    return None


def _name(type: Type) -> str:
    return type.name


def _instantiate(call: Call) -> None:
    """Work out what upstream works out when it makes the program."""
    if call.name in _CONVERSIONS and len(call.args) == 1 and call.target is None:
        known, value = _constant(call.args[0])
        if known:
            choose(call.name, call.overloads, (value,)).impl(value)
    elif call.name in ("find", "findAll", "matches") and call.args:
        known, value = _constant(call.args[-1] if call.name == "matches" else call.args[0])
        if known and isinstance(value, str):
            compile_pattern(value)


def _constant(node: Node) -> tuple[bool, Any]:
    if isinstance(node, Call) and node.name == "dyn" and node.target is None and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, Literal):
        return True, node.value
    if isinstance(node, ListNode) and node.items and all(isinstance(item, Literal) for item in node.items):
        return True, [item.value for item in node.items if isinstance(item, Literal)]
    return False, None


def walk(node: Node) -> list[Node]:
    """The node and everything under it."""
    found, waiting = [], [node]
    while waiting:
        each = waiting.pop()
        found.append(each)
        match each:
            case Select():
                waiting.append(each.operand)
            case Call():
                waiting.extend(each.args)
                if each.target is not None:
                    waiting.append(each.target)
            case ListNode():
                waiting.extend(each.items)
            case MapNode() | StructNode():
                for entry in each.entries:
                    waiting.append(entry.value)
                    if entry.key is not None:
                        waiting.append(entry.key)
            case Comprehension():
                waiting.extend((each.range, each.init, each.condition, each.step))
                if each.macro == "bind":
                    waiting.append(each.result)
    return found
