"""Deletes: options that are wrong, preconditions, what the client and those who watch get to see."""

from __future__ import annotations

import pytest
from apiserver.client import Client

POD = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}


@pytest.fixture
def path(client: Client, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert client.post(path, {"metadata": {"name": "a", "labels": {"x": "y"}}}).status == 201
    return path


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b"garbage",
            "couldn't get version/kind; json parse error: invalid character 'g' looking for beginning of value",
        ),
        (
            b'{"gracePeriodSeconds":"x"}',
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
        (
            b'{"kind":"Pod","apiVersion":"v1"}',
            'no kind "Pod" is registered for version "v1" in scheme '
            '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"',
        ),
    ],
)
def test_options_that_cannot_be_read(client: Client, path: str, body: bytes, message: str) -> None:
    answer = client.delete(f"{path}/a", body)
    assert (answer.status, answer.message) == (400, message)


@pytest.mark.parametrize("body", [b"null", b"{}", b'{"foo":1}', b'{"dryRun":["All","All"]}'])
def test_options_that_say_nothing_or_too_much(client: Client, path: str, body: bytes) -> None:
    assert client.delete(f"{path}/a", body).status == 200


def test_preconditions_in_the_query(client: Client, path: str) -> None:
    assert client.delete(f"{path}/a?uid=x").status == 409
    assert client.delete(f"{path}/a?resourceVersion=1").status == 409
    assert client.delete(f"{path}/a?gracePeriodSeconds=").status == 400
    assert client.delete(f"{path}/a").status == 200


def test_a_name_that_is_being_deleted_is_taken(client: Client, path: str) -> None:
    client.patch(f"{path}/a", {"metadata": {"finalizers": ["a.b/c"]}})
    client.delete(f"{path}/a")
    answer = client.post(path, {"metadata": {"name": "a"}})
    assert (answer.status, answer.message) == (409, 'object is being deleted: configmaps "a" already exists')
    last = client.patch(f"{path}/a", {"metadata": {"finalizers": None}})
    assert last.status == 200
    assert "finalizers" not in last.json["metadata"]
    assert client.get(f"{path}/a").status == 404


def test_who_takes_the_last_finalizer_gets_the_version_that_was_removed(client: Client, path: str) -> None:
    client.patch(f"{path}/a", {"metadata": {"finalizers": ["a.b/c"]}})
    marked = client.delete(f"{path}/a").json["metadata"]["resourceVersion"]
    last = client.patch(f"{path}/a", {"metadata": {"finalizers": None}}).json["metadata"]["resourceVersion"]
    assert last == marked
    assert client.get(f"{path}?watch=1&timeoutSeconds=1&resourceVersion={last}").json["type"] == "DELETED"


def test_a_page_of_a_collection_can_be_deleted(client: Client, path: str) -> None:
    client.post(path, {"metadata": {"name": "b", "labels": {"x": "y"}}})
    answer = client.delete(f"{path}?labelSelector=x&limit=1")
    assert [item["metadata"]["name"] for item in answer.json["items"]] == ["a"]
    assert answer.json["metadata"]["continue"]
    assert client.get(f"{path}/b").status == 200


def test_a_pod_without_grace_is_marked_before_it_is_gone(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    client.post(path, POD)
    with client.watch(f"{path}?watch=1") as watching:
        answer = client.delete(f"{path}/p?gracePeriodSeconds=0")
        events = watching.take(3)
    assert answer.json["metadata"]["deletionGracePeriodSeconds"] == 0
    assert answer.json["metadata"]["generation"] == 2
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event["object"]["metadata"].get("deletionGracePeriodSeconds") for event in events] == [None, 0, 0]


def test_a_watch_is_json(client: Client, path: str) -> None:
    answer = client.get(f"{path}?watch=1", Accept="application/yaml")
    assert answer.status == 406
    assert client.get(f"{path}?watch=1&continue=x").status == 422


def test_the_old_path_of_a_watch(client: Client, namespace: str) -> None:
    with client.watch(f"/api/v1/watch/namespaces/{namespace}?timeoutSeconds=1") as watching:
        assert [event["object"]["metadata"]["name"] for event in watching] == [namespace]
    assert client.post(f"/api/v1/watch/namespaces/{namespace}/configmaps", {}).status == 405


def test_events_have_no_dependents_to_wait_for(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/events"
    client.post(path, {"metadata": {"name": "e"}, "involvedObject": {"namespace": namespace}})
    assert client.delete(f"{path}/e?propagationPolicy=Foreground").json["kind"] == "Status"
    assert client.get(f"{path}/e").status == 404


def test_the_pods_of_a_deleted_job_stay_with_a_warning(client: Client, namespace: str) -> None:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    client.post(path, {"metadata": {"name": "j"}, "spec": spec})
    assert client.delete(f"{path}/j?dryRun=All&propagationPolicy=Orphan").warnings == []
    assert client.delete(f"{path}/j?dryRun=All").warnings[0].startswith('299 - "child pods are preserved by default')
