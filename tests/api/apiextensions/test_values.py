"""JSON values against schemas: any value gets an answer, and the answer names the place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.api.apiextensions.patterns import PatternError, compile_pattern
from pybernetes.api.apiextensions.pruning import prune
from pybernetes.api.apiextensions.v1 import JSONSchemaProps
from pybernetes.api.apiextensions.values import validate_value


def schema(**fields: Any) -> JSONSchemaProps:
    return msgspec.convert(fields, JSONSchemaProps)


@pytest.mark.parametrize(
    ("value", "fields", "messages"),
    [
        ("x", {"type": "string"}, []),
        (3, {"x-kubernetes-int-or-string": True}, []),
        ("3", {"x-kubernetes-int-or-string": True}, []),
        (
            True,
            {"x-kubernetes-int-or-string": True},
            ['<nil>: Invalid value: "boolean":  in body must be of type integer,string: "boolean"'],
        ),
        (1.0, {"type": "integer"}, []),
        (1, {"type": "number"}, []),
        (True, {"type": "integer"}, ['<nil>: Invalid value: "boolean":  in body must be of type integer: "boolean"']),
        (None, {"type": "string", "nullable": True}, []),
        (None, {"type": "string"}, ['<nil>: Invalid value: "null":  in body must be of type string: "null"']),
        (
            {"spec": {"size": "big"}},
            {"properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}},
            ['spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'],
        ),
        ({"a": 1}, {"additionalProperties": {"type": "integer"}}, []),
        (1, {"enum": [True]}, ['<nil>: Unsupported value: 1: supported values: "true"']),
        (
            1 << 31,
            {"type": "integer", "format": "int32"},
            ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in '],
        ),
        (
            "10.0.0.300",
            {"type": "string", "format": "ipv4"},
            ['<nil>: Invalid value: "10.0.0.300":  in body must be of type ipv4: "10.0.0.300"'],
        ),
        ("whatever", {"type": "string", "format": "unheard-of"}, []),
        (7, {"minimum": 7, "exclusiveMinimum": True}, ["<nil>: Invalid value: 7:  in body should be greater than 7"]),
        (7, {"maximum": 6.5}, ["<nil>: Invalid value: 7:  in body should be less than or equal to 6"]),
        (7, {"multipleOf": 2}, ["<nil>: Invalid value: 7:  in body should be a multiple of 2"]),
        (0.3, {"multipleOf": 0.1}, []),
        (1e10, {"multipleOf": 3}, []),
        (0.25, {"multipleOf": 0.1}, ["<nil>: Invalid value: 0.25:  in body should be a multiple of 0.1"]),
        (1, {"multipleOf": 0.1}, ["<nil>: Invalid value: 0: factor MultipleOf declared for  must be positive: 0"]),
        (1e6, {"maximum": 5}, ["<nil>: Invalid value: 1e+06:  in body should be less than or equal to 5"]),
        (
            3.5e38,
            {"type": "number", "format": "float"},
            ['<nil>: Invalid value: "": Checked value must be of type number with format float in '],
        ),
        (None, {"nullable": True, "enum": [None]}, ['<nil>: Unsupported value: null: supported values: "null"']),
    ],
)
def test_a_value_is_checked_in_upstreams_words(value: Any, fields: dict[str, Any], messages: list[str]) -> None:
    assert [error.message() for error in validate_value(value, schema(**fields))] == messages


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), 1 << 63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
FULL = schema(
    type="object",
    properties={
        "": {"type": "string", "pattern": "^a", "format": "date-time"},
        "a": {"type": "integer", "minimum": 1, "multipleOf": 3},
        "b": {"type": "array", "items": {"type": "number"}, "maxItems": 1},
    },
    anyOf=[{"required": ["a"]}, {"required": ["b"]}],
    additionalProperties={"type": "object", "properties": {"c": {"type": "string"}}},
)


@given(json_values)
def test_any_value_gets_an_answer(value: Any) -> None:
    for error in validate_value(value, FULL):
        assert error.message()


@given(json_values)
def test_pruning_twice_changes_no_more(value: Any) -> None:
    prune(value, FULL)
    once = msgspec.json.encode(value)
    prune(value, FULL)
    assert msgspec.json.encode(value) == once


def test_unknown_fields_go_and_known_ones_stay() -> None:
    value = {
        "kind": "A",
        "metadata": {"x": 1},
        "spec": {"a": 1, "z": {"q": 1}},
        "status": {"b": 1},
        "m": {"k": {"y": 1}},
    }
    properties = {
        "spec": {"type": "object", "properties": {"a": {"type": "integer"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "m": {"type": "object", "additionalProperties": {"type": "object"}},
    }
    prune(value, schema(type="object", properties=properties), is_root=True)
    assert value == {"kind": "A", "metadata": {"x": 1}, "spec": {"a": 1}, "status": {"b": 1}, "m": {"k": {}}}


def test_fields_below_kept_ones_are_pruned_if_they_are_specified() -> None:
    value = {"known": {"a": 1, "z": 1}, "unknown": {"q": 1}}
    known = {"known": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    prune(value, schema(**{"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": known}))
    assert value == {"known": {"a": 1}, "unknown": {"q": 1}}


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a+$", "aaa", True),
        ("b", "abc", True),
        (r"\Aab\z", "ab", True),
        (r"\Aab\z", "ab\n", False),
        ("[[:alpha:]]+[]x]", "ab]", True),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\Qa.b\E$", "axb", False),
        (r"^\x{41}$", "A", True),
        (r"^\p{L}+$", "größe", True),
        (r"^\d+$", "٣", False),
        ("(?i)^ABC$", "abc", True),
        ("^a$", "a\n", False),
        ("(?m)^a$", "a\n", True),
        (r"^\s$", "\v", False),
        (r"^[\s.]$", "\t", True),
        (r"^\S$", "\v", True),
        (r"^[^\S]$", "\v", False),
        (r"^\p{Greek}+\p{Nd}$", "λ1", True),
        (r"^[[:^alpha:]]$", "a", False),
        ("^(?<n>a)(?i)B$", "ab", True),
        (r"^\101[\d-z]$", "A-", True),
        ("^*a{1000}$", "a" * 1000, True),
        ("^[a-z]{2,3}$", "abcd", False),
    ],
)
def test_patterns_match_as_in_go(pattern: str, text: str, found: bool) -> None:
    assert bool(compile_pattern(pattern).search(text)) is found


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(?=x)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        ("(?x)a", "error parsing regexp: invalid or unsupported Perl syntax: `(?x`"),
        ("(?<!x)y", "error parsing regexp: invalid named capture: `(?<!x)y`"),
        ("(?P<n", "error parsing regexp: invalid named capture: `(?P<n`"),
        ("a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"),
        ("a{3,2}", "error parsing regexp: invalid repeat count: `{3,2}`"),
        ("(a{10}){101}", "error parsing regexp: invalid repeat count: `{101}`"),
        ("a{2}{3}", "error parsing regexp: invalid nested repetition operator: `{2}{3}`"),
        (r"\p{Foo}", r"error parsing regexp: invalid character class range: `\p{Foo}`"),
        (r"\x{110000}", r"error parsing regexp: invalid escape sequence: `\x{110000`"),
        (r"\C", r"error parsing regexp: invalid escape sequence: `\C`"),
        (r"[\b]", r"error parsing regexp: invalid escape sequence: `\b`"),
        ("[a--b]", "error parsing regexp: invalid character class range: `a--`"),
        (r"(a)\1", r"error parsing regexp: invalid escape sequence: `\1`"),
        ("[", "error parsing regexp: missing closing ]: `[`"),
        ("(a", "error parsing regexp: missing closing ): `(a`"),
        ("a)", "error parsing regexp: unexpected ): `a)`"),
        ("*", "error parsing regexp: missing argument to repetition operator: `*`"),
        ("a++", "error parsing regexp: invalid nested repetition operator: `++`"),
        ("a\\", "error parsing regexp: trailing backslash at end of expression: ``"),
    ],
)
def test_what_go_refuses_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == message


@given(st.text(alphabet=r"ab[]()^$\.*+?{},:1Qzp|-<=!P", max_size=12))
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    try:
        compile_pattern(text)
    except PatternError:
        pass
