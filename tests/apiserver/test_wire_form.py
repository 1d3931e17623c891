"""What Go's encoder does to zero values, seen by a client."""

from __future__ import annotations

from typing import Any

from apiserver.client import Client

ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles"
RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


def make_pod(client: Client, namespace: str, **spec: Any) -> dict[str, Any]:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    made = client.post(f"/api/v1/namespaces/{namespace}/pods", body)
    assert made.status == 201, made.message
    result: dict[str, Any] = made.json
    return result


def test_zeros_are_left_out_unless_they_are_pointers(client: Client, namespace: str) -> None:
    pod = make_pod(
        client,
        namespace,
        containers=[{"name": "c", "image": "i", "stdin": False, "ports": [], "env": [{"name": "E", "value": ""}]}],
        hostNetwork=False,
        nodeName="",
        tolerations=[],
        nodeSelector={},
        automountServiceAccountToken=False,
        priority=0,
    )
    spec = pod["spec"]
    assert not {"hostNetwork", "nodeName", "nodeSelector"} & spec.keys()
    assert spec["automountServiceAccountToken"] is False
    assert spec["priority"] == 0
    assert not {"stdin", "ports"} & spec["containers"][0].keys()
    assert spec["containers"][0]["env"] == [{"name": "E"}]


def test_an_omitted_zero_has_no_manager(client: Client, namespace: str) -> None:
    pod = make_pod(client, namespace, hostNetwork=False, subdomain="")
    owned = pod["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    assert not {"f:hostNetwork", "f:subdomain"} & owned.keys()
    assert "f:enableServiceLinks" in owned


def test_zeros_that_are_always_written_are_there_after_any_write(client: Client, namespace: str) -> None:
    make_pod(client, namespace)
    statuses = {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "c"}]}
    pod = client.patch(f"/api/v1/namespaces/{namespace}/pods/p/status", {"status": statuses}, "strategic").json
    assert pod["status"]["containerStatuses"] == [
        {
            "name": "c",
            "state": {},
            "lastState": {},
            "ready": False,
            "restartCount": 0,
            "image": "",
            "imageID": "",
        }
    ]
    assert pod["status"]["conditions"] == [
        {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    ]


def test_a_list_that_must_be_written_is_null_when_empty(client: Client, namespace: str) -> None:
    path = ROLES.format(namespace)
    for name, body in (("absent", {}), ("empty", {"rules": []}), ("null", {"rules": None})):
        made = client.post(path, {"metadata": {"name": name}, **body}).json
        assert made["rules"] is None
        assert client.get(f"{path}/{name}").json == made


def test_a_patch_finds_what_is_null(client: Client, namespace: str) -> None:
    path = ROLES.format(namespace)
    client.post(path, {"metadata": {"name": "r"}})
    replace = [{"op": "replace", "path": "/rules", "value": [RULE]}]
    assert client.patch(f"{path}/r", replace, "json").json["rules"] == [RULE]


def test_saying_a_zero_is_no_change(client: Client, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    made = client.post(path, body).json
    spec = {**made["spec"], "paused": False, "minReadySeconds": 0}
    spec["template"]["spec"] |= {"hostPID": False, "hostAliases": [], "volumes": []}
    again = client.put(f"{path}/d", {**made, "spec": spec}).json
    assert again["metadata"]["generation"] == 1
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
