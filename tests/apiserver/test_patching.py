"""Errors of invalid patches, and of changes that a PUT or patch may not make."""

from __future__ import annotations

import json
from typing import Any

import pytest
from apiserver.client import Client


@pytest.fixture
def path(client: Client, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert client.post(path, {"metadata": {"name": "a"}, "data": {"k": "v"}}).status == 201
    return path


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("merge", b"", "error decoding patch: unexpected end of JSON input"),
        ("strategic", b"", "unexpected end of JSON input"),
        ("json", b"garbage", "error decoding patch: invalid character 'g' looking for beginning of value"),
        ("strategic", b"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (
            "merge",
            b'{"metadata":{"name":null}}',
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
        ("merge", b'{"metadata":{"name":"b"}}', "the name of the object (b) does not match the name on the URL (a)"),
    ],
)
def test_patches_that_are_bad_requests(client: Client, path: str, kind: str, body: bytes, message: str) -> None:
    answer = client.patch(f"{path}/a", body, kind)
    assert (answer.status, answer.message) == (400, message)


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        (
            "merge",
            {"data": {"a": 5}},
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        ("merge", {"kind": "Pod"}, "converting (v1.Pod) to (core.ConfigMap): unknown conversion"),
        ("strategic", {"data": {"a": 5}}, '"map[data:map[a:5]]": cannot convert int64 to string'),
        ("strategic", {"data": {"a": True}}, '"map[data:map[a:true]]": unrecognized type: string'),
        ("strategic", {"data": [1]}, '"map[data:[1]]": cannot restore map from slice'),
        ("strategic", {"metadata": "x"}, '"map[metadata:x]": cannot restore struct from: string'),
        ("strategic", {"immutable": "x"}, '"map[immutable:x]": unrecognized type: bool'),
        ("strategic", {"metadata": {"finalizers": 1.5}}, "cannot restore slice from float64"),
        ("strategic", {"metadata": {"generation": 1.5}}, "cannot convert float64 to int64"),
        ("strategic", {"metadata": {"deletionTimestamp": 1}}, "cannot unmarshal number into Go value of type string"),
        ("strategic", {"binaryData": {"a": "x"}}, "error decoding from json: illegal base64 data at input byte 0"),
        ("strategic", {"binaryData": {"a": ["x"]}}, "unrecognized type: uint8"),
        ("json", [{"op": "add", "path": "/data", "value": []}], "of type map[string]string"),
        (
            "json",
            [{"op": "add", "path": "/kind", "value": {}}],
            "version/kind; json parse error: json: cannot unmarshal object into Go struct field .kind of type string",
        ),
        ("merge", {"apiVersion": []}, "cannot unmarshal array into Go struct field .apiVersion of type string"),
        (
            "json",
            [{"op": "add", "path": "/data", "value": []}, {"op": "add", "path": "/apiVersion", "value": "v7"}],
            'no kind "ConfigMap" is registered for version "v7"',
        ),
    ],
)
def test_an_outcome_that_is_no_object_of_the_kind_is_the_patchs_fault(
    client: Client, path: str, kind: str, body: object, why: str
) -> None:
    answer = client.patch(f"{path}/a", body, kind)
    assert answer.status == 422
    assert answer.message.startswith(' "" is invalid: patch: Invalid value: "')
    assert why in answer.message
    assert [(cause["reason"], cause["field"]) for cause in answer.json["details"]["causes"]] == [
        ("FieldValueInvalid", "patch")
    ]


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        ("merge", b'{"foo":1}', 'unknown field "foo"'),
        ("strategic", b'{"foo":1}', 'unknown field "foo"'),
        ("merge", b'{"data":{"a":"1","a":"2"}}', 'duplicate field "data.a"'),
        ("strategic", b'{"data":{"a":"1","a":"2"}}', 'duplicate field "data.a"'),
        ("json", b'[{"op":"add","path":"/foo","value":1}]', 'unknown field "foo"'),
        (
            "json",
            b'[{"op":"add","path":"/data/a","value":"1","foo":1}]',
            'json patch unknown field "[0].foo"',
        ),
        (
            "json",
            b'[{"op":"add","path":"/data/a","value":"1","op":"add"}]',
            'json patch duplicate field "[0].op"',
        ),
    ],
)
def test_field_validation_of_patches(client: Client, path: str, kind: str, body: bytes, problem: str) -> None:
    warned = client.patch(f"{path}/a", body, kind)
    assert warned.status == 200
    assert warned.warnings == [f"299 - {json.dumps(problem)}"]
    assert client.patch(f"{path}/a?fieldValidation=Ignore", body, kind).warnings == []
    refused = client.patch(f"{path}/a?fieldValidation=Strict", body, kind)
    assert refused.status == 422
    assert refused.message.endswith(f": strict decoding error: {problem}")


def test_what_a_merge_patch_touches_is_in_the_order_of_names(client: Client, path: str) -> None:
    warned = client.patch(f"{path}/a", b'{"zoo":1,"metadata":{"y":1,"b":2},"foo":1}')
    assert [each.split('\\"')[1] for each in warned.warnings] == ["foo", "metadata.b", "metadata.y", "zoo"]
    refused = client.patch(f"{path}/a", b'{"immutable":"x","data":{"z":"1","b":"2"}}')
    assert '\\"data\\":{\\"b\\":\\"2\\",\\"k\\":\\"v\\",\\"z\\":\\"1\\"}' in refused.message
    refused = client.patch(f"{path}/a", b'{"immutable":"x","metadata":{"ownerReferences":[{"uid":"u","kind":"K"}]}}')
    assert '\\"ownerReferences\\":[{\\"kind\\":\\"K\\",\\"uid\\":\\"u\\"}]' in refused.message


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("json", [{"op": "remove", "path": "/apiVersion"}, {"op": "add", "path": "/data", "value": []}]),
        ("merge", {"apiVersion": None}),
        ("merge", {"apiVersion": "", "kind": ""}),
    ],
)
def test_an_outcome_without_a_version_has_no_name(client: Client, path: str, kind: str, body: object) -> None:
    answer = client.patch(f"{path}/a", body, kind)
    why = "the name of the object (a based on URL) was undeterminable: name must be provided"
    assert (answer.status, answer.message) == (400, why)
    assert answer.warnings == [rf'299 - "unknown field \"{name}\""' for name in ("data", "metadata")]
    strict = client.patch(f"{path}/a?fieldValidation=Strict", body, kind)
    assert strict.message.endswith('strict decoding error: unknown field "data", unknown field "metadata"')
    assert client.patch(f"{path}/a", {"kind": None}, "merge").status == 200


def test_an_operation_may_be_null_and_cannot_be_done(client: Client, path: str) -> None:
    assert client.patch(f"{path}/a", b"[null]", "json").status == 422


def test_where_a_json_patch_has_been_is_in_the_order_of_names(client: Client, path: str) -> None:
    operations = [
        {"op": "add", "path": "/immutable", "value": "x"},
        {"op": "add", "path": "/data/z", "value": 1},
        {"op": "add", "path": "/metadata/zoo", "value": {"y": 1, "x": 1}},
        {"op": "add", "path": "/metadata/annotations", "value": {"z": "1", "b": "2"}},
    ]
    refused = client.patch(f"{path}/a", operations, "json")
    assert refused.message.endswith("Go struct field ConfigMap.data of type string"), "data comes before immutable"
    assert '\\"annotations\\":{\\"z\\":\\"1\\",\\"b\\":\\"2\\"}' in refused.message, "what is put there stays as it is"


def test_unknown_fields_of_a_strategic_patch_are_in_the_order_of_names(client: Client, path: str) -> None:
    warned = client.patch(f"{path}/a", b'{"zoo":1,"metadata":{"y":1,"b":2},"foo":1}', "strategic")
    assert [each.split('\\"')[1] for each in warned.warnings] == ["foo", "metadata.b", "metadata.y", "zoo"]


def test_text_that_is_no_utf8_is_replaced(client: Client, path: str) -> None:
    for kind in ("merge", "strategic"):
        answer = client.patch(f"{path}/a", b'{"data":{"a":"\xff","b":"\\ud800"}}', kind)
        assert answer.status == 200
        assert answer.json["data"] == {"k": "v", "a": "\ufffd", "b": "\ufffd"}


def test_a_strategic_patch_may_be_null_and_cannot_change_the_kind(client: Client, path: str) -> None:
    assert client.patch(f"{path}/a", b"null", "strategic").status == 200
    answer = client.patch(f"{path}/a", {"kind": "Pod", "apiVersion": "v2"}, "strategic")
    assert (answer.status, answer.json["kind"], answer.json["apiVersion"]) == (200, "ConfigMap", "v1")


def test_only_apply_can_be_forced_and_it_needs_a_manager(client: Client, path: str) -> None:
    answer = client.patch(f"{path}/a?force=true", {})
    assert (answer.status, answer.message) == (
        422,
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
    )
    answer = client.patch(f"{path}/a", {}, "apply")
    assert (answer.status, answer.message) == (
        422,
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    )


def test_the_uid_is_a_precondition_of_a_put_and_cannot_be_patched(client: Client, path: str) -> None:
    answer = client.put(f"{path}/a", {"metadata": {"name": "a", "uid": "x"}})
    assert answer.status == 409
    assert "Precondition failed: UID in precondition: x, UID in object meta: " in answer.message
    answer = client.patch(f"{path}/a", {"metadata": {"uid": "x"}})
    assert (answer.status, answer.message) == (
        422,
        'ConfigMap "a" is invalid: metadata.uid: Invalid value: "x": field is immutable',
    )


def test_version_zero_is_any_version(client: Client, path: str) -> None:
    assert client.put(f"{path}/a", {"metadata": {"name": "a", "resourceVersion": "0"}}).status == 200
    assert client.post(path, {"metadata": {"name": "b", "resourceVersion": "0"}}).status == 201
    answer = client.post(path, {"metadata": {"name": "c", "resourceVersion": "5"}})
    assert (answer.status, answer.message) == (400, "resourceVersion should not be set on objects to be created")


def test_a_generate_name_goes_when_an_update_has_none(client: Client, path: str) -> None:
    assert client.put(f"{path}/a", {"metadata": {"name": "a", "generateName": "a-"}}).status == 200
    assert client.get(f"{path}/a").json["metadata"]["generateName"] == "a-"
    assert "generateName" not in client.put(f"{path}/a", {"metadata": {"name": "a"}}).json["metadata"]


def test_a_deletion_cannot_be_written(client: Client, path: str) -> None:
    answer = client.put(f"{path}/a", {"metadata": {"name": "a", "deletionTimestamp": "2020-01-01T00:00:00Z"}})
    assert answer.status == 422
    assert "metadata.deletionTimestamp: Invalid value: " in answer.message


def test_an_update_that_creates_ignores_the_version_but_not_the_uid(client: Client, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "c", "resourceVersion": "5"}}
    assert client.put(f"{path}/a", {"metadata": {"name": "a", "resourceVersion": "5"}}).status == 201
    assert client.patch(f"{path}/c?fieldManager=m", body, "apply").status == 201
    answer = client.put(f"{path}/b", {"metadata": {"name": "b", "uid": "x"}})
    assert answer.status == 409
    answer = client.put(f"{path}/a", {"metadata": {"name": "a"}})
    assert (answer.status, answer.message) == (
        422,
        'leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update",
    )


def test_the_namespace_of_what_has_none_is_dropped(client: Client) -> None:
    made = client.post("/api/v1/namespaces?dryRun=All", {"metadata": {"name": "x", "namespace": "y"}})
    assert made.status == 201
    assert "namespace" not in made.json["metadata"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"kind": "ConfigMapList", "apiVersion": "v1"},
            'ConfigMapList in version "v1" cannot be handled as a ConfigMap: '
            "converting (v1.ConfigMapList) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"kind": "Status", "apiVersion": "v1"},
            'Status in version "v1" cannot be handled as a ConfigMap: '
            "converting (v1.Status) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"kind": "ConfigMap", "apiVersion": "apps/v1", "data": [], "foo": 1},
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
            'no kind "ConfigMap" is registered for version "apps/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
    ],
)
def test_other_kinds_in_the_body(client: Client, path: str, body: dict[str, Any], message: str) -> None:
    answer = client.post(path, body)
    assert (answer.status, answer.message, answer.warnings) == (400, message, [])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "invalid object type: /, Kind="),
        (
            b"[]",
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            b"a: b: c",
            "error decoding YAML: error converting YAML to JSON: yaml: mapping values are not allowed in this context",
        ),
    ],
)
def test_configurations_that_cannot_be_applied(client: Client, path: str, body: bytes, message: str) -> None:
    answer = client.patch(f"{path}/a?fieldManager=m", body, "apply")
    assert (answer.status, answer.message) == (400, message)


def test_apply_cannot_change_the_uid(client: Client, path: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "x"}}
    assert client.patch(f"{path}/a?fieldManager=m", body, "apply").status == 422


def test_everything_that_is_wrong_with_the_options_of_an_apply_is_reported(client: Client, path: str) -> None:
    answer = client.patch(f"{path}/a?fieldValidation=x&dryRun=y", {"apiVersion": "v1", "kind": "ConfigMap"}, "apply")
    assert answer.status == 422
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == [
        "fieldManager",
        "dryRun",
        "fieldValidation",
    ]


@pytest.mark.parametrize("metadata", [None, {}, {"labels": {"a": "b"}}])
def test_what_is_created_by_an_apply_must_say_its_name(
    client: Client, path: str, metadata: dict[str, object] | None
) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", **({} if metadata is None else {"metadata": metadata})}
    answer = client.patch(f"{path}/new?fieldManager=m", body, "apply")
    undeterminable = "the name of the object (new based on URL) was undeterminable: name must be provided"
    assert (answer.status, answer.message) == (400, undeterminable)
