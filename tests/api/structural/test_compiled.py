"""What is compiled from a schema says the same as what walks it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pybernetes.api.apiextensions.pruning import prune
from pybernetes.api.apiextensions.v1 import JSONSchemaProps
from pybernetes.api.apiextensions.values import validate_value
from pybernetes.api.managedfields import record_update, structural
from pybernetes.api.managedfields.created_plain import CreatedFields
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.structural import listtypes
from pybernetes.api.structural.accepting import Acceptor, add_defaults, drop_nulls
from pybernetes.api.structural.checking import compile_check

NUMBER = {"type": "number", "minimum": 0, "maximum": 2}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "string", "maxLength": 3, "pattern": "^[a-z]*$"},
        "b": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
        "c": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 3},
        "d": {"type": "object", "additionalProperties": {"type": "integer", "nullable": True}},
        "e": {"x-kubernetes-preserve-unknown-fields": True},
        "f": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["a"],
            "items": {
                "type": "object",
                "required": ["a"],
                "properties": {"a": {"type": "string"}, "b": {"type": "boolean", "default": True}},
            },
        },
        "g": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}}},
        "h": {"type": "string", "nullable": True, "enum": ["x", "y"]},
        "i": {"x-kubernetes-int-or-string": True},
        "j": {"type": "number"},
        "l": {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "additionalProperties": NUMBER},
        "m": {"type": "integer", "multipleOf": 2, "not": {"enum": [4]}},
        "k": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
    },
}
TYPED = msgspec.convert(SCHEMA, JSONSchemaProps)
ACCEPT = Acceptor(TYPED)
CHECK = compile_check(TYPED)

scalars = st.none() | st.booleans() | st.integers(-3, 7) | st.floats(-2, 2) | st.sampled_from(["", "x", "ab", "abcd"])
keys = st.sampled_from("abcdefghijklmz")
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
plausible = st.fixed_dictionaries(
    {},
    optional={
        "a": st.sampled_from(["", "ab", "abcd", "A", 1]),
        "b": st.integers(0, 6) | st.none(),
        "c": st.lists(st.sampled_from(["x", "y", "z"]), max_size=4),
        "d": st.dictionaries(keys, st.integers(0, 2) | st.none(), max_size=2),
        "e": values,
        "f": st.lists(st.fixed_dictionaries({"a": st.sampled_from(["x", "y"])}, optional={"b": scalars}), max_size=3),
        "g": st.just({}) | st.none(),
        "h": st.sampled_from(["x", "z", None]),
        "i": scalars,
        "j": scalars,
        "k": st.dictionaries(keys, scalars, max_size=2),
        "l": st.dictionaries(st.sampled_from("abc"), st.integers(-1, 3) | st.floats(-1, 3), max_size=2),
        "m": st.integers(0, 9),
        "z": scalars,
    },
)
objects = plausible | st.dictionaries(keys, values, max_size=4)


@settings(max_examples=150, deadline=None)
@given(objects)
def test_accepting_is_pruning_dropping_nulls_and_defaulting(value: dict[str, Any]) -> None:
    exact = deepcopy(value)
    unknown = prune(exact, TYPED, is_root=True)
    drop_nulls(exact, TYPED)
    add_defaults(exact, TYPED)
    assert ACCEPT(value) == unknown
    assert value == exact


@settings(max_examples=150, deadline=None)
@given(objects)
def test_a_check_is_sure_only_of_what_is_right(value: dict[str, Any]) -> None:
    wrong = validate_value(value, TYPED) + listtypes.validate(value, TYPED)
    if CHECK(value):
        assert wrong == []


def test_a_check_is_sure_of_ordinary_objects() -> None:
    assert CHECK({"a": "ab", "b": 3, "c": ["x"], "d": {"k": 1}, "e": {"any": [1]}, "f": [{"a": "x"}, {"a": "y"}]})
    assert CHECK({"a": "", "l": {"a": 1.5}, "m": 6})
    assert not CHECK({"b": 3})


@settings(max_examples=150, deadline=None)
@given(objects)
def test_a_creator_owns_what_differs_from_nothing(value: dict[str, Any]) -> None:
    node = structural.node_of({"type": "object", "properties": {"spec": SCHEMA}})
    meta = ObjectMeta(name="x", labels={"l": "1"}, finalizers=["b", "a"])
    document = {"apiVersion": "g/v1", "kind": "K", "metadata": msgspec.to_builtins(meta), "spec": value}
    slow = record_update(document, None, manager="m", api_version="g/v1", now="now", node=node, structs=True)
    quick = CreatedFields(node).entries(meta, {"spec": value}, "m", "g/v1", "now")
    assert [_plain(each) for each in quick] == [_plain(each) for each in slow]


def _plain(entry: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(entry))
