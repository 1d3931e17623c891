"""A definition takes its objects along, and waits for those that something holds."""

from __future__ import annotations

from apiserver.client import Client
from apiserver.extensions.conftest import Define
from apiserver.extensions.defining import DEFINITIONS, Kind, version

from tools import wait_until


def gone(kind: Kind) -> bool:
    return kind.client.get(f"{DEFINITIONS}/{kind.name}").status == 404


def test_objects_go_with_their_definition(define: Define) -> None:
    kind = define()
    for name in ("a", "b"):
        kind.post(name)
    with kind.client.watch(f"{kind.path()}?watch=true") as events:
        events.take(2)
        answer = kind.delete()
        assert answer.status == 200
        assert answer.json["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert answer.json["metadata"]["deletionTimestamp"]
        terminating = answer.json["status"]["conditions"][-1]
        assert (terminating["type"], terminating["status"], terminating["reason"]) == (
            "Terminating",
            "True",
            "InstanceDeletionPending",
        )
        assert [each["type"] for each in events] == ["DELETED", "DELETED"], "and the watch has ended"
    wait_until(lambda: gone(kind), "the definition is gone", 5)
    assert kind.client.get(kind.path()).status == 404
    assert kind.client.get(f"/apis/{kind.group}/v1").status == 404
    assert kind.client.get(f"/apis/{kind.group}").status == 404


def test_finalizers_of_objects_are_respected(define: Define) -> None:
    kind = define()
    kind.post("held", metadata={"finalizers": ["example.com/hold"]})
    kind.post("free")
    kind.delete()
    wait_until(lambda: kind.get("free").status == 404, "what nothing holds is gone", 5)
    held = kind.get("held")
    assert (held.status, bool(held.json["metadata"]["deletionTimestamp"])) == (200, True)
    conditions = {each["type"]: each["reason"] for each in kind.read()["status"]["conditions"]}
    assert conditions["Terminating"] == "InstanceDeletionInProgress"
    refused = kind.post("late")
    assert refused.status == 403
    assert refused.message == (
        f'widgets.{kind.group} "late" is forbidden: create not allowed while custom resource definition is terminating'
    )
    assert kind.patch({"metadata": {"finalizers": None}}, "held").status == 200
    wait_until(lambda: gone(kind), "the definition is gone", 5)


def test_the_same_definition_can_come_again(define: Define) -> None:
    kind = define()
    kind.post("a")
    kind.delete()
    wait_until(lambda: gone(kind), "the definition is gone", 5)
    kind.definition["spec"]["versions"] = [version(name="v2")]
    kind.established()
    assert kind.client.get(kind.path(version="v2")).json["items"] == []
    assert kind.client.get(kind.path()).status == 404


def test_a_definition_that_was_never_established_just_goes(client: Client) -> None:
    first = Kind(client).established()
    second = Kind(client, names={"plural": "gadgets", "kind": "Widget", "singular": "gadget"})
    second.group, second.name = first.group, f"gadgets.{first.group}"
    second.definition["spec"]["group"] = first.group
    second.definition["metadata"]["name"] = second.name
    assert second.create().status == 201
    wait_until(lambda: second.condition("NamesAccepted") == "False", "its kind is taken", 3)
    second.delete()
    wait_until(lambda: gone(second), "it is gone", 5)
    first.delete()
