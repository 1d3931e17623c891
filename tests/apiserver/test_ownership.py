"""Who owns fields that the server writes, or of objects that it does not keep."""

from __future__ import annotations

from typing import Any

from apiserver.client import Client

ANNOTATION = "f:deprecated.daemonset.template.generation"
DAEMON_SET = {
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


def metadata_by_manager(obj: Any) -> dict[str, Any]:
    return {each["manager"]: each["fieldsV1"].get("f:metadata") for each in obj["metadata"]["managedFields"]}


def test_the_generation_of_a_template_belongs_to_who_writes_the_whole_object(client: Client, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    made = client.post(f"{path}?fieldManager=one", DAEMON_SET).json
    assert metadata_by_manager(made) == {"one": {"f:annotations": {".": {}, ANNOTATION: {}}}}
    put = client.put(f"{path}/d?fieldManager=two", DAEMON_SET).json
    assert metadata_by_manager(put) == {"one": {"f:annotations": {}}, "two": {"f:annotations": {ANNOTATION: {}}}}
    changed = {"spec": {"template": {"metadata": {"labels": {"c": "d"}}}}}
    patched = client.patch(f"{path}/d?fieldManager=three", changed).json
    assert metadata_by_manager(patched) == {**metadata_by_manager(put), "three": None}


def test_the_generation_of_a_template_is_not_applied(client: Client, namespace: str) -> None:
    body = {"apiVersion": "apps/v1", "kind": "DaemonSet", **DAEMON_SET}
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets/d?fieldManager=one"
    assert metadata_by_manager(client.patch(path, body, "apply").json) == {"one": None}


def test_an_empty_list_is_owned_where_it_differs_from_none(client: Client, namespace: str) -> None:
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    body = {"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": []}
    (entry,) = client.post(path, body).json["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:addressType": {}, "f:endpoints": {}}
    path = f"/api/v1/namespaces/{namespace}/limitranges"
    made = client.post(path, {"metadata": {"name": "a"}, "spec": {"limits": []}}).json
    assert made["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:limits": {}}}
    assert made["spec"] == {"limits": None}


def test_a_review_says_who_asked(client: Client, namespace: str) -> None:
    asked = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?fieldManager=one"
    (entry,) = client.post(path, {"spec": asked}).json["metadata"]["managedFields"]
    assert entry.pop("time")
    assert entry == {
        "manager": "one",
        "operation": "Update",
        "apiVersion": "authorization.k8s.io/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:resourceAttributes": {".": {}, "f:resource": {}, "f:verb": {}}}},
    }
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    (entry,) = client.post(path, {"spec": {"token": "nope"}}).json["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {"f:token": {}}}


def test_reviews_about_oneself_have_no_owner(client: Client, namespace: str) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    assert client.post(path, {"spec": {"namespace": namespace}}).json["metadata"] == {}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    assert client.post(path, {}).json["metadata"].keys() == {"creationTimestamp"}
