"""A kubelet sees only what its pods need."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from apiserver.authz.conftest import User, check
from apiserver.client import Client

AsUser = Callable[..., User]


@pytest.fixture
def node(as_user: AsUser) -> User:
    return as_user(f"system:node:n-{secrets.token_hex(4)}", "system:nodes")


def host(node: User) -> str:
    return node.name.removeprefix("system:node:")


def make_pod(admin: Client, place: str, node: str, name: str = "web", **spec: Any) -> None:
    body = {
        "metadata": {"name": name, **spec.pop("metadata", {})},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "i", **spec.pop("container", {})}],
            **spec,
        },
    }
    check(admin.post(f"/api/v1/namespaces/{place}/pods", body), 201)


def allowed(user: User, method: str, path: str) -> bool:
    """Whether the request is let through; that nothing is there is another matter."""
    body = {} if method in ("POST", "PUT", "PATCH") else None
    return user(method, path, body).status != 403


def test_secrets_and_config_maps_of_its_pods(admin: Client, node: User, as_user: AsUser, place: str) -> None:
    source = {"secretKeyRef": {"name": "env", "key": "k"}}
    make_pod(
        admin,
        place,
        host(node),
        imagePullSecrets=[{"name": "pull"}],
        volumes=[
            {"name": "a", "secret": {"secretName": "volume"}},
            {
                "name": "b",
                "projected": {"sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "pcm"}}]},
            },
            {"name": "c", "configMap": {"name": "cm"}},
        ],
        container={"env": [{"name": "E", "valueFrom": source}], "envFrom": [{"configMapRef": {"name": "ecm"}}]},
    )
    core = f"/api/v1/namespaces/{place}"
    for name in ("pull", "volume", "projected", "env"):
        assert allowed(node, "GET", f"{core}/secrets/{name}"), name
        assert allowed(node, "GET", f"{core}/secrets?fieldSelector=metadata.name={name}"), name
        assert not allowed(node, "DELETE", f"{core}/secrets/{name}")
        assert not allowed(node, "GET", f"{core}/configmaps/{name}")
    for name in ("cm", "pcm", "ecm"):
        assert allowed(node, "GET", f"{core}/configmaps/{name}"), name
    other = as_user("system:node:other", "system:nodes")
    refused = check(other.get(f"{core}/secrets/pull"), 403)
    assert refused.message.endswith("no relationship found between node 'other' and this object")
    assert not allowed(node, "GET", f"{core}/secrets/unknown")
    assert check(node.get(f"{core}/secrets"), 403).message.endswith(": No Object name found")
    assert check(node.get("/api/v1/secrets"), 403).message.endswith("can only read namespaced object of this type")
    assert not allowed(as_user(node.name, "others"), "GET", f"{core}/secrets/pull")  # not in system:nodes


def test_what_a_pod_needs_is_out_of_sight_when_the_pod_is_gone(admin: Client, node: User, place: str) -> None:
    make_pod(admin, place, host(node), volumes=[{"name": "a", "secret": {"secretName": "s"}}])
    path = f"/api/v1/namespaces/{place}/secrets/s"
    assert allowed(node, "GET", path)
    check(admin.delete(f"/api/v1/namespaces/{place}/pods/web?gracePeriodSeconds=0"), 200)
    assert not allowed(node, "GET", path)


def test_a_mirror_pod_gives_nothing(admin: Client, node: User, place: str) -> None:
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    make_pod(admin, place, host(node), metadata=mirror, volumes=[{"name": "a", "secret": {"secretName": "s"}}])
    assert not allowed(node, "GET", f"/api/v1/namespaces/{place}/secrets/s")


def test_claims_volumes_and_their_secrets(admin: Client, node: User, place: str) -> None:
    make_pod(admin, place, host(node), volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    volume = f"pv-{secrets.token_hex(4)}"
    check(
        admin.post(
            "/api/v1/persistentvolumes",
            {
                "metadata": {"name": volume},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "claimRef": {"namespace": place, "name": "data"},
                    "csi": {
                        "driver": "d.io",
                        "volumeHandle": "h",
                        "nodeStageSecretRef": {"name": "stage", "namespace": place},
                        "controllerPublishSecretRef": {"name": "controller", "namespace": place},
                    },
                },
            },
        ),
        201,
    )
    core = f"/api/v1/namespaces/{place}"
    assert allowed(node, "GET", f"{core}/persistentvolumeclaims/data")
    assert allowed(node, "PATCH", f"{core}/persistentvolumeclaims/data/status")
    assert not allowed(node, "GET", f"{core}/persistentvolumeclaims/other")
    assert not allowed(node, "PATCH", f"{core}/persistentvolumeclaims/data")
    assert allowed(node, "GET", f"/api/v1/persistentvolumes/{volume}")
    assert not allowed(node, "GET", "/api/v1/persistentvolumes")
    assert allowed(node, "GET", f"{core}/secrets/stage")
    assert not allowed(node, "GET", f"{core}/secrets/controller")


def test_service_accounts_of_its_pods(admin: Client, node: User, place: str) -> None:
    make_pod(admin, place, host(node), serviceAccountName="robot")
    core = f"/api/v1/namespaces/{place}/serviceaccounts"
    assert allowed(node, "POST", f"{core}/robot/token")
    assert allowed(node, "GET", f"{core}/robot")
    assert not allowed(node, "POST", f"{core}/other/token")
    assert not allowed(node, "GET", core)
    assert not allowed(node, "POST", core)


def test_itself_its_lease_and_its_pods(admin: Client, node: User, place: str) -> None:
    me = host(node)
    make_pod(admin, place, me, name="mine")
    make_pod(admin, place, "other", name="other")
    leases = "/apis/coordination.k8s.io/v1/namespaces"
    pods = f"/api/v1/namespaces/{place}/pods"
    yes = [
        ("GET", f"/api/v1/nodes/{me}"),
        ("GET", f"/api/v1/nodes?fieldSelector=metadata.name={me}"),
        ("POST", "/api/v1/nodes"),
        ("PATCH", f"/api/v1/nodes/{me}/status"),
        ("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={me}"),
        ("GET", f"{pods}/mine"),
        ("PATCH", f"{pods}/mine/status"),
        ("POST", f"{pods}/mine/eviction"),
        ("GET", f"{leases}/kube-node-lease/leases/{me}"),
        ("POST", f"{leases}/kube-node-lease/leases"),
        ("GET", f"/apis/storage.k8s.io/v1/csinodes/{me}"),
        ("GET", f"/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName={me}"),
        ("GET", "/api/v1/services"),
        ("GET", "/apis/node.k8s.io/v1/runtimeclasses"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", f"/api/v1/namespaces/{place}/events"),
    ]
    no = [
        ("GET", "/api/v1/nodes/other"),
        ("GET", "/api/v1/nodes"),
        ("DELETE", f"/api/v1/nodes/{me}"),
        ("GET", "/api/v1/pods"),
        ("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%21={me}"),
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName=other"),
        ("GET", f"/api/v1/watch/pods?fieldSelector=spec.nodeName={me}&timeoutSeconds=1"),
        ("GET", f"{pods}/other"),
        ("PATCH", f"{pods}/mine"),
        ("GET", f"{pods}/mine/log"),
        ("POST", f"{pods}/mine/exec"),
        ("GET", f"{leases}/kube-node-lease/leases/other"),
        ("GET", f"{leases}/kube-node-lease/leases"),
        ("GET", f"{leases}/kube-system/leases/{me}"),
        ("GET", "/apis/storage.k8s.io/v1/csinodes/other"),
        ("GET", "/apis/resource.k8s.io/v1/resourceslices"),
        ("GET", "/apis/apps/v1/deployments"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
        ("GET", "/metrics"),
    ]
    assert [each for each in yes if not allowed(node, *each)] == []
    assert [each for each in no if allowed(node, *each)] == []


def test_attachments_and_slices_of_the_node(admin: Client, node: User, place: str) -> None:
    me, name = host(node), f"x-{secrets.token_hex(4)}"
    for where, suffix in ((me, "mine"), ("other", "other")):
        attachment = {"attacher": "a.io", "nodeName": where, "source": {"persistentVolumeName": "p"}}
        body = {"metadata": {"name": f"{name}-{suffix}"}, "spec": attachment}
        check(admin.post("/apis/storage.k8s.io/v1/volumeattachments", body), 201)
    assert allowed(node, "GET", f"/apis/storage.k8s.io/v1/volumeattachments/{name}-mine")
    assert not allowed(node, "GET", f"/apis/storage.k8s.io/v1/volumeattachments/{name}-other")
    assert not allowed(node, "GET", "/apis/storage.k8s.io/v1/volumeattachments")


def test_a_node_without_a_name_is_none(as_user: AsUser) -> None:
    answer = check(as_user("system:node:", "system:nodes").get("/api/v1/services"), 403)
    assert answer.message.endswith(': unknown node for user "system:node:"')
