"""Creates with a body that came before: the same outcome, but for what is new in every object."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.client import Client

POD = {
    "metadata": {"generateName": "same-", "labels": {"app": "same"}},
    "spec": {"containers": [{"name": "a", "image": "a", "env": [{"name": "X", "value": ""}], "unknown": 1}]},
}
CONFIG_MAP = {"metadata": {"generateName": "same-"}, "data": {"a": "b"}}
MANAGED = {
    "metadata": {
        "generateName": "same-",
        "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}],
    }
}


def _without_identity(obj: dict[str, Any]) -> dict[str, Any]:
    meta = {k: v for k, v in obj["metadata"].items() if k not in ("name", "uid", "resourceVersion")}
    meta["creationTimestamp"] = None
    meta["managedFields"] = [{**entry, "time": None} for entry in meta["managedFields"]]
    return {**obj, "metadata": meta}


@pytest.mark.parametrize(("plural", "body"), [("pods", POD), ("configmaps", CONFIG_MAP), ("configmaps", MANAGED)])
def test_the_same_body_makes_the_same_object_every_time(
    client: Client, namespace: str, plural: str, body: dict[str, Any]
) -> None:
    path = f"/api/v1/namespaces/{namespace}/{plural}"
    answers = [client.post(path, body) for _ in range(4)]
    assert [answer.status for answer in answers] == [201] * 4
    first, *others = [_without_identity(answer.json) for answer in answers]
    assert others == [first] * 3
    for field in ("name", "uid", "resourceVersion"):
        assert len({answer.json["metadata"][field] for answer in answers}) == 4
    warnings = [answer.warnings for answer in answers]
    assert warnings == [warnings[0]] * 4
    assert bool(warnings[0]) == (plural == "pods")
    for answer in answers:
        meta = answer.json["metadata"]
        assert meta["managedFields"][-1].get("time", meta["creationTimestamp"]) == meta["creationTimestamp"]


def test_the_same_body_for_another_manager_or_validation_is_another_matter(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    for _ in range(3):
        assert client.post(path, POD).status == 201
    assert client.post(path + "?fieldValidation=Strict", POD).status == 400
    made = client.post(path + "?fieldManager=somebody", POD).json
    assert [entry["manager"] for entry in made["metadata"]["managedFields"]] == ["somebody"]


def test_the_form_and_the_options_that_a_head_asks_for_hold_for_every_request_that_begins_alike(
    client: Client, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for _ in range(3):
        assert client.post(f"{path}?dryRun=All&pretty=true&fieldManager=me", CONFIG_MAP).body.startswith(b"{\n  ")
        made = client.post(f"{path}?fieldManager=somebody", CONFIG_MAP)
        assert made.body.startswith(b'{"kind"')
        assert [entry["manager"] for entry in made.json["metadata"]["managedFields"]] == ["somebody"]
    assert len(client.get(path).json["items"]) == 3
