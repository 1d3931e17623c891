"""Rules of schemas without a server: budgets, messages that fail, defaults."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.apiextensions.v1 import JSONSchemaProps
from pybernetes.api.field import FieldError, Path
from pybernetes.api.structural.rulecosts import validate_default_rules, validate_rules
from pybernetes.api.structural.rules import Rules, compile_rules

V = "x-kubernetes-validations"


def schema(**spec: Any) -> JSONSchemaProps:
    return msgspec.convert({"type": "object", "properties": {"spec": {"type": "object", **spec}}}, JSONSchemaProps)


def compiled(**spec: Any) -> Rules:
    rules = compile_rules(schema(**spec))
    assert rules is not None
    return rules


def texts(errors: list[FieldError]) -> list[str]:
    return [str(error) for error in errors]


NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}


def test_a_schema_without_rules_has_none() -> None:
    assert compile_rules(schema(properties=NUMBERS)) is None
    assert compile_rules(None) is None


def test_the_budget_is_shared_by_all_rules_of_an_object() -> None:
    rules = compiled(properties=NUMBERS, **{V: [{"rule": "self.a > 0"}, {"rule": "self.b > 0", "message": "b"}]})
    value = {"spec": {"a": 1, "b": 0}}
    assert texts(rules(value, None, print)) == ["spec: Invalid value: b"]
    out = 'spec: Invalid value: "object": validation failed due to running out of cost budget'
    [first] = texts(rules(value, None, print, budget=1))
    assert first.startswith(out)
    [second] = texts(rules(value, None, print, budget=4))
    assert second.startswith(out), "the first rule was asked, the second was not"


def test_a_message_that_cannot_be_said_gives_way_to_the_fixed_one() -> None:
    for expression in ("self.a > 0 ? '' : ' '", "'two\\nlines'", "string(1 / self.a)"):
        rule = {"rule": "self.a > 0", "message": "fixed", "messageExpression": expression}
        rules = compiled(properties=NUMBERS, **{V: [rule]})
        assert texts(rules({"spec": {"a": 0}}, None, print)) == ["spec: Invalid value: fixed"]


def test_reasons_and_paths() -> None:
    rule = {"rule": "self.a > 0", "reason": "FieldValueDuplicate", "fieldPath": ".a"}
    [error] = compiled(properties=NUMBERS, **{V: [rule]})({"spec": {"a": 0}}, None, print)
    assert (error.type, error.field) == ("FieldValueDuplicate", "spec.a")


def test_a_violation_that_existed_before_is_a_warning() -> None:
    rules = compiled(properties=NUMBERS, **{V: [{"rule": "self.a > 0", "message": "a"}]})
    warnings: list[str] = []
    assert rules({"spec": {"a": 0}}, {"spec": {"a": 0}}, warnings.append) == []
    assert warnings == ["spec: Invalid value: a"]
    assert texts(rules({"spec": {"a": 0, "b": 1}}, {"spec": {"a": 0}}, print)) == ["spec: Invalid value: a"]


def test_defaults_obey_the_rules() -> None:
    number = {"type": "integer", "default": 7, V: [{"rule": "self < 5", "message": "too much"}]}
    made = schema(properties={"n": number})
    assert validate_rules(made, Path("s")) == []
    assert texts(validate_default_rules(made, Path("s"))) == [
        "s.properties[spec].properties[n].default: Invalid value: 7: too much"
    ]


def test_what_expressions_may_not_see_has_no_rules_and_is_no_error() -> None:
    unseen = {"x-kubernetes-preserve-unknown-fields": True}
    made = schema(
        properties={
            "list": {"type": "array", "items": {"type": "array", "items": unseen}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": unseen}},
            "n": {"type": "integer", V: [{"rule": "self < 5"}]},
        }
    )
    assert validate_rules(made, Path("s")) == []
