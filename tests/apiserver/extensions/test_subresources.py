"""Status and scale of custom resources, fields they can be selected by, and their tables."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.extensions.conftest import Define
from apiserver.extensions.defining import Kind, version

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "color": {"type": "string"},
                "on": {"type": "boolean"},
                "any": {"x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
                "phase": {"type": "string"},
            },
        },
    },
}
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


@pytest.fixture
def kind(define: Define) -> Kind:
    return define(version(SCHEMA, subresources={"status": {}, "scale": SCALE}))


def test_the_status_has_a_path_of_its_own(kind: Kind) -> None:
    made = kind.post(spec={"replicas": 1}, status={"phase": "x"})
    assert "status" not in made.json
    ignored = kind.patch({"status": {"phase": "x"}, "spec": {"replicas": 2}})
    assert "status" not in ignored.json
    assert ignored.json["metadata"]["generation"] == 2
    patch = {"status": {"phase": "x"}, "spec": {"replicas": 9}, "metadata": {"labels": {"a": "b"}}}
    changed = kind.patch(patch, sub="/status")
    assert changed.json["status"] == {"phase": "x"}
    assert changed.json["spec"] == {"replicas": 2}
    assert "labels" not in changed.json["metadata"]
    assert changed.json["metadata"]["generation"] == 2
    assert kind.client.get(kind.path("a") + "/status").json == changed.json
    refused = kind.patch({"status": {"phase": 4}}, sub="/status")
    assert refused.status == 422
    assert 'status.phase: Invalid value: "integer": phase in body must be of type string: "integer"' in refused.message
    owners = {(each["manager"], each.get("subresource", "")) for each in changed.json["metadata"]["managedFields"]}
    assert ("status" in {sub for _, sub in owners}) is True


def test_without_the_subresource_the_status_is_a_field(define: Define) -> None:
    kind = define(version(SCHEMA))
    made = kind.post(status={"phase": "x"})
    assert made.json["status"] == {"phase": "x"}
    assert kind.patch({"status": {"phase": "y"}}).json["metadata"]["generation"] == 2
    assert kind.patch({}, sub="/status").status == 404


def test_scale(kind: Kind) -> None:
    kind.post(spec={"replicas": 3, "color": "red"})
    kind.patch({"status": {"replicas": 2, "selector": "a=b"}}, sub="/status")
    path = kind.path("a") + "/scale"
    scale = kind.client.get(path).json
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "a=b"})
    scale["spec"]["replicas"] = 5
    assert kind.client.put(path, scale).json["spec"] == {"replicas": 5}
    assert kind.get().json["spec"] == {"replicas": 5, "color": "red"}
    assert kind.client.put(path, scale).status == 409, "it names the version it was made for"
    patched = kind.client.patch(path, {"spec": {"replicas": 7}})
    assert patched.json["spec"] == {"replicas": 7}
    assert kind.client.patch(path, {"metadata": {"uid": "other"}}).status == 200, "who patches asks for no object"
    assert kind.client.patch(path, {"spec": {"replicas": 7}}, "strategic").status == 415
    refused = kind.client.patch(path, {"spec": {"replicas": -1}})
    assert ".spec.replicas: Invalid value: -1: should be a non-negative integer" in refused.message


def test_who_scales_an_object_without_a_spec_brings_its_defaults(define: Define) -> None:
    properties = {**SCHEMA["properties"]["spec"]["properties"], "color": {"type": "string", "default": "red"}}  # type: ignore[index]
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    kind = define(version(schema, subresources={"scale": SCALE}))
    kind.post()
    scale = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "a"}, "spec": {"replicas": 2}}
    assert kind.client.put(kind.path("a") + "/scale", scale).status == 200
    assert kind.get().json["spec"] == {"replicas": 2, "color": "red"}


def test_an_object_without_replicas_has_no_scale(kind: Kind) -> None:
    kind.post(spec={})
    answer = kind.client.get(kind.path("a") + "/scale")
    assert answer.status == 500
    assert answer.message == 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'


def test_fields_that_the_definition_names_can_be_selected_by(define: Define) -> None:
    kind = define(version(SCHEMA, selectableFields=[{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.on"}]))
    kind.post("a", spec={"color": "red", "on": True})
    kind.post("b", spec={"color": "blue"})

    def names(selector: str) -> list[str]:
        answer = kind.client.get(f"{kind.path()}?fieldSelector={selector}")
        assert answer.status == 200, answer.message
        return [each["metadata"]["name"] for each in answer.json["items"]]

    assert names("spec.color%3Dred") == ["a"]
    assert names("spec.color!%3Dred") == ["b"]
    assert names("spec.on%3Dtrue") == ["a"]
    assert names("spec.color%3Dred,metadata.name%3Db") == []
    with kind.client.watch(f"{kind.path()}?watch=true&fieldSelector=spec.color%3Dred") as events:
        assert events.take(1)[0]["object"]["metadata"]["name"] == "a"
        kind.patch({"spec": {"color": "red"}}, "b")
        kind.patch({"spec": {"color": "green"}}, "a")
        assert [(each["type"], each["object"]["metadata"]["name"]) for each in events.take(2)] == [
            ("ADDED", "b"),
            ("DELETED", "a"),
        ]
    refused = kind.client.get(f"{kind.path()}?fieldSelector=spec.replicas%3D1")
    assert (refused.status, refused.message) == (400, "field label not supported: spec.replicas")


def test_tables_have_a_name_and_an_age(define: Define) -> None:
    kind = define()
    kind.post()
    table = kind.client.get(kind.path(), Accept=TABLE).json
    assert [(each["name"], each["type"]) for each in table["columnDefinitions"]] == [
        ("Name", "string"),
        ("Age", "date"),
    ]
    assert table["rows"][0]["cells"][0] == "a"
    assert table["rows"][0]["cells"][1].endswith("s")
    assert table["rows"][0]["object"]["metadata"]["name"] == "a"


COLUMNS: list[tuple[str, str, Any]] = [
    (".spec.replicas", "integer", 3),
    (".spec.replicas", "string", "3"),
    (".spec.on", "boolean", True),
    (".spec.color", "integer", None),
    (".spec.any.f", "number", 2.5),
    (".spec.any.huge", "integer", -(1 << 63)),
    (".spec.any.d", "date", "<invalid>"),
    (".spec.any.m", "string", '{"z":1}'),
    (".spec.any.none", "string", None),
    ('.spec.any.c[?(@.type=="Ready")].status', "string", "True"),
    (".spec.any.c[-1].type", "string", "Ready"),
    (".spec.any.c[*].type", "string", "Other"),
    (".spec.any.example\\.com/x", "string", "dotted"),
]


def test_tables_by_the_columns_of_the_definition(define: Define) -> None:
    columns = [
        {"name": f"C{at}", "type": type, "jsonPath": path, "priority": at % 2, "description": f"d{at}"}
        for at, (path, type, _) in enumerate(COLUMNS)
    ]
    kind = define(version(SCHEMA, additionalPrinterColumns=columns))
    conditions = [{"type": "Other", "status": "no"}, {"type": "Ready", "status": "True"}]
    other = {"f": 2.5, "huge": 1e21, "d": "soon", "m": {"z": 1}, "c": conditions, "example.com/x": "dotted"}
    kind.post(spec={"replicas": 3, "on": True, "color": "red", "any": other})
    table = kind.client.get(kind.path("a"), Accept=TABLE).json
    assert [each["priority"] for each in table["columnDefinitions"][1:]] == [at % 2 for at in range(len(COLUMNS))]
    assert table["rows"][0]["cells"][1:] == [value for _, _, value in COLUMNS]
