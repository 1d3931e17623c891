"""A definition makes a kind: created, read, watched, changed and deleted like any other."""

from __future__ import annotations

import time

import pytest
from apiserver.client import Client
from apiserver.extensions.conftest import Define
from apiserver.extensions.defining import DEFINITIONS, Kind, spec_schema, version

from tools import wait_until

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
SPEC = spec_schema(size={"type": "string"}, replicas={"type": "integer", "default": 1})


def test_a_definition_is_established_at_once(client: Client) -> None:
    kind = Kind(client)
    begun = time.monotonic()
    kind.established()
    assert time.monotonic() - begun < 5  # upstream waits so long with several servers
    status = kind.read()["status"]
    assert [(each["type"], each["status"], each["reason"]) for each in status["conditions"]] == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "True", "InitialNamesAccepted"),
    ]
    assert status["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    assert status["storedVersions"] == ["v1"]
    kind.delete()


def test_objects_live_a_whole_life(define: Define) -> None:
    kind = define(version(SPEC))
    client = kind.client
    made = kind.post(spec={"size": "small"})
    assert made.status == 201
    assert made.json["spec"] == {"size": "small", "replicas": 1}
    meta = made.json["metadata"]
    assert (meta["generation"], meta["namespace"]) == (1, "default")
    assert kind.get().json == made.json
    again = kind.post(spec={})
    assert (again.status, again.message) == (409, f'widgets.{kind.group} "a" already exists')

    changed = made.json | {"spec": {"size": "large"}}
    put = client.put(kind.path("a"), changed)
    assert put.status == 200
    assert put.json["spec"] == {"size": "large", "replicas": 1}
    assert put.json["metadata"]["generation"] == 2
    assert client.put(kind.path("a"), changed).status == 409

    assert kind.patch({"spec": {"replicas": 4}}).json["spec"]["replicas"] == 4
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
    assert kind.patch(operations, kind="json").json["spec"]["replicas"] == 5
    labelled = kind.patch({"metadata": {"labels": {"a": "b"}}})
    assert labelled.json["metadata"]["generation"] == 4

    gone = client.delete(kind.path("a"))
    assert (gone.status, gone.json["status"], gone.json["details"]["kind"]) == (200, "Success", "widgets")
    missing = kind.get()
    assert (missing.status, missing.message) == (404, f'widgets.{kind.group} "a" not found')


def test_strategic_merge_is_no_way_to_change_them(define: Define) -> None:
    kind = define()
    kind.post()
    known = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    for media in ("application/strategic-merge-patch+json", "application/json", "application/Merge-Patch+json"):
        answer = kind.client("PATCH", kind.path("a"), b"{}", Content_Type=media)
        assert answer.status == 415
        assert answer.message == (
            f"the body of the request was in an unknown format - accepted media types include: {known}"
        )


@pytest.mark.parametrize(
    ("method", "name", "status", "message"),
    [
        ("HEAD", "a", 200, ""),
        ("HEAD", "", 200, ""),
        ("HEAD", "b", 404, ""),
        ("OPTIONS", "a", 405, ' is not supported on resources of kind "widgets.'),
        ("OPTIONS", "", 405, ' is not supported on resources of kind "widgets.'),
        ("PUT", "", 400, "name must be provided"),
        ("PATCH", "", 400, "name must be provided"),
        ("POST", "a", 405, "the server does not allow this method on the requested resource"),
    ],
)
def test_methods(define: Define, method: str, name: str, status: int, message: str) -> None:
    kind = define()
    kind.post()
    answer = kind.client(method, kind.path(name) if name else kind.path("a").removesuffix("/a"))
    assert answer.status == status
    if message:
        assert answer.message.startswith(message)


def test_an_update_says_which_version_it_is_for(define: Define) -> None:
    kind = define()
    kind.post()
    answer = kind.client.put(kind.path("a"), kind.object())
    assert answer.status == 422
    assert answer.message == (
        f'widgets.{kind.group} "a" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )


def test_lists_say_what_each_item_is(define: Define) -> None:
    kind = define()
    for name in ("b", "a", "c"):
        kind.post(name)
    found = kind.client.get(kind.path()).json
    assert (found["kind"], found["apiVersion"]) == ("WidgetList", f"{kind.group}/v1")
    assert found["metadata"]["continue"] == ""
    assert [(each["kind"], each["metadata"]["name"]) for each in found["items"]] == [
        ("Widget", "a"),
        ("Widget", "b"),
        ("Widget", "c"),
    ]
    page = kind.client.get(kind.path() + "?limit=2").json
    assert page["metadata"]["remainingItemCount"] == 1
    rest = kind.client.get(kind.path() + f"?limit=2&continue={page['metadata']['continue']}").json
    assert [each["metadata"]["name"] for each in rest["items"]] == ["c"]
    everywhere = kind.client.get(kind.path(namespace="")).json
    assert len(everywhere["items"]) == 3


def test_cluster_scoped_kinds_are_in_no_namespace(define: Define) -> None:
    kind = define(namespaced=False)
    assert kind.post().status == 201
    assert "namespace" not in kind.get().json["metadata"]
    wrong = kind.client.get(f"/apis/{kind.group}/v1/namespaces/default/widgets")
    assert wrong.status == 404


def test_a_watch_sees_every_change(define: Define) -> None:
    kind = define(version(SPEC))
    revision = kind.client.get(kind.path()).json["metadata"]["resourceVersion"]
    with kind.client.watch(f"{kind.path()}?watch=true&resourceVersion={revision}") as events:
        kind.post(spec={"size": "s"})
        kind.patch({"spec": {"size": "m"}})
        kind.client.delete(kind.path("a"))
        seen = events.take(3)
    assert [(each["type"], each["object"]["spec"]["size"]) for each in seen] == [
        ("ADDED", "s"),
        ("MODIFIED", "m"),
        ("DELETED", "m"),
    ]
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in seen]
    assert versions == sorted(set(versions))


def test_a_collection_is_deleted_by_label(define: Define) -> None:
    kind = define()
    kind.post("a", metadata={"labels": {"x": "1"}})
    kind.post("b")
    assert kind.client.delete(kind.path() + "?labelSelector=x%3D1").status == 200
    assert [each["metadata"]["name"] for each in kind.client.get(kind.path()).json["items"]] == ["b"]


def test_discovery_knows_the_kind(define: Define) -> None:
    kind = define(
        version(
            subresources={"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}
        ),
        version(name="v1beta1", storage=False),
        version(name="v2alpha1", storage=False),
        names={"shortNames": ["wd"], "categories": ["all", "mine"]},
    )
    client = kind.client
    group = client.get(f"/apis/{kind.group}").json
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1", "v2alpha1"]
    assert group["preferredVersion"]["version"] == "v1"
    resources = client.get(f"/apis/{kind.group}/v1").json["resources"]
    assert [each["name"] for each in resources] == ["widgets", "widgets/status", "widgets/scale"]
    assert resources[0]["shortNames"] == ["wd"]
    assert resources[0]["categories"] == ["all", "mine"]
    assert resources[0]["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert resources[2]["kind"] == "Scale"
    assert kind.group in [each["name"] for each in client.get("/apis").json["groups"]]
    everything = client.get("/apis", Accept=AGGREGATED).json["items"]
    mine = next(each for each in everything if each["metadata"]["name"] == kind.group)
    assert [each["version"] for each in mine["versions"]] == ["v1", "v1beta1", "v2alpha1"]
    assert mine["versions"][0]["resources"][0]["responseKind"] == {
        "group": kind.group,
        "version": "v1",
        "kind": "Widget",
    }


def test_a_version_that_is_not_served_is_not_there(define: Define) -> None:
    kind = define(version(), version(name="v2", storage=False))
    assert kind.client.get(kind.path(version="v2")).status == 200
    assert kind.change([{"op": "replace", "path": "/spec/versions/1/served", "value": False}], "json").status == 200
    wait_until(lambda: kind.client.get(kind.path(version="v2")).status == 404, "v2 is gone", 3)
    assert kind.client.get(kind.path()).status == 200


def test_changes_apply_to_what_is_served_and_spare_other_watches(define: Define) -> None:
    kind, other = define(version(SPEC)), define()
    kind.post(spec={"size": "s"})
    with (
        kind.client.watch(f"{kind.path()}?watch=true") as mine,
        kind.client.watch(f"{other.path()}?watch=true") as theirs,
    ):
        mine.take(1)
        schema = spec_schema(size={"type": "string", "enum": ["l"]}, color={"type": "string", "default": "red"})
        assert kind.change({"spec": {"versions": [version(schema)]}}).status == 200
        assert list(mine) == []  # ended, without an error
        other.post()
        assert theirs.take(1)[0]["type"] == "ADDED"
    assert kind.post("b", spec={"size": "s"}).status == 422
    assert kind.get().json["spec"] == {"size": "s", "color": "red"}, "what is stored is read by the schema of today"


def test_names_of_others_are_not_accepted(client: Client) -> None:
    first = Kind(client).established()
    second = Kind(
        client, names={"plural": "gadgets", "singular": "widget", "kind": "Gadget", "shortNames": ["widgets"]}
    )
    second.group = first.group
    second.name = f"gadgets.{first.group}"
    second.definition["spec"]["group"] = first.group
    second.definition["metadata"]["name"] = second.name
    try:
        assert second.create().status == 201
        wait_until(lambda: second.condition("NamesAccepted") == "False", "the clash is reported", 3)
        status = second.read()["status"]
        assert status["conditions"][0]["reason"] == "ShortNamesConflict"
        assert status["conditions"][0]["message"] == '"widgets" is already in use'
        assert status["conditions"][1] | {"lastTransitionTime": ""} == {
            "type": "Established",
            "status": "False",
            "lastTransitionTime": "",
            "reason": "NotAccepted",
            "message": "not all names are accepted",
        }
        assert client.get(second.path()).status == 404
        first.delete()
        wait_until(lambda: second.condition("Established") == "True", "the name is free", 5)
        assert client.get(second.path()).status == 200
    finally:
        first.delete()
        second.delete()


def test_deprecated_versions_warn(define: Define) -> None:
    kind = define(
        version(name="v1"),
        version(name="v1beta1", storage=False, deprecated=True),
        version(name="v1alpha1", storage=False, deprecated=True, deprecationWarning="use something else"),
    )
    assert kind.client.get(kind.path()).warnings == []
    assert kind.client.get(kind.path(version="v1beta1")).warnings == [
        f'299 - "{kind.group}/v1beta1 Widget is deprecated; use {kind.group}/v1 Widget"'
    ]
    assert kind.client.get(kind.path(version="v1alpha1")).warnings == ['299 - "use something else"']


def test_protected_groups_need_approval(client: Client) -> None:
    definition = Kind(client).definition
    definition["spec"]["group"] = "test.k8s.io"
    definition["metadata"] = {"name": "widgets.test.k8s.io"}
    refused = client.post(DEFINITIONS, definition)
    assert refused.status == 422
    assert "protected groups must have approval annotation" in refused.message
    definition["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    assert client.post(DEFINITIONS, definition).status == 201
    path = f"{DEFINITIONS}/widgets.test.k8s.io"
    found = wait_until(lambda: client.get(path).json["status"]["conditions"], "conditions", 3)
    client.delete(path)
    condition = next(each for each in found if each["type"] == "KubernetesAPIApprovalPolicyConformant")
    assert (condition["status"], condition["reason"]) == ("False", "UnapprovedAnnotation")
    assert condition["message"] == 'not approved: "unapproved, a test"'
