"""Several versions of a kind: by name alone, and by a webhook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apiserver.extensions.conftest import Define
from apiserver.extensions.defining import Kind, spec_schema, version
from apiserver.extensions.webhook import ConversionWebhook, conversion_webhook

from tools import wait_until

TEXT = {"type": "string"}
V1 = spec_schema(hostPort=TEXT, one={"type": "string", "default": "1"})
V2 = spec_schema(host=TEXT, port={"type": "integer"}, two={"type": "string", "default": "2"})


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[ConversionWebhook]:
    with conversion_webhook(tmp_path) as hook:
        yield hook


@pytest.fixture
def kind(define: Define, webhook: ConversionWebhook) -> Kind:
    first = version(V1, selectableFields=[{"jsonPath": ".spec.hostPort"}])
    second = version(V2, "v2", storage=False, selectableFields=[{"jsonPath": ".spec.host"}])
    return define(first, second, conversion=webhook.config())


def test_without_a_webhook_only_the_version_changes(define: Define) -> None:
    kind = define(version(spec_schema(a=TEXT, b=TEXT)), version(spec_schema(a=TEXT, c=TEXT), "v2", storage=False))
    kind.post(spec={"a": "1", "b": "2"})
    other = kind.get(version="v2")
    assert other.json["apiVersion"] == f"{kind.group}/v2"
    assert other.json["spec"] == {"a": "1"}, "v2 does not know b"
    assert kind.get().json["spec"] == {"a": "1", "b": "2"}
    written = kind.post("w", "v2", spec={"a": "1", "c": "3"})
    assert written.json["spec"] == {"a": "1"}, "v1, which is stored, does not know c"
    names = [each["apiVersion"] for each in kind.client.get(kind.path(version="v2")).json["items"]]
    assert names == [f"{kind.group}/v2"] * 2
    with kind.client.watch(f"{kind.path(version='v2')}?watch=true") as events:
        assert {each["object"]["apiVersion"] for each in events.take(2)} == {f"{kind.group}/v2"}


def test_the_stored_version_can_change(define: Define) -> None:
    schema = spec_schema(a=TEXT)
    kind = define(version(schema), version(schema, "v2", storage=False))
    kind.post(spec={"a": "1"})
    before = kind.get().json
    swapped = [version(schema, storage=False), version(schema, "v2")]
    assert kind.change({"spec": {"versions": swapped}}).status == 200
    assert kind.read()["status"]["storedVersions"] == ["v1", "v2"]
    assert kind.get().json == before
    assert kind.get(version="v2").json["spec"] == {"a": "1"}
    kind.post("new", spec={"a": "2"})
    assert kind.get("new", "v2").json["spec"] == {"a": "2"}
    refused = kind.change({"spec": {"versions": [version(schema, "v2")]}})
    assert refused.status == 422
    assert "until a storage migration ensures no data remains persisted in v1" in refused.message
    done = kind.client.patch(
        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.name}/status",
        {"status": {"storedVersions": ["v2"]}},
    )
    assert done.status == 200, done.message
    assert kind.change({"spec": {"versions": [version(schema, "v2")]}}).status == 200
    wait_until(lambda: kind.get().status == 404, "v1 is gone", 3)


def test_a_webhook_converts_both_ways(kind: Kind, webhook: ConversionWebhook) -> None:
    made = kind.post("a", spec={"hostPort": "h:80"})
    assert made.json["spec"] == {"hostPort": "h:80", "one": "1"}
    assert webhook.reviews == [], "the stored version needs no conversion"
    other = kind.get("a", "v2").json
    assert other["spec"] == {"host": "h", "port": 80}
    assert other["metadata"]["generation"] == 1, "of the metadata only labels and annotations may change"
    assert other["metadata"]["labels"] == {"converted": "v2"}
    [review] = webhook.reviews
    assert (review["kind"], review["apiVersion"]) == ("ConversionReview", "apiextensions.k8s.io/v1")
    assert review["request"]["desiredAPIVersion"] == f"{kind.group}/v2"
    assert review["request"]["objects"][0]["spec"] == {"hostPort": "h:80", "one": "1"}
    kind.get("a", "v2")
    assert len(webhook.reviews) == 1, "what was converted is kept"

    written = kind.post("b", "v2", spec={"host": "q", "port": 8})
    assert written.status == 201, written.message
    assert written.json["spec"] == {"host": "q", "port": 8}
    assert kind.get("b").json["spec"] == {"hostPort": "q:8", "one": "1"}
    changed = kind.patch({"spec": {"port": 9}}, "a", version="v2")
    assert changed.json["spec"] == {"host": "h", "port": 9}
    assert kind.get("a").json["spec"]["hostPort"] == "h:9"


def test_lists_are_converted_in_one_review(kind: Kind, webhook: ConversionWebhook) -> None:
    for number in range(5):
        kind.post(f"a{number}", spec={"hostPort": f"h:{number}"})
    items = kind.client.get(kind.path(version="v2")).json["items"]
    assert [each["spec"]["port"] for each in items] == list(range(5))
    assert [len(each["request"]["objects"]) for each in webhook.reviews] == [5]
    table = kind.client.get(kind.path(version="v2"), Accept="application/json;as=Table;g=meta.k8s.io;v=v1").json
    assert len(table["rows"]) == 5


def test_fields_are_selected_in_the_version_of_the_request(kind: Kind) -> None:
    kind.post("a", spec={"hostPort": "h:1"})
    kind.post("b", spec={"hostPort": "q:1"})

    def names(selector: str, version: str) -> list[str]:
        answer = kind.client.get(f"{kind.path(version=version)}?fieldSelector={selector}").json
        return [each["metadata"]["name"] for each in answer["items"]]

    assert names("spec.host%3Dq", "v2") == ["b"]
    assert names("spec.hostPort%3Dh:1", "v1") == ["a"]


def test_watches_are_converted(kind: Kind) -> None:
    kind.post("a", spec={"hostPort": "h:1"})
    with kind.client.watch(f"{kind.path(version='v2')}?watch=true") as events:
        kind.patch({"spec": {"hostPort": "h:2"}})
        kind.client.delete(kind.path("a"))
        seen = events.take(3)
    assert [(each["type"], each["object"]["spec"]) for each in seen] == [
        ("ADDED", {"host": "h", "port": 1}),
        ("MODIFIED", {"host": "h", "port": 2}),
        ("DELETED", {"host": "h", "port": 2}),
    ]


LIES: list[tuple[str, str]] = [
    ("fail", " failed: cannot convert"),
    ("uid", " failed: expected response.uid="),
    ("name", " returned invalid object: must have the same name: a != zz"),
    ("few", " returned 0 objects, expected 1"),
    ("version", " returned invalid object at index 0: invalid groupVersion (expected {group}/v2, received x/v9)"),
    ("labels", " returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object"),
    ("broken", " failed: "),
    ("error", " failed: an error on the server ("),
]


@pytest.mark.parametrize(("mode", "message"), LIES)
def test_webhooks_that_fail_are_reported_and_the_server_stays_well(
    kind: Kind, webhook: ConversionWebhook, mode: str, message: str
) -> None:
    kind.post("a", spec={"hostPort": "h:80"})
    assert kind.change({"spec": {"conversion": webhook.config(mode)}}).status == 200
    answer = kind.get("a", "v2")
    assert answer.status == 500
    start = f"conversion webhook for {kind.group}/v1, Kind=Widget"
    assert answer.message.startswith(start + message.format(group=kind.group)), answer.message
    assert kind.get("a").status == 200, "the stored version needs no webhook"
    assert kind.change({"spec": {"conversion": webhook.config()}}).status == 200
    assert kind.get("a", "v2").status == 200


def test_a_webhook_by_service(kind: Kind, webhook: ConversionWebhook) -> None:
    client = kind.client
    kind.post("a", spec={"hostPort": "h:80"})
    service = {"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    assert client.post("/api/v1/namespaces/default/services", service).status == 201
    try:
        config: dict[str, Any] = webhook.config()
        reference = {"name": "hook", "namespace": "default", "path": "/good", "port": webhook.port}
        config["webhook"]["clientConfig"] = {"caBundle": webhook.bundle, "url": None, "service": reference}
        assert kind.change({"spec": {"conversion": config}}).status == 200
        assert kind.get("a", "v2").json["spec"] == {"host": "h", "port": 80}
        config["webhook"]["clientConfig"]["service"]["name"] = "nobody"
        assert kind.change({"spec": {"conversion": config}}).status == 200
        failed = kind.get("a", "v2")
        assert (failed.status, 'service "nobody" not found' in failed.message) == (500, True)
    finally:
        client.delete("/api/v1/namespaces/default/services/hook")


def test_owners_speak_their_own_versions(kind: Kind) -> None:
    def apply(manager: str, version: str, spec: dict[str, Any], force: bool = False) -> Any:
        path = f"{kind.path('a', version)}?fieldManager={manager}{'&force=true' if force else ''}"
        body = kind.object("a", version, spec=spec)
        return kind.client("PATCH", path, body, Content_Type="application/apply-patch+yaml")

    def owners(document: Any) -> dict[str, Any]:
        return {each["manager"]: each["fieldsV1"].get("f:spec", {}) for each in document["metadata"]["managedFields"]}

    assert apply("one", "v1", {"hostPort": "h:80"}).status == 201
    clash = apply("two", "v2", {"port": 90})
    assert clash.status == 409
    assert clash.message == 'Apply failed with 1 conflict: conflict with "one": .spec.hostPort'
    forced = apply("two", "v2", {"port": 90}, force=True)
    assert forced.status == 200, forced.message
    assert forced.json["spec"] == {"host": "h", "port": 90}
    assert kind.get("a").json["spec"]["hostPort"] == "h:90"
    assert owners(forced.json)["two"] == {"f:port": {}}
    assert "f:hostPort" not in owners(forced.json).get("one", {}), "what it owned is changed"
    patched = kind.client("PATCH", kind.path("a") + "?fieldManager=three", {"spec": {"hostPort": "h:70"}},
                          Content_Type="application/merge-patch+json")  # fmt: skip
    assert owners(patched.json)["three"] == {"f:hostPort": {}}
    assert "two" not in owners(patched.json), "the port it owned is not what it was"
