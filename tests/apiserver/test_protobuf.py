"""Bodies in protobuf, as kubectl and client-go send them; answers stay JSON."""

from __future__ import annotations

from typing import Any

import pytest
from api.protobuf.encoder import encode, envelope
from apiserver.client import Answer, Client

PROTOBUF = "application/vnd.kubernetes.protobuf"
HEADERS = {"Content_Type": PROTOBUF, "Accept": f"{PROTOBUF},application/json"}  # client-go's
CONTAINER = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "100m"}}, "stdin": False, "workingDir": ""}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}


def send(client: Client, method: str, path: str, api_version: str, kind: str, value: dict[str, Any]) -> Answer:
    group, _, version = api_version.rpartition("/")
    message = f"{group.partition('.')[0] or 'core'}/{version}.{kind}"
    raw = encode("meta/v1.DeleteOptions" if kind == "DeleteOptions" else message, value)
    return client(method, path, envelope(api_version, kind, raw), **HEADERS)


@pytest.fixture
def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}"


def test_create_and_update(client: Client, path: str) -> None:
    value: dict[str, Any] = {"metadata": {"name": "a"}, "data": {"k": "v"}, "binaryData": {"b": "AAH/"}}
    made = send(client, "POST", f"{path}/configmaps", "v1", "ConfigMap", value)
    assert (made.status, made.headers["Content-Type"]) == (201, "application/json")
    assert (made.json["kind"], made.json["data"], made.json["binaryData"]) == ("ConfigMap", {"k": "v"}, {"b": "AAH/"})
    assert not made.warnings
    changed = send(client, "PUT", f"{path}/configmaps/a", "v1", "ConfigMap", {**value, "data": {"k": "w"}})
    assert (changed.status, changed.json["data"]) == (200, {"k": "w"})


def test_the_same_object_as_from_json(client: Client, namespace: str) -> None:
    collection = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE, "strategy": strategy}
    value = {"metadata": {"name": "a"}, "spec": spec, "status": {}}
    protobuf = send(client, "POST", collection + "?fieldValidation=Strict", "apps/v1", "Deployment", value)
    json = client.post(collection, {**value, "metadata": {"name": "b"}})
    assert (protobuf.status, json.status) == (201, 201)
    assert protobuf.json["spec"] == json.json["spec"]
    fields = [each.json["metadata"]["managedFields"][0]["fieldsV1"] for each in (protobuf, json)]
    assert fields[0] == fields[1]


def test_delete_options_of_any_version(client: Client, path: str) -> None:
    assert client.post(f"{path}/configmaps", {"metadata": {"name": "a"}}).status == 201
    options = {"preconditions": {"uid": "another"}}
    assert send(client, "DELETE", f"{path}/configmaps/a", "apps/v1", "DeleteOptions", options).status == 409
    assert send(client, "DELETE", f"{path}/configmaps/a", "v1", "DeleteOptions", {"dryRun": ["All"]}).status == 200
    assert send(client, "DELETE", f"{path}/configmaps/a", "v1", "DeleteOptions", {}).status == 200
    assert client.get(f"{path}/configmaps/a").status == 404


def test_subresources_and_reviews(client: Client, path: str, namespace: str) -> None:
    pod = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": TEMPLATE["spec"]}
    assert send(client, "POST", f"{path}/pods", "v1", "Pod", pod).status == 201
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    assert send(client, "POST", f"{path}/pods/p/binding", "v1", "Binding", binding).status == 201
    assert client.get(f"{path}/pods/p").json["spec"]["nodeName"] == "n"
    eviction = {"metadata": {"name": "p", "namespace": namespace}, "deleteOptions": {"gracePeriodSeconds": 0}}
    for version in ("policy/v1beta1", "policy/v1"):
        assert client.get(f"{path}/pods/p").status == 200
        query = "?dryRun=All" if version == "policy/v1beta1" else ""
        assert send(client, "POST", f"{path}/pods/p/eviction{query}", version, "Eviction", eviction).status == 201
    controllers = f"{path}/replicationcontrollers"
    assert client.post(controllers, {"metadata": {"name": "r"}, "spec": {"template": TEMPLATE}}).status == 201
    scale = {"metadata": {"name": "r"}, "spec": {"replicas": 3}}
    scaled = send(client, "PUT", f"{controllers}/r/scale", "autoscaling/v1", "Scale", scale)
    assert (scaled.status, scaled.json["spec"]) == (200, {"replicas": 3})
    version = "authorization.k8s.io/v1"
    spec = {"user": "x", "extra": {"a": ["b"]}, "resourceAttributes": {"verb": "get", "resource": "pods"}}
    review = send(
        client, "POST", f"/apis/{version}/subjectaccessreviews", version, "SubjectAccessReview", {"spec": spec}
    )
    assert (review.status, review.json["spec"]) == (201, spec)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"),
        (b"k8s\0", "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)"),
        (
            b"{}",
            "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a "
            "protobuf message, expected prefix [107 56 115 0] ({})",
        ),
        (
            envelope("v1", "ConfigMap", b"\x0a\x7f"),
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF',
        ),
        (
            envelope("v1", "Secret", b""),
            'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): '
            "unknown conversion",
        ),
        (
            envelope("foo/v1", "Foo", b""),
            'Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "foo/v1" '
            'in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
    ],
)
def test_bodies_that_are_not_the_object_are_refused(client: Client, path: str, body: bytes, message: str) -> None:
    answer = client.post(f"{path}/configmaps", body, Content_Type=PROTOBUF)
    assert (answer.status, answer.json["reason"], answer.message) == (400, "BadRequest", message)


@pytest.mark.parametrize("api_version", ["", "v1", "a/b/c"])
def test_what_the_envelope_leaves_open_is_the_paths(client: Client, path: str, api_version: str) -> None:
    raw = encode("core/v1.ConfigMap", {"metadata": {"name": "a"}})
    answer = client.post(f"{path}/configmaps?dryRun=All", envelope(api_version, "", raw), Content_Type=PROTOBUF)
    assert (answer.status, answer.json["apiVersion"]) == (201, "v1")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"x", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (envelope("v1", "DeleteOptions", b"\x10\x05"), "proto: wrong wireType = 0 for field Preconditions"),
        (
            envelope("apps/v1", "Foo", b""),
            'no kind "Foo" is registered for version "apps/v1" in scheme '
            '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"',
        ),
    ],
)
def test_delete_options_that_are_none(client: Client, path: str, body: bytes, message: str) -> None:
    answer = client.delete(f"{path}/configmaps/none", body, Content_Type=PROTOBUF)
    assert (answer.status, answer.message) == (400, message)


def test_patches_are_not_protobuf(client: Client, path: str) -> None:
    answer = client("PATCH", f"{path}/configmaps/none", b"k8s\0x", Content_Type=PROTOBUF)
    assert (answer.status, answer.message) == (415, "415: Unsupported Media Type")
