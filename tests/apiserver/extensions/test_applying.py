"""Server-side apply by the list types of the schema, and the owners of fields on all other writes."""

from __future__ import annotations

from typing import Any

from apiserver.client import Answer
from apiserver.extensions.conftest import Define
from apiserver.extensions.defining import Kind, spec_schema, version

SCHEMA = spec_schema(
    size={"type": "string"},
    set={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    ports={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {
            "type": "object",
            "required": ["port"],
            "properties": {
                "port": {"type": "integer"},
                "protocol": {"type": "string", "default": "TCP"},
                "name": {"type": "string"},
            },
        },
    },
    whole={"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
    list={"type": "array", "items": {"type": "string"}},
)


def apply(kind: Kind, manager: str, force: bool = False, **spec: Any) -> Answer:
    path = f"{kind.path('a')}?fieldManager={manager}{'&force=true' if force else ''}"
    return kind.client("PATCH", path, kind.object(spec=spec), Content_Type="application/apply-patch+yaml")


def owners(answer: Answer) -> dict[str, Any]:
    return {each["manager"]: each["fieldsV1"] for each in answer.json["metadata"]["managedFields"]}


def test_lists_merge_as_the_schema_says(define: Define) -> None:
    kind = define(version(SCHEMA))
    first = apply(kind, "one", size="s", set=["a"], ports=[{"port": 80, "name": "http"}], whole={"x": "1"}, list=["p"])
    assert first.status == 201
    second = apply(kind, "two", set=["b"], ports=[{"port": 443}], force=True, list=["q"], whole={"y": "2"})
    assert second.status == 200, second.message
    assert second.json["spec"] == {
        "size": "s",
        "set": ["a", "b"],
        "ports": [{"port": 80, "protocol": "TCP", "name": "http"}, {"port": 443, "protocol": "TCP"}],
        "list": ["q"],
        "whole": {"y": "2"},
    }
    key = 'k:{"port":443,"protocol":"TCP"}'
    assert owners(second)["two"] == {
        "f:spec": {"f:list": {}, "f:ports": {key: {".": {}, "f:port": {}}}, "f:set": {'v:"b"': {}}, "f:whole": {}}
    }
    third = apply(kind, "one", size="s", ports=[{"port": 80, "name": "http"}])
    assert third.json["spec"]["set"] == ["b"], "what one applied and applies no more is gone"


def test_conflicts_name_the_manager(define: Define) -> None:
    kind = define(version(SCHEMA))
    apply(kind, "one", size="s")
    clash = apply(kind, "two", size="m")
    assert clash.status == 409
    assert clash.message == 'Apply failed with 1 conflict: conflict with "one": .spec.size'
    assert apply(kind, "two", size="m", force=True).json["spec"]["size"] == "m"


def test_plain_writes_are_owned_too(define: Define) -> None:
    kind = define(version(SCHEMA))
    made = kind.client.post(kind.path() + "?fieldManager=maker", kind.object(
        metadata={"labels": {"l": "1"}, "finalizers": ["a.b/c"]}, spec={"size": "s", "set": ["a"], "whole": {"x": "1"}}
    ))  # fmt: skip
    assert owners(made)["maker"] == {
        "f:metadata": {"f:finalizers": {".": {}, 'v:"a.b/c"': {}}, "f:labels": {".": {}, "f:l": {}}},
        "f:spec": {".": {}, "f:set": {".": {}, 'v:"a"': {}}, "f:size": {}, "f:whole": {}},
    }
    patched = kind.client("PATCH", kind.path("a") + "?fieldManager=changer", {"spec": {"size": "m"}},
                          Content_Type="application/merge-patch+json")  # fmt: skip
    assert owners(patched)["changer"] == {"f:spec": {"f:size": {}}}
    assert "f:size" not in owners(patched)["maker"]["f:spec"]
    kind.patch({"metadata": {"finalizers": None}})


EMPTY = {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}


def test_only_an_apply_owns_empty_metadata(define: Define) -> None:
    kind = define(version(SCHEMA))
    made = kind.client.post(kind.path() + "?fieldManager=m", kind.object(metadata=EMPTY, spec={"size": "s"}))
    merged = kind.patch({"metadata": EMPTY, "spec": {"size": "m"}})
    metadata = {**EMPTY, "resourceVersion": merged.json["metadata"]["resourceVersion"]}
    replaced = kind.client.put(kind.path("a"), kind.object(metadata=metadata, spec={"size": "l"}))
    for answer in (made, merged, replaced):
        assert all("f:metadata" not in fields for fields in owners(answer).values()), answer.json
    path = f"{kind.path('a')}?fieldManager=one"
    applied = kind.client("PATCH", path, kind.object(metadata=EMPTY), Content_Type="application/apply-patch+yaml")
    assert owners(applied)["one"]["f:metadata"] == {"f:annotations": {}, "f:labels": {}}


def test_fields_that_the_schema_does_not_know_cannot_be_applied(define: Define) -> None:
    kind = define(version(SCHEMA))
    answer = apply(kind, "one", nope=1)
    assert answer.status in (400, 500)
    what = f"(/a; {kind.group}/v1, Kind=Widget)"
    assert answer.message == f"failed to create typed patch object {what}: .spec.nope: field not declared in schema"


def test_null_is_applied_only_where_it_may_be(define: Define) -> None:
    usual = {"type": "string", "default": "x"}
    kind = define(version(spec_schema(size={"type": "string"}, none={"type": "string", "nullable": True}, usual=usual)))
    refused = apply(kind, "me", size=None)
    assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (422, "spec.size")
    assert 'must be of type string: "null"' in refused.message
    assert apply(kind, "me", none=None, usual=None).json["spec"] == {"none": None, "usual": "x"}
    plain = kind.client.post(kind.path(), kind.object("b", spec={"size": None}))
    assert (plain.status, plain.json["spec"]) == (201, {"usual": "x"}), "elsewhere it is as if it was not said"


def test_applying_the_same_again_changes_nothing(define: Define) -> None:
    kind = define(version(SCHEMA))
    first = apply(kind, "one", size="s", set=["b", "a"])
    again = apply(kind, "one", size="s", set=["b", "a"])
    assert again.json == first.json


def test_managers_of_other_versions_keep_what_they_own(define: Define) -> None:
    kind = define(version(SCHEMA), version(SCHEMA, name="v2", storage=False))
    apply(kind, "one", size="s", set=["a"])
    path = f"{kind.path('a', 'v2')}?fieldManager=two"
    config = kind.object(version="v2", spec={"list": ["x"]})
    changed = kind.client("PATCH", path, config, Content_Type="application/apply-patch+yaml")
    assert changed.status == 200, changed.message
    assert changed.json["apiVersion"] == f"{kind.group}/v2"
    versions = {each["manager"]: each["apiVersion"] for each in changed.json["metadata"]["managedFields"]}
    assert versions == {"one": f"{kind.group}/v1", "two": f"{kind.group}/v2"}
