"""What the schema of a definition does to its objects; messages are upstream's."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.extensions.conftest import Define
from apiserver.extensions.defining import Kind, spec_schema, version

FULL = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "string", "enum": ["small", "large"]},
                "replicas": {"type": "integer", "default": 1, "minimum": 0, "maximum": 10},
                "any": {"type": "object", "additionalProperties": True},
                "keep": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
                },
                "inner": {"type": "object", "x-kubernetes-embedded-resource": True,
                          "x-kubernetes-preserve-unknown-fields": True},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "port": {"type": "integer", "format": "int32"}},
                    },
                },
                "ratio": {"type": "number", "multipleOf": 0.5},
                "host": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
                "when": {"type": "string", "format": "date-time"},
                "either": {"x-kubernetes-int-or-string": True},
                "maybe": {"type": "string", "nullable": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2},
                "nested": {"type": "object", "default": {}, "properties": {"on": {"type": "boolean", "default": True}}},
            },
        }
    },
}  # fmt: skip


@pytest.fixture
def kind(define: Define) -> Kind:
    return define(version(FULL))


def test_unknown_fields_are_pruned_with_a_warning(kind: Kind) -> None:
    spec = {
        "size": "small",
        "x": 1,
        "any": {"a": 1, "b": {"c": 1}},
        "keep": {"q": {"r": 1}, "known": {"a": "", "b": 1}},
    }
    made = kind.client.post(kind.path(), kind.object(metadata={"foo": 1}, bad=2, spec=spec))
    assert made.status == 201
    assert made.warnings == [
        f'299 - "unknown field \\"{each}\\""'
        for each in ("metadata.foo", "bad", "spec.any.b.c", "spec.keep.known.b", "spec.x")
    ]
    found = made.json["spec"]
    assert found["any"] == {"a": 1, "b": {}}, "of what is only said to be allowed nothing is known"
    assert found["keep"] == {"q": {"r": 1}, "known": {"a": ""}}
    assert "bad" not in made.json


@pytest.mark.parametrize("validation", ["Strict", "Ignore"])
def test_field_validation(kind: Kind, validation: str) -> None:
    body = (
        f'{{"kind":"Widget","apiVersion":"{kind.group}/v1","metadata":{{"name":"a","foo":1}},'
        '"bad":2,"spec":{"size":"small","size":"large","x":1}}'
    ).encode()
    answer = kind.client.post(kind.path() + f"?fieldValidation={validation}", body, Content_Type="application/json")
    if validation == "Ignore":
        assert (answer.status, answer.warnings, answer.json["spec"]["size"]) == (201, [], "large")
        return
    assert answer.status == 400
    assert answer.message == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.size", '
        'unknown field "metadata.foo", unknown field "bad", unknown field "spec.x"'
    )


def test_patches_are_validated_strictly_too(kind: Kind) -> None:
    kind.post(spec={"size": "small"})
    answer = kind.client("PATCH", kind.path("a") + "?fieldValidation=Strict", {"spec": {"x": 1}},
                         Content_Type="application/merge-patch+json")  # fmt: skip
    assert answer.status == 422
    assert answer.message.endswith('strict decoding error: unknown field "spec.x"')
    warned = kind.patch({"spec": {"x": 1, "size": "large"}})
    assert warned.warnings == ['299 - "unknown field \\"spec.x\\""']
    assert "x" not in warned.json["spec"]


def test_defaults_and_nulls(kind: Kind) -> None:
    made = kind.post(spec={"size": "small", "replicas": None, "maybe": None, "host": None, "tags": ["a"]})
    assert made.status == 201
    assert made.json["spec"] == {
        "size": "small",
        "replicas": 1,
        "maybe": None,
        "nested": {"on": True},
        "tags": ["a"],
    }, "a null that may not be becomes the default or goes, one that may be stays"


BODY = "spec.{} in body "
REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({}, "spec.size: Required value"),
    ({"size": "m"}, 'spec.size: Unsupported value: "m": supported values: "small", "large"'),
    ({"replicas": "x"},
     'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"'),
    ({"replicas": -1}, "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0"),
    ({"replicas": 11}, "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10"),
    ({"replicas": 1.5},
     'spec.replicas: Invalid value: "number": spec.replicas in body must be of type integer: "number"'),
    ({"ratio": 0.7}, "spec.ratio: Invalid value: 0.7: spec.ratio in body should be a multiple of 0.5"),
    ({"host": "A1"}, "spec.host: Invalid value: \"A1\": spec.host in body should match '^[a-z]+$'"),
    ({"host": "a"}, 'spec.host: Invalid value: "a": spec.host in body should be at least 2 chars long'),
    ({"host": "abcdef"}, "spec.host: Too long: may not be more than 5 bytes"),
    ({"when": "noon"}, 'spec.when: Invalid value: "noon": spec.when in body must be of type date-time: "noon"'),
    ({"either": True},
     'spec.either: Invalid value: "boolean": spec.either in body must be of type integer,string: "boolean"'),
    ({"tags": ["a", "b", "a"]}, 'spec.tags[2]: Duplicate value: "a"'),
    ({"tags": "a"}, 'spec.tags: Invalid value: "string": spec.tags in body must be of type array: "string"'),
    ({"ports": [{"name": "a"}, {"name": "a"}]}, 'spec.ports[1]: Duplicate value: {"name":"a"}'),
    ({"ports": [{}]}, "spec.ports[0].name: Required value"),
    ({"ports": [{"name": "a", "port": 1 << 40}]},
     '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.ports[0].port'),
    ({"labels": {"a": "", "b": "", "c": ""}}, "spec.labels: Too many: 3: must have at most 2 items"),
    ({"labels": {"a": 1}},
     'spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"'),
    ({"inner": {"kind": "Pod"}}, "spec.inner.apiVersion: Required value"),
    ({"inner": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a/b"}}},
     "spec.inner.metadata.name: Invalid value: \"a/b\": may not contain '/'"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "message"), REFUSALS)
def test_what_breaks_the_schema_is_refused(kind: Kind, spec: dict[str, Any], message: str) -> None:
    spec = {"size": "small", **spec} if spec else spec
    answer = kind.post(spec=spec)
    assert answer.status == 422
    assert answer.json["reason"] == "Invalid"
    assert message in answer.message
    assert answer.message.startswith(f'Widget.{kind.group} "a" is invalid: ')


GOOD: list[dict[str, Any]] = [
    {"replicas": 3.0},
    {"ratio": 2.5},
    {"either": "50%"},
    {"either": 4},
    {"when": "2020-01-01T00:00:00Z"},
    {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 1}]},
    {"inner": {"kind": "Pod", "apiVersion": "v1", "metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}},
    {"labels": {"a": "b"}},
]


@pytest.mark.parametrize("spec", GOOD)
def test_what_obeys_the_schema_is_accepted(kind: Kind, spec: dict[str, Any]) -> None:
    made = kind.post(spec={"size": "small", **spec})
    assert made.status == 201, made.message
    for name, value in spec.items():
        assert made.json["spec"][name] == value
    assert kind.get().json == made.json


BROKEN: list[tuple[bytes, int, str]] = [
    (b"[]", 400, "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value"),
    (b"{", 400, "couldn't get version/kind; json parse error: unexpected end of JSON input ({)"),
    (b"", 400, "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"),
    (b'{"metadata":{"name":"a"}}', 400, "Object 'Kind' is missing in '{\"metadata\":{\"name\":\"a\"}}'"),
    (b'{"kind":1}', 400, "json: cannot unmarshal number into Go struct field .kind of type string"),
    (b'{"kind":"Widget"}', 400, "the API version in the data () does not match the expected API version"),
    (b'{"kind":"Widget","apiVersion":"x/v1"}', 400, "the API version in the data (x/v1) does not match"),
    (b'{"kind":"Widget","apiVersion":"x/y/z"}', 400, "unexpected GroupVersion string: x/y/z ({"),
    (b'{"kind":"Other","apiVersion":"%b"}', 422, 'kind: Invalid value: "Other": must be Widget'),
    (b'{"kind":"Widget","apiVersion":"%b","metadata":7}', 400,
     "cannot unmarshal number into Go value of type v1.ObjectMeta"),
    (b'{"kind":"Widget","apiVersion":"%b","metadata":{"labels":{"a":1}}}', 400,
     "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
    (b'{"kind":"Widget","apiVersion":"%b","metadata":{}}', 422,
     "metadata.name: Required value: name or generateName is required"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "message"), BROKEN)
def test_bodies_that_are_no_objects(kind: Kind, body: bytes, status: int, message: str) -> None:
    body = body.replace(b"%b", f"{kind.group}/v1".encode())
    answer = kind.client("POST", kind.path(), body, Content_Type="application/json")
    assert (answer.status, message in answer.message) == (status, True), answer.message


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"apiVersion": {}}, "json: cannot unmarshal object into Go struct field .apiVersion of type string"),
        ({"kind": 1}, "json: cannot unmarshal number into Go struct field .kind of type string"),
        ({"kind": None}, "Object 'Kind' is missing in '{\"apiVersion\":"),
    ],
)
def test_patches_to_what_is_no_object(kind: Kind, patch: dict[str, Any], message: str) -> None:
    kind.post(spec={"size": "small"})
    answer = kind.patch(patch)
    assert (answer.status, message in answer.message) == (422, True), answer.message


def test_deep_nesting_is_refused_and_the_server_stays_well(kind: Kind) -> None:
    head = f'{{"kind":"Widget","apiVersion":"{kind.group}/v1","metadata":{{"name":"a"}},"spec":'
    body = head.encode() + b'{"a":' * 5000 + b"1" + b"}" * 5001
    assert kind.client("POST", kind.path(), body, Content_Type="application/json").status == 400
    assert kind.post(spec={"size": "small"}).status == 201


def test_yaml_bodies(kind: Kind) -> None:
    body = f"kind: Widget\napiVersion: {kind.group}/v1\nmetadata: {{name: yaml}}\nspec: {{size: small, replicas: 2}}\n"
    made = kind.client.post(kind.path(), body.encode(), Content_Type="application/yaml")
    assert made.status == 201, made.body
    assert made.json["spec"]["replicas"] == 2


def test_finalizers_without_a_domain_are_warned_about(kind: Kind) -> None:
    made = kind.post(metadata={"finalizers": ["x", "a.b", "a.b/c"]}, spec={"size": "small"})
    start, words = '299 - "metadata.finalizers:', "to avoid accidental conflicts with other finalizer writers"
    assert made.warnings == [
        f'{start} \\"a.b\\": prefer a domain-qualified finalizer name including a path (/) {words}"',
        f'{start} \\"x\\": prefer a domain-qualified finalizer name {words}"',
    ]
    kind.patch({"metadata": {"finalizers": None}})


def test_what_was_wrong_before_does_not_block_other_changes(define: Define) -> None:
    items = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
             "items": {"type": "object", "required": ["k"],
                       "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}}  # fmt: skip
    kind = define(version(spec_schema(a={"type": "string"}, b={"type": "string"}, items=items)))
    kind.post(spec={"a": "long", "items": [{"k": "x", "v": "long"}, {"k": "y", "v": "s"}]})
    items["items"]["properties"]["v"]["maxLength"] = 2
    tighter = spec_schema(a={"type": "string", "maxLength": 2}, b={"type": "string", "maxLength": 2}, items=items)
    assert kind.change({"spec": {"versions": [version(tighter)]}}).status == 200
    assert kind.post("fresh", spec={"a": "long"}).status == 422
    assert kind.patch({"spec": {"b": "ok"}}).status == 200, "what is wrong is as it was"
    assert kind.patch({"spec": {"items": [{"k": "y", "v": "t"}, {"k": "x", "v": "long"}]}}).status == 200
    refused = kind.patch({"spec": {"a": "other"}})
    assert (refused.status, "spec.a: Too long" in refused.message) == (422, True)
    refused = kind.patch({"spec": {"items": [{"k": "x", "v": "longer"}]}})
    assert (refused.status, "spec.items[0].v: Too long" in refused.message) == (422, True)


def test_bad_defaults_are_refused_with_the_definition(define: Define) -> None:
    with pytest.raises(AssertionError, match="must be of type integer"):
        define(version(spec_schema(n={"type": "integer", "default": "x"})))
