"""What the real kubectl prints from our tables."""

from __future__ import annotations

import re
import subprocess

from apiserver.client import Client

from tools import ApiServer


def get(kubectl: str, cluster: ApiServer, namespace: str, *arguments: str) -> list[list[str]]:
    command = [kubectl, f"--kubeconfig={cluster.kubeconfig}", f"--namespace={namespace}", "get", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [re.split(r"\s{2,}", line.strip()) for line in done.stdout.splitlines()]


def make(client: Client, path: str, body: dict[str, object]) -> None:
    made = client.post(path, body)
    assert made.status == 201, made.message


def test_get_prints_our_columns(kubectl: str, cluster: ApiServer, client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    make(client, path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}})
    head, line = get(kubectl, cluster, namespace, "configmap", "a")
    assert head == ["NAME", "DATA", "AGE"]
    assert line[:2] == ["a", "1"]
    assert re.fullmatch(r"\d+s", line[2])


def test_wide_columns_show_only_if_asked(kubectl: str, cluster: ApiServer, client: Client, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    make(client, path, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    head, line = get(kubectl, cluster, namespace, "deployments")
    assert head == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert line[:4] == ["web", "0/2", "0", "0"]
    head, line = get(kubectl, cluster, namespace, "deployments", "-o", "wide")
    assert head[5:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert line[5:] == ["c", "i", "app=web"]


def test_the_default_table_shows_when_an_object_was_created(
    kubectl: str, cluster: ApiServer, client: Client, namespace: str
) -> None:
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles"
    make(client, path, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}})
    head, line = get(kubectl, cluster, namespace, "roles")
    assert head == ["NAME", "CREATED AT"]
    assert line[0] == "r"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", line[1])
