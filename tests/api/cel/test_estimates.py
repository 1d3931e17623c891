"""Costs before the run: the figures are upstream's for the same schema and rule."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.api.cel.environment import Environment
from pybernetes.api.cel.schemas import type_from_schema


def _simple(name: str) -> dict[str, Any]:
    if name == "int-or-string":
        return {"x-kubernetes-int-or-string": True}
    if name in ("date", "date-time", "duration", "byte"):
        return {"type": "string", "format": name}
    return {"type": name}


def _array(items: str) -> dict[str, Any]:
    return {"type": "array", "items": _simple(items)}


def _map(values: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": _simple(values)}


_OBJECTS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"required": {"type": "string"}, "optional": {"type": "string"}},
        "required": ["required"],
    },
}
_ARRAYS = {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}
_MAPS = {"type": "array", "items": _map("number")}

CASES: list[tuple[dict[str, Any], str, int, int, int]] = [
    (_array("number"), "self.all(x, true)", 4718591, 10, 32),
    (_array("string"), "self.all(x, true)", 3145727, 20, 62),
    (_array("boolean"), "self.all(x, true)", 1887437, 5, 17),
    (_ARRAYS, "self.all(x, true)", 3145727, 100, 302),
    (_OBJECTS, "self.all(x, true)", 555128, 50, 152),
    (_map("number"), "self.all(x, true)", 1348169, 10, 32),
    (_map("string"), "self.all(x, true)", 1179647, 3, 11),
    (_map("boolean"), "self.all(x, true)", 943718, 100, 302),
    (_simple("string"), "self.contains('test')", 314574, 10, 5),
    (_simple("string"), "self.startsWith('test')", 2, 15, 2),
    (_simple("string"), "self.endsWith('test')", 2, 30, 2),
    (_simple("string"), 'size(self + "hello") > size("hello")', 314578, 4, 7),
    (_array("number"), "self[1] == 0.0", 2, 5000, 2),
    (_array("string"), "self[1] == self[1]", 314577, 8, 314577),
    (_simple("string"), 'self.matches("x")', 314574, 50, 22),
    (_simple("string"), '"".matches("(((((((((())))))))))[0-9]")', 7, 10, 7),
    (_simple("string"), 'self.matches("")', 1, 100, 1),
    (_array("number"), "self[3] == 0.0", 2, 0, 2),
    (_map("number"), 'self["x"] == 0.0', 2, 0, 2),
    (_simple("string"), 'self == "x"', 2, 0, 1),
    (_simple("byte"), 'self == b"x"', 2, 0, 1),
    (_array("number"), "self.all(x, x == 0.0)", 6291454, 3 * 1024 * 2048, 25165826),
    (_array("int-or-string"), "self.all(x, true)", 4718591, 10, 32),
    (_array("int-or-string"), "self[0] == 5", 3, 10, 3),
    (_array("boolean"), "self[0] == false", 2, 25, 2),
    (_OBJECTS, "self[0] == null", 2, 422, 2),
    (_ARRAYS, "self[0][0] == -1.0", 3, 51, 3),
    (_MAPS, "self.all(x, x.y == 25.2)", 6291452, 12, 74),
    (_MAPS, "self[0].x > 2.0", 4, 3000, 4),
    (_array("duration"), "self.all(x, true)", 2359295, 5, 17),
    (_array("duration"), "self[0].getHours() == 2", 4, 525, 4),
    (_array("date"), "self.all(x, true)", 725936, 15, 47),
    (_array("date"), "self[2].getDayOfMonth() == 13", 4, 42, 4),
    (_array("date-time"), "self.all(x, true)", 428963, 25, 77),
    (_map("int-or-string"), "self.all(x, true)", 1348169, 15, 47),
]
_BOUNDS = {"array": "maxItems", "object": "maxProperties", "string": "maxLength"}


def _most(schema: dict[str, Any], rule: str) -> int:
    type = type_from_schema(schema)
    assert type is not None
    return Environment({"self": type}).compile(rule).estimate({"self": type}).max


@pytest.mark.parametrize(("schema", "rule", "unbounded", "bound", "bounded"), CASES)
def test_an_estimate_is_upstreams(schema: dict[str, Any], rule: str, unbounded: int, bound: int, bounded: int) -> None:
    assert _most(schema, rule) == unbounded
    assert _most(schema | {_BOUNDS[schema["type"]]: bound}, rule) == bounded


@pytest.mark.parametrize(
    ("rule", "bounded"),
    [("self.all(x, self.all(y, true))", 352), ("self.all(x, self.all(y, self.all(z, true)))", 3552)],
)
def test_a_loop_in_a_loop_is_too_expensive_without_a_bound(rule: str, bounded: int) -> None:
    assert _most(_array("number"), rule) > 10_000_000
    assert _most(_array("number") | {"maxItems": 10}, rule) == bounded


LIBRARIES = [
    ("[1, 2, 3].sum()", (13, 13), 3 + 10),
    ("'abc'.lowerAscii()", (1, 1), 1),
    ("quantity('1Gi').compareTo(quantity('1Mi'))", (3, 3), 3),
    ("ip('192.168.0.1').family()", (3, 3), 3),
    ("sets.contains([1, 2, 3], [2])", (24, 24), 24),
]


@pytest.mark.parametrize(("rule", "estimated", "spent"), LIBRARIES)
def test_functions_of_libraries_are_charged(rule: str, estimated: tuple[int, int], spent: int) -> None:
    program = Environment({}).compile(rule)
    assert tuple(program.estimate()) == estimated
    assert program.evaluate({})[1] == spent
