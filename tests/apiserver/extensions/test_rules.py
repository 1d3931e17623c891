"""`x-kubernetes-validations`: rules in CEL; messages are upstream's."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.client import Client
from apiserver.extensions.conftest import Define
from apiserver.extensions.defining import Kind, spec_schema, version

V = "x-kubernetes-validations"
SHORT = {"type": "string", "maxLength": 10}
SCHEMA: dict[str, Any] = {
    "type": "object",
    V: [{"rule": "self.metadata.name.startsWith('ok')", "message": "name must start with ok"}],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["min", "max"],
            V: [
                {
                    "rule": "self.min <= self.max",
                    "messageExpression": "'min is above max %d'.format([self.max])",
                    "reason": "FieldValueForbidden",
                    "fieldPath": ".min",
                },
                {"rule": "!has(self.replicas) || self.replicas <= 10"},
            ],
            "properties": {
                "min": {"type": "integer"},
                "max": {"type": "integer"},
                "replicas": {"type": "integer"},
                "immutable": {**SHORT, V: [{"rule": "self == oldSelf", "message": "is immutable"}]},
                "once": {
                    **SHORT,
                    V: [
                        {
                            "rule": "!oldSelf.hasValue() || self == oldSelf.value()",
                            "optionalOldSelf": True,
                            "message": "set once",
                        }
                    ],
                },
                "list": {
                    "type": "array",
                    "maxItems": 5,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": SHORT, "v": {"type": "integer"}},
                        V: [{"rule": "self.v < 100"}, {"rule": "self.v >= oldSelf.v", "message": "v only grows"}],
                    },
                },
                "map": {
                    "type": "object",
                    "maxProperties": 4,
                    "additionalProperties": {**SHORT, V: [{"rule": "self != 'bad'", "reason": "FieldValueRequired"}]},
                },
                "took": {"type": "string", "format": "duration", V: [{"rule": "self > duration('1s')"}]},
                "div": {"type": "integer", V: [{"rule": "10 / self > 1"}]},
            },
        },
        "status": {"type": "object", V: [{"rule": "self.n > 0"}], "properties": {"n": {"type": "integer"}}},
    },
}


@pytest.fixture
def kind(define: Define) -> Kind:
    return define(version(SCHEMA, subresources={"status": {}}))


def test_rules_are_asked_for_every_place(kind: Kind) -> None:
    spec = {"min": 3, "max": 2, "replicas": 50, "list": [{"name": "a", "v": 1000}], "map": {"a": "bad"}}
    refused = kind.post("bad", spec={**spec, "took": "0s", "div": 0})
    assert refused.status == 422
    messages = {f"{each.get('field')}: {each['message']}" for each in refused.json["details"]["causes"]}
    assert messages == {
        "<nil>: Invalid value: name must start with ok",
        "spec.min: Forbidden: min is above max 2",
        "spec: Invalid value: failed rule: !has(self.replicas) || self.replicas <= 10",
        "spec.list[0]: Invalid value: failed rule: self.v < 100",
        "spec.map[a]: Required value: failed rule: self != 'bad'",
        "spec.took: Invalid value: \"0s\": failed rule: self > duration('1s')",
        'spec.div: Invalid value: "integer": division by zero evaluating rule: 10 / self > 1',
    }


def test_rules_are_not_asked_of_what_breaks_the_schema(kind: Kind) -> None:
    refused = kind.post("bad", spec={"min": 3, "max": "x"})
    assert "some validation rules were not checked because the object was invalid" in refused.message
    assert "name must start with ok" not in refused.message


TRANSITIONS: list[tuple[dict[str, Any], str]] = [
    ({"immutable": "b"}, 'spec.immutable: Invalid value: "b": is immutable'),
    ({"immutable": None}, ""),
    ({"once": "y"}, 'spec.once: Invalid value: "y": set once'),
    ({"list": [{"name": "a", "v": 0}]}, "spec.list[0]: Invalid value: v only grows"),
    ({"list": [{"name": "b", "v": 0}, {"name": "a", "v": 2}]}, ""),
]


@pytest.mark.parametrize(("spec", "message"), TRANSITIONS)
def test_rules_about_the_change(kind: Kind, spec: dict[str, Any], message: str) -> None:
    made = kind.post("ok1", spec={"min": 1, "max": 2, "immutable": "a", "once": "x", "list": [{"name": "a", "v": 1}]})
    assert made.status == 201, made.message
    answer = kind.patch({"spec": spec}, "ok1")
    assert (answer.status, message in answer.message) == (422 if message else 200, True), answer.message


def test_the_status_has_rules_too(kind: Kind) -> None:
    kind.post("ok1", spec={"min": 1, "max": 2})
    assert (
        "status: Invalid value: failed rule: self.n > 0"
        in kind.patch({"status": {"n": 0}}, "ok1", sub="/status").message
    )
    assert kind.patch({"status": {"n": 1}}, "ok1", sub="/status").status == 200


def test_what_fails_as_before_is_only_warned_about(define: Define) -> None:
    kind = define(version(spec_schema(a=SHORT, b=SHORT)))
    kind.post(spec={"a": "old"})
    schema = spec_schema(a={**SHORT, V: [{"rule": "self == 'new'", "message": "must be new"}]}, b=SHORT)
    assert kind.change({"spec": {"versions": [version(schema)]}}).status == 200
    changed = kind.patch({"spec": {"b": "x"}})
    assert changed.status == 200
    assert changed.warnings == ['299 - "spec.a: Invalid value: \\"old\\": must be new"']
    assert kind.patch({"spec": {"a": "other"}}).status == 422


def test_a_rule_that_costs_too_much_ends_the_request(define: Define) -> None:
    items = {"type": "array", "maxItems": 500, "items": {"type": "integer"}}
    kind = define(version(spec_schema(n={**items, V: [{"rule": EACH_WITH_EACH}]})))
    begun = kind.post("small", spec={"n": list(range(20))})
    assert begun.status == 201, begun.message
    refused = kind.post("large", spec={"n": list(range(500, 0, -1))})
    assert refused.status == 422
    assert "no further validation rules will be run" in refused.message


EACH_WITH_EACH = "self.all(x, self.all(y, x == y || x != y))"
ESTIMATES: list[tuple[dict[str, Any], str]] = [
    (spec_schema(a={**SHORT, V: [{"rule": "self.b == 1"}]}), "compilation failed: ERROR: <input>:1:5:"),
    (spec_schema(a={**SHORT, V: [{"rule": "self"}]}), "cel expression must evaluate to a bool"),
    (
        spec_schema(a={**SHORT, V: [{"rule": "self.find('[') == ''"}]}),
        "program instantiation failed: error parsing regexp: missing closing ]: `[`",
    ),
    (
        spec_schema(a={**SHORT, V: [{"rule": "true", "messageExpression": "self.find('[')"}]}),
        "messageExpression instantiation failed: error parsing regexp: missing closing ]: `[`",
    ),
    (
        spec_schema(a={"x-kubernetes-preserve-unknown-fields": True, V: [{"rule": "self == 1"}]}),
        "failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema",
    ),
    (
        spec_schema(a={**SHORT, V: [{"rule": "self == 'x'", "messageExpression": "1"}]}),
        "messageExpression must evaluate to a string",
    ),
    (
        spec_schema(
            a={"type": "array", "items": {"type": "string"}, V: [{"rule": "self.all(x, self.all(y, x == y))"}]}
        ),
        "estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems",
    ),
    (
        spec_schema(a={"type": "array", "maxItems": 3, "items": {**SHORT, V: [{"rule": "self == oldSelf"}]}}),
        "oldSelf cannot be used on the uncorrelatable portion of the schema within "
        "spec.validation.openAPIV3Schema.properties[spec].properties[a]",
    ),
    (
        spec_schema(a={**SHORT, V: [{"rule": "self == 'a'", "optionalOldSelf": True}]}),
        "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
    ),
    (spec_schema(a={**SHORT, V: [{"rule": " "}]}), "rule is not specified"),
]


@pytest.mark.parametrize(("schema", "message"), ESTIMATES)
def test_definitions_with_bad_rules_are_refused(client: Client, schema: dict[str, Any], message: str) -> None:
    answer = Kind(client, version(schema)).create()
    assert (answer.status, message in answer.message) == (422, True), answer.message


@pytest.mark.parametrize(
    "schema",
    [
        spec_schema(a={"type": "boolean", V: [{"rule": "self"}]}),
        spec_schema(a={**SHORT, V: [{"rule": "self == oldSelf", "messageExpression": "oldSelf"}]}),
        spec_schema(a={"x-kubernetes-int-or-string": True, V: [{"rule": "type(self) == int || self == '100%'"}]}),
        spec_schema(a={"type": "integer", V: [{"rule": "type(self) == int ? self > 1 : false"}]}),
    ],
)
def test_definitions_with_good_rules_are_taken(client: Client, schema: dict[str, Any]) -> None:
    answer = Kind(client, version(schema)).create()
    assert answer.status == 201, answer.message
