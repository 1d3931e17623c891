"""Tests wait for conditions: a fixed sleep is too long on a fast machine and too short on a busy one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tools

LONGEST = 0.2
EXCUSE = "# not a wait"
"""Begins the comment of a sleep that waits for nothing: a peer that is slow on purpose, the moment of a kill."""


def fixed_sleeps(source: str) -> Iterator[tuple[int, float]]:
    """The line and the seconds of each sleep that is too long, and has no excuse beside it."""
    tree, lines = ast.parse(source), source.splitlines()
    constants = {
        target.id: value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and (value := seconds(node.value, {})) is not None
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in ("time.sleep", "asyncio.sleep"):
            value = seconds(node.args[0], constants)
            if value is not None and value >= LONGEST and EXCUSE not in lines[(node.end_lineno or node.lineno) - 1]:
                yield node.lineno, value


def seconds(node: ast.expr, constants: dict[str, float]) -> float | None:
    """The value of a number, a constant of the module, or a sum or product of them."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name):
            return constants.get(name)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() as op, right=right):
            one, other = seconds(left, constants), seconds(right, constants)
            if isinstance(op, ast.Add):  # what is not known is not negative
                return None if one is None and other is None else (one or 0) + (other or 0)
            return None if one is None or other is None else one * other
    return None


def test_no_test_sleeps_for_a_fixed_time() -> None:
    found = [
        f"{path.relative_to(tools.ROOT)}:{line}: sleeps for {value:g} s"
        for path in sorted((tools.ROOT / "tests").rglob("*.py"))
        for line, value in fixed_sleeps(path.read_text())
    ]
    assert not found, "wait for a condition (tools.wait_until), or say '# not a wait: ...':\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("time.sleep(0.2)", [(1, 0.2)]),
        ("async def f():\n    await asyncio.sleep(1)", [(2, 1.0)]),
        ("WAIT = 0.5\ntime.sleep(2 * WAIT)", [(2, 1.0)]),
        ("time.sleep(imported + 0.3)", [(1, 0.3)]),
        ("time.sleep(0.1)", []),
        ("time.sleep(every)", []),
        ("time.sleep(5)  # not a wait: a server that hangs", []),
        ("clock.sleep(5)", []),
    ],
)
def test_a_sleep_is_found_by_its_length(source: str, expected: list[tuple[int, float]]) -> None:
    assert list(fixed_sleeps(source)) == expected


def test_the_excuse_is_looked_for_on_the_line_of_the_call(tmp_path: Path) -> None:
    assert list(fixed_sleeps("# not a wait\ntime.sleep(5)")) == [(2, 5.0)]
