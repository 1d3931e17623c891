"""Create, read, update, patch, delete over the wire."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from apiserver.client import Client


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_create_fills_in_the_metadata(client: Client, namespace: str) -> None:
    made = client.post(f"/api/v1/namespaces/{namespace}/configmaps", config_map("a", x="1"))
    assert made.status == 201
    meta = made.json["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert meta["namespace"] == namespace
    assert int(meta["resourceVersion"]) > 0
    assert (made.json["kind"], made.json["apiVersion"]) == ("ConfigMap", "v1")
    assert client.get(f"/api/v1/namespaces/{namespace}/configmaps/a").json == made.json


def test_a_name_is_taken_once(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert client.post(path, config_map("a")).status == 201
    again = client.post(path, config_map("a"))
    assert again.status == 409
    assert again.json["reason"] == "AlreadyExists"
    assert again.json["details"] == {"name": "a", "kind": "configmaps"}
    assert again.message == 'configmaps "a" already exists'
    both = client.post(path, {"metadata": {"name": "a", "generateName": "a-"}})
    assert both.json["details"] == {"name": "a", "kind": "configmaps", "retryAfterSeconds": 1}
    assert both.message == f"{again.message}, the server was not able to generate a unique name for the object"


def test_generated_names_end_in_five_characters(client: Client, namespace: str) -> None:
    body = {"metadata": {"generateName": "web-"}}
    names = {
        client.post(f"/api/v1/namespaces/{namespace}/configmaps", body).json["metadata"]["name"] for _ in range(20)
    }
    assert len(names) == 20
    assert all(re.fullmatch(r"web-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


def test_the_name_of_an_address_is_not_made_up(client: Client) -> None:
    parent = {"resource": "services", "namespace": "a", "name": "b"}
    body = {"metadata": {"generateName": "192.0.2.78"}, "spec": {"parentRef": parent}}
    made = client.post("/apis/networking.k8s.io/v1/ipaddresses?dryRun=All", body)
    assert (made.status, made.json["metadata"]["name"]) == (201, "192.0.2.78")


def test_what_is_not_there_is_not_found(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/nope"
    for answer in (client.get(path), client.delete(path), client.patch(path, {}), client.put(path, config_map("nope"))):
        assert answer.status == 404
        assert answer.message == 'configmaps "nope" not found'
        assert answer.json["details"] == {"name": "nope", "kind": "configmaps"}


def test_nothing_is_created_in_a_namespace_that_does_not_exist(client: Client) -> None:
    answer = client.post("/api/v1/namespaces/no-such-place/configmaps", config_map("a"))
    assert answer.status == 404
    assert answer.message == 'namespaces "no-such-place" not found'


def test_update_replaces_and_moves_the_resource_version(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    old = client.post(path, config_map("a", x="1")).json
    new = client.put(f"{path}/a", {**old, "data": {"y": "2"}}).json
    assert new["data"] == {"y": "2"}
    assert int(new["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])
    assert new["metadata"]["uid"] == old["metadata"]["uid"]


def test_an_update_that_changes_nothing_is_not_written(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    old = client.post(path, config_map("a", x="1")).json
    assert client.put(f"{path}/a", old).json["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]


def test_an_update_of_an_old_version_conflicts(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    old = client.post(path, config_map("a", x="1")).json
    client.put(f"{path}/a", {**old, "data": {"y": "2"}})
    conflict = client.put(f"{path}/a", {**old, "data": {"z": "3"}})
    assert conflict.status == 409
    assert conflict.json["reason"] == "Conflict"
    assert conflict.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


def test_an_update_without_a_version_always_wins(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(path, config_map("a", x="1"))

    def write(number: int) -> int:
        return client.put(f"{path}/a", config_map("a", n=str(number))).status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(write, range(40))) == {200}


def test_counting_with_versions_loses_no_step(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(path, config_map("a", n="0"))

    def add_one(_: int) -> None:
        while True:
            now = client.get(f"{path}/a").json
            now["data"]["n"] = str(int(now["data"]["n"]) + 1)
            if client.put(f"{path}/a", now).status == 200:
                return

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add_one, range(30)))
    assert client.get(f"{path}/a").json["data"]["n"] == "30"


def test_names_in_path_and_body_must_agree(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(path, config_map("a"))
    answer = client.put(f"{path}/a", config_map("b"))
    assert (answer.status, answer.message) == (
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    )
    other = {"metadata": {"name": "x", "namespace": "other"}}
    for answer in (client.post(path, other), client.put(f"{path}/a", other), client.patch(f"{path}/a", other)):
        assert answer.message == "the namespace of the provided object does not match the namespace sent on the request"


def test_merge_patch_sets_and_removes(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(path, config_map("a", x="1", y="2"))
    patched = client.patch(f"{path}/a", {"data": {"x": None, "z": "3"}, "metadata": {"labels": {"l": "m"}}})
    assert patched.status == 200
    assert patched.json["data"] == {"y": "2", "z": "3"}
    assert patched.json["metadata"]["labels"] == {"l": "m"}


def test_json_patch_applies_all_or_nothing(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(path, config_map("a", x="1"))
    good = client.patch(f"{path}/a", [{"op": "add", "path": "/data/y", "value": "2"}], "json")
    assert good.json["data"] == {"x": "1", "y": "2"}
    test_then_add = [
        {"op": "add", "path": "/data/z", "value": "3"},
        {"op": "test", "path": "/data/x", "value": "other"},
    ]
    assert client.patch(f"{path}/a", test_then_add, "json").status == 422
    assert client.get(f"{path}/a").json["data"] == {"x": "1", "y": "2"}


def test_concurrent_patches_all_land(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    client.post(path, config_map("a"))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: client.patch(f"{path}/a", {"data": {f"k{n}": "v"}}), range(40)))
    assert {answer.status for answer in answers} == {200}
    assert len(client.get(f"{path}/a").json["data"]) == 40


def test_a_patch_type_that_is_unknown_is_refused(client: Client, namespace: str) -> None:
    for media in ("text/plain", "application/Merge-Patch+json"):
        answer = client("PATCH", f"/api/v1/namespaces/{namespace}/configmaps/a", b"{}", Content_Type=media)
        assert (answer.status, answer.message) == (415, "415: Unsupported Media Type")


def test_delete_answers_with_a_status_that_names_the_object(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = client.post(path, config_map("a")).json
    gone = client.delete(f"{path}/a").json
    assert (gone["kind"], gone["status"]) == ("Status", "Success")
    assert gone["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert client.get(f"{path}/a").status == 404


def test_delete_preconditions_must_hold(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    meta = client.post(path, config_map("a")).json["metadata"]
    for bad in ({"uid": "other"}, {"resourceVersion": "1"}):
        answer = client.delete(f"{path}/a", {"preconditions": bad})
        assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    good = {"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
    assert client.delete(f"{path}/a", good).status == 200


def test_finalizers_hold_an_object_until_they_are_gone(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = config_map("a")
    body["metadata"] = {"name": "a", "finalizers": ["example.com/hold"]}
    client.post(path, body)
    marked = client.delete(f"{path}/a")
    assert marked.status == 200
    assert marked.json["metadata"]["deletionTimestamp"]
    assert marked.json["metadata"]["deletionGracePeriodSeconds"] == 0
    assert client.get(f"{path}/a").json["metadata"]["deletionTimestamp"]
    added = client.patch(f"{path}/a", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})
    assert added.status == 422, "no finalizer may be added to an object that is being deleted"
    assert client.patch(f"{path}/a", {"metadata": {"finalizers": None}}).status == 200
    assert client.get(f"{path}/a").status == 404


def test_propagation_policies_become_finalizers(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for policy, finalizer in (("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
        client.post(path, config_map(policy.lower()))
        marked = client.delete(f"{path}/{policy.lower()}", {"propagationPolicy": policy})
        assert marked.json["metadata"]["finalizers"] == [finalizer]
    client.post(path, config_map("background"))
    assert client.delete(f"{path}/background?propagationPolicy=Background").json["kind"] == "Status"
    wrong = client.delete(f"{path}/orphan", {"propagationPolicy": "Maybe"})
    assert wrong.status == 422
    assert wrong.json["details"]["causes"][0]["field"] == "propagationPolicy"


def test_deletecollection_takes_what_is_selected(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(6):
        body = config_map(f"c{number}")
        body["metadata"] = {"name": f"c{number}", "labels": {"even": str(number % 2 == 0).lower()}}
        client.post(path, body)
    gone = client.delete(f"{path}?labelSelector=even%3Dtrue")
    assert gone.status == 200
    assert [item["metadata"]["name"] for item in gone.json["items"]] == ["c0", "c2", "c4"]
    left = client.get(path).json["items"]
    assert [item["metadata"]["name"] for item in left] == ["c1", "c3", "c5"]


def test_dry_run_changes_nothing(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    dry = client.post(f"{path}?dryRun=All", config_map("a"))
    assert dry.status == 201
    assert dry.json["metadata"]["uid"]
    assert client.get(f"{path}/a").status == 404
    made = client.post(path, config_map("a", x="1")).json
    assert client.patch(f"{path}/a?dryRun=All", {"data": {"x": "2"}}).json["data"] == {"x": "2"}
    assert client.put(f"{path}/a?dryRun=All", {**made, "data": {"x": "3"}}).json["data"] == {"x": "3"}
    assert client.delete(f"{path}/a?dryRun=All").status == 200
    assert client.get(f"{path}/a").json == made
    assert client.post(f"{path}?dryRun=Some", config_map("b")).status == 422


def test_a_resource_version_is_not_for_new_objects_but_may_be_tried(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = {"metadata": {"name": "a", "resourceVersion": "7"}}
    assert client.post(path, body).message == "resourceVersion should not be set on objects to be created"
    tried = client.post(f"{path}?dryRun=All", body)
    assert (tried.status, tried.json["metadata"]["resourceVersion"]) == (201, "7")


def test_dropped_deletion_fields_have_no_manager(client: Client, namespace: str) -> None:
    metadata = {"name": "a", "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}
    made = client.post(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": metadata}).json
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"} & made["metadata"].keys()


def test_status_and_spec_are_kept_apart(client: Client, namespace: str) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    collection = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    made = client.post(collection, {"metadata": {"name": "r"}, "spec": spec, "status": {"replicas": 7}}).json
    assert made["status"].get("replicas", 0) == 0
    assert made["metadata"]["generation"] == 1
    path = f"{collection}/r"
    changed = client.patch(path, {"spec": {"replicas": 3}, "status": {"replicas": 8}}).json
    assert (changed["spec"]["replicas"], changed["status"].get("replicas", 0)) == (3, 0)
    assert changed["metadata"]["generation"] == 2
    status = client.patch(f"{path}/status", {"spec": {"replicas": 4}, "status": {"replicas": 9}}).json
    assert (status["spec"]["replicas"], status["status"]["replicas"]) == (3, 9)
    assert status["metadata"]["generation"] == 2


def test_an_update_may_create_where_upstream_lets_it(client: Client, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/new"
    lease = {"metadata": {"name": "new"}, "spec": {"holderIdentity": "me"}}
    assert client.put(path, lease).status == 201
    assert client.get(path).json["spec"]["holderIdentity"] == "me"


def test_an_owner_named_twice_counts_once(client: Client, namespace: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    body = {"metadata": {"name": "a", "ownerReferences": [owner, owner, owner]}}
    made = client.post(f"/api/v1/namespaces/{namespace}/configmaps", body)
    assert made.json["metadata"]["ownerReferences"] == [owner]
    assert len(made.warnings) == 1
    assert made.warnings[0].endswith('duplicate UID(s) observed: u, u"')
    patched = client.patch(f"/api/v1/namespaces/{namespace}/configmaps/a", body)
    assert "contains duplicate entries after mutating admission happens; " in patched.warnings[0]


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces", "/api/v1/namespaces/default/status", "/version", "/apis", "/healthz"]
)
def test_a_timeout_that_is_no_duration_is_refused(client: Client, path: str) -> None:
    answer = client.get(f"{path}?timeout=x")
    assert (answer.status, answer.message) == (
        400,
        'invalid timeout specified in the request URL - time: invalid duration "x"',
    )
    for fine in ("10s", "3m", "0s", ""):
        assert client.get(f"{path}?timeout={fine}").status == 200


def test_what_lasts_takes_no_notice_of_a_timeout(client: Client) -> None:
    assert client.get("/api/v1/namespaces?watch=1&timeoutSeconds=1&timeout=x").status == 200


def test_an_object_without_a_name_gets_all_its_errors(client: Client, namespace: str) -> None:
    answer = client.post(f"/api/v1/namespaces/{namespace}/pods", {})
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == ["metadata.name", "spec.containers"]


def test_fields_of_another_kind_are_not_unknown_fields(client: Client, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "Status", "metadata": {"name": "a"}, "reason": "x"}
    answer = client.post(f"/api/v1/namespaces/{namespace}/configmaps", body)
    assert (answer.status, answer.warnings) == (400, [])
    assert answer.message.endswith("converting (v1.Status) to (core.ConfigMap): unknown conversion")
