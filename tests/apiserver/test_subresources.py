"""Scales, bindings, evictions and reviews: what is posted to them must fit the path."""

from __future__ import annotations

import pytest
from apiserver.client import Client

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
MISPLACED = "the namespace of the provided object does not match the namespace sent on the request"


@pytest.fixture
def pod(client: Client, namespace: str) -> str:
    """The path of a pod on a node."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    body = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {**TEMPLATE["spec"], "nodeName": "n"}}
    assert client.post(path, body).status == 201
    return f"{path}/p"


@pytest.fixture
def scale(client: Client, namespace: str) -> str:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    assert client.post(path, {"metadata": {"name": "d"}, "spec": spec}).status == 201
    return f"{path}/d/scale"


def test_a_scale_names_its_object(client: Client, scale: str) -> None:
    answer = client.put(scale, {"metadata": {"namespace": "x"}, "spec": {"replicas": 3}})
    assert (answer.status, answer.message) == (400, MISPLACED)
    answer = client.put(scale, {"spec": {"replicas": 3}})
    assert (answer.status, answer.message) == (
        400,
        "the name of the object (d based on URL) was undeterminable: name must be provided",
    )
    meta = {"name": "d", "uid": "x"}
    for answer, kind in (
        (client.put(scale, {"metadata": meta, "spec": {"replicas": 3}}), "deployments"),
        (client.patch(scale, {"metadata": meta}), "deployments/scale"),
    ):
        assert (answer.status, answer.json["details"]["kind"]) == (409, kind)
    assert client.put(scale, {"metadata": {"name": "d"}, "spec": {"replicas": 3}}).json["spec"] == {"replicas": 3}


@pytest.mark.parametrize("kind", ["merge", "json", "strategic"])
def test_who_patches_a_scale_owns_the_replicas(client: Client, scale: str, kind: str) -> None:
    path = scale.removesuffix("/scale")
    config = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2}}
    assert client.patch(f"{path}?fieldManager=m&force=true", config, "apply").status == 200
    change = [{"op": "replace", "path": "/spec/replicas", "value": 1}] if kind == "json" else {"spec": {"replicas": 1}}
    assert client.patch(f"{scale}?fieldManager=kubectl", change, kind).status == 200
    owners = [each for each in client.get(path).json["metadata"]["managedFields"] if each.get("subresource") == "scale"]
    assert [(each["manager"], each["operation"], each["fieldsV1"]) for each in owners] == [
        ("kubectl", "Update", {"f:spec": {"f:replicas": {}}})
    ]
    again = client.patch(f"{path}?fieldManager=m", config, "apply")
    assert again.status == 409
    assert again.message.endswith('conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas')


def test_a_patched_scale_that_is_none_is_shown_with_its_owners(client: Client, scale: str) -> None:
    answer = client.patch(scale, {"spec": {"replicas": "x"}})
    assert answer.status == 422
    assert r"\"managedFields\":[{\"manager\":" in answer.message


def test_a_scale_can_be_a_table(client: Client, scale: str) -> None:
    table = client.get(scale, Accept="application/json;as=Table;g=meta.k8s.io;v=v1").json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    partial = client.get(scale, Accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").json
    assert (partial["kind"], partial["metadata"]["name"]) == ("PartialObjectMetadata", "d")


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({}, "name in URL does not match name in Eviction object"),
        ({"name": "x"}, "name in URL does not match name in Eviction object"),
        ({"name": "p", "namespace": "x"}, MISPLACED),
    ],
)
def test_an_eviction_names_its_pod(client: Client, pod: str, meta: dict[str, str], message: str) -> None:
    answer = client.post(f"{pod}/eviction", {"metadata": meta})
    assert (answer.status, answer.message) == (400, message)
    assert "deletionTimestamp" not in client.get(pod).json["metadata"]


def test_an_evicted_pod_has_the_condition_disruption_target(client: Client, pod: str) -> None:
    body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "p"}}
    body["deleteOptions"] = {"gracePeriodSeconds": 7}
    assert client.post(f"{pod}/eviction", body).status == 201
    evicted = client.get(pod).json
    assert evicted["metadata"]["deletionGracePeriodSeconds"] == 7
    [condition] = evicted["status"]["conditions"]
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }


def test_options_of_an_eviction_are_checked(client: Client, pod: str) -> None:
    body = {"metadata": {"name": "p"}, "deleteOptions": {"propagationPolicy": "x"}}
    assert client.post(f"{pod}/eviction", body).status == 422
    body["deleteOptions"] = {"preconditions": {"resourceVersion": "1"}}
    assert client.post(f"{pod}/eviction", body).status == 409
    assert client.get(pod).json["status"].get("conditions") is None


def test_a_binding_names_its_pod_in_its_version(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    client.post(path, {"metadata": {"name": "p"}, "spec": TEMPLATE["spec"]})
    target = {"kind": "Node", "name": "n"}
    answer = client.post(f"{path}/p/binding", {"target": target})
    assert (answer.status, answer.message) == (400, "name in URL does not match name in Binding object")
    answer = client.post(f"{path}/p/binding", {"metadata": {"name": "p", "resourceVersion": "1"}, "target": target})
    assert answer.status == 409
    assert "ResourceVersion in precondition: 1" in answer.message
    answer = client.post(f"{path}/p/binding", {"metadata": {"name": "p", "namespace": "x"}, "target": target})
    assert (answer.status, answer.message) == (400, MISPLACED)
    answer = client.post(path.replace("pods", "bindings"), {"metadata": {"namespace": "x"}, "target": target})
    assert (answer.status, answer.message) == (400, MISPLACED)


def test_a_local_review_asks_about_its_namespace(client: Client, namespace: str) -> None:
    path = f"/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews"
    answer = client.post(path, {"spec": {"user": "u", "resourceAttributes": {"namespace": "x"}}})
    assert (answer.status, answer.message) == (
        422,
        '.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "x": '
        "must match metadata.namespace",
    )
    asked = {"user": "u", "resourceAttributes": {"namespace": namespace, "verb": "get", "resource": "pods"}}
    assert client.post(path, {"spec": asked}).json["metadata"]["namespace"] == namespace


def test_an_unknown_token_is_not_authenticated(client: Client) -> None:
    review = client.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "nope"}}).json
    assert review["status"] == {"user": {}, "error": "invalid bearer token"}


def test_a_terminating_namespace_has_no_grace_period(client: Client, namespace: str) -> None:
    meta = client.delete(f"/api/v1/namespaces/{namespace}").json["metadata"]
    assert meta["deletionTimestamp"]
    assert "deletionGracePeriodSeconds" not in meta
