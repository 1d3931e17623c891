"""Values of schemas: names that need escaping, formats, list types, what may not be seen."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.api.cel.ast import CompileError
from pybernetes.api.cel.environment import Environment
from pybernetes.api.cel.escaping import escape, unescape
from pybernetes.api.cel.schemas import type_from_schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "namespace": {"type": "string"},
        "x-y.z/w__v": {"type": "string"},
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "took": {"type": "string", "format": "duration"},
        "raw": {"type": "string", "format": "byte"},
        "ratio": {"type": "number"},
        "port": {"x-kubernetes-int-or-string": True},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
        },
        "atomic": {"type": "array", "items": {"type": "string"}},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": True},
        "limits": {"type": "object", "additionalProperties": {"type": "number"}},
    },
}
TYPE = type_from_schema(SCHEMA, root=True)
assert TYPE is not None
ENVIRONMENT = Environment({"self": TYPE, "oldSelf": TYPE})


@pytest.mark.parametrize(
    ("rule", "self", "old"),
    [
        ("self.__namespace__ == 'a'", {"namespace": "a"}, {}),
        ("self.x__dash__y__dot__z__slash__w__underscores__v == 'a'", {"x-y.z/w__v": "a"}, {}),
        ("self.when > timestamp('2020-01-01T00:00:00Z')", {"when": "2021-01-01T00:00:00Z"}, {}),
        ("self.day == timestamp('2021-01-01T00:00:00Z')", {"day": "2021-01-01"}, {}),
        ("self.took == duration('1h')", {"took": "60m"}, {}),
        ("self.raw == b'hi'", {"raw": "aGk="}, {}),
        ("self.ratio / 2.0 == 0.5 && type(self.ratio) == double", {"ratio": 1}, {}),
        ("type(self.port) == int ? self.port < 5 : self.port.endsWith('%')", {"port": "4%"}, {}),
        ("self.set == oldSelf.set", {"set": ["a", "b"]}, {"set": ["b", "a"]}),
        ("self.atomic != oldSelf.atomic", {"atomic": ["a", "b"]}, {"atomic": ["b", "a"]}),
        ("self.set + oldSelf.set == ['a', 'b', 'c']", {"set": ["a", "b"]}, {"set": ["b", "c"]}),
        ("self.map == oldSelf.map", {"map": [{"k": "1", "v": 1}, {"k": "2"}]},
         {"map": [{"k": "2"}, {"k": "1", "v": 1}]}),
        ("(self.map + oldSelf.map).map(e, e.v) == [5, 2]", {"map": [{"k": "1", "v": 1}]},
         {"map": [{"k": "2", "v": 2}, {"k": "1", "v": 5}]}),
        ("self.metadata.name == 'n' && self.kind == 'K'", {"kind": "K", "metadata": {"name": "n"}}, {}),
        ("self.embedded.metadata.name == 'n'", {"embedded": {"metadata": {"name": "n"}}}, {}),
        ("!has(self.ratio)", {}, {}),
        ("self.limits.all(k, self.limits[k] < 2.5)", {"limits": {"a": 2}}, {}),
    ],
)  # fmt: skip
def test_a_rule_sees_values_as_the_schema_says(rule: str, self: dict[str, Any], old: dict[str, Any]) -> None:
    assert ENVIRONMENT.compile(rule).evaluate({"self": self, "oldSelf": old})[0] is True


@pytest.mark.parametrize("name", ["any", "metadata.labels", "nope"])
def test_what_the_schema_does_not_describe_cannot_be_seen(name: str) -> None:
    with pytest.raises(CompileError, match="undefined field"):
        ENVIRONMENT.compile(f"has(self.{name})")


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("a", "a"),
        ("namespace", "__namespace__"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("1a", None),
        ("a$", None),
        ("", None),
    ],
)
def test_names_are_escaped_and_back(name: str, identifier: str | None) -> None:
    assert escape(name) == identifier
    if identifier is not None:
        assert unescape(identifier) == name
