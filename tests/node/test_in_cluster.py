"""Real clients inside pods: client-go's (kubectl) and the official Python client reach the API through the Service
`kubernetes` with their projected tokens, and are who their service accounts say."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from node import host_programs
from node.cluster import Cluster

import tools

NAMESPACE = "in-cluster"
SCRIPT = """
import base64, json
from kubernetes import client, config
config.load_incluster_config()
found = {"host": client.Configuration.get_default_copy().host}
core = client.CoreV1Api()
found["pods"] = [pod.metadata.name for pod in core.list_namespaced_pod("in-cluster").items]
review = client.AuthenticationV1Api().create_self_subject_review(client.V1SelfSubjectReview())
found["user"] = review.status.user_info.username
found["groups"] = review.status.user_info.groups
found["extra"] = review.status.user_info.extra
try:
    core.list_namespaced_secret("in-cluster")
except client.ApiException as error:
    found["refused"] = [error.status, json.loads(error.body)["message"]]
with open("/var/run/secrets/kubernetes.io/serviceaccount/token") as file:
    token = file.read()
body = token.split(".")[1]
found["claims"] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
with open("/var/run/secrets/kubernetes.io/serviceaccount/namespace") as file:
    found["namespace"] = file.read()
print(json.dumps(found))
"""
NOBODY = """
import json, os, ssl, urllib.error, urllib.request
server = os.environ["KUBERNETES_SERVICE_HOST"] + ":" + os.environ["KUBERNETES_SERVICE_PORT"]
try:
    url = f"https://{server}/api/v1/namespaces/in-cluster/pods"
    urllib.request.urlopen(url, context=ssl._create_unverified_context())
except urllib.error.HTTPError as error:
    folder = os.path.exists("/var/run/secrets/kubernetes.io")
    print(json.dumps([folder, error.code, json.load(error)["message"]]))
"""


@pytest.fixture(scope="module", autouse=True)
def account(node: Cluster) -> Iterator[None]:
    """A service account that may read pods and nothing else."""
    node.kubectl("create", "namespace", NAMESPACE)
    node.kubectl("create", "serviceaccount", "-n", NAMESPACE, "reader")
    node.kubectl("create", "role", "-n", NAMESPACE, "pod-reader", "--verb=get,list,watch", "--resource=pods")
    bind = ["--role=pod-reader", f"--serviceaccount={NAMESPACE}:reader"]
    node.kubectl("create", "rolebinding", "-n", NAMESPACE, "reader", *bind)
    yield
    node.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def pod(name: str, command: list[str], paths: list[str], **spec: Any) -> dict[str, Any]:
    """A pod that runs a program of the host, whose folders it gets."""
    container = {"name": "main", "image": "busybox", "imagePullPolicy": "IfNotPresent", "command": command}
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "containers": [container],
            "serviceAccountName": "reader",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            **spec,
        },
    }
    return host_programs.give(made, paths)


def finished(node: Cluster, name: str) -> str:
    """The log of a pod that has ended well."""

    def phase() -> str:
        return str(node.get("pod", "-n", NAMESPACE, name)["status"].get("phase"))

    tools.wait_until(lambda: phase() in ("Succeeded", "Failed"), f"{name} ends", 90, every=0.2)
    log = node.kubectl("logs", "-n", NAMESPACE, name)
    assert phase() == "Succeeded", log
    return log


def test_the_official_python_client_is_who_its_service_account_says(node: Cluster) -> None:
    node.apply(pod("python", [sys.executable, "-c", SCRIPT], host_programs.python()))
    found = json.loads(finished(node, "python"))
    uid = node.get("pod", "-n", NAMESPACE, "python")["metadata"]["uid"]
    service = node.get("service", "-n", "default", "kubernetes")["spec"]["clusterIP"]
    assert found["host"] == f"https://{service}:443"
    assert "python" in found["pods"]
    assert found["user"] == f"system:serviceaccount:{NAMESPACE}:reader"
    assert set(found["groups"]) == {
        "system:serviceaccounts",
        f"system:serviceaccounts:{NAMESPACE}",
        "system:authenticated",
    }
    assert found["extra"]["authentication.kubernetes.io/pod-name"] == ["python"]
    assert found["extra"]["authentication.kubernetes.io/pod-uid"] == [uid]
    assert found["extra"]["authentication.kubernetes.io/node-name"] == ["node-1"]
    status, message = found["refused"]
    assert status == 403
    assert message == (
        f'secrets is forbidden: User "system:serviceaccount:{NAMESPACE}:reader" cannot list resource "secrets" '
        f'in API group "" in the namespace "{NAMESPACE}"'
    )
    assert found["namespace"] == NAMESPACE
    assert found["claims"]["kubernetes.io"]["pod"] == {"name": "python", "uid": uid}
    assert found["claims"]["exp"] - found["claims"]["iat"] > 3600


def test_kubectl_inside_a_pod_needs_no_configuration(node: Cluster) -> None:
    kubectl = os.path.realpath(tools.kubectl())
    paths = [*host_programs.libraries(), *([] if kubectl.startswith("/usr/") else [os.path.dirname(kubectl)])]
    script = f"{kubectl} get pods -o name && {kubectl} auth can-i list pods && ! {kubectl} get secrets 2>&1"
    node.apply(pod("kubectl", ["sh", "-c", script], paths))
    lines = finished(node, "kubectl").splitlines()
    assert "pod/kubectl" in lines
    assert "yes" in lines
    assert lines[-1].startswith("Error from server (Forbidden): secrets is forbidden: User ")


def test_without_a_token_a_pod_is_anonymous(node: Cluster) -> None:
    node.apply(
        pod("nobody", [sys.executable, "-c", NOBODY], host_programs.python(), automountServiceAccountToken=False)
    )
    folder, status, message = json.loads(finished(node, "nobody"))
    assert (folder, status) == (False, 403)
    assert message.startswith('pods is forbidden: User "system:anonymous" cannot list resource "pods"')


def test_a_token_ends_with_its_pod(node: Cluster) -> None:
    script = "cat /var/run/secrets/kubernetes.io/serviceaccount/token; echo; exec sleep 600"
    node.apply(pod("short", ["sh", "-c", script], []))
    node.kubectl("wait", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=110s", "pod/short")
    token = tools.wait_until(lambda: node.kubectl("logs", "-n", NAMESPACE, "short").strip(), "the token", 60, every=0.1)

    def allowed() -> str:
        return node.kubectl("get", "pods", "-n", NAMESPACE, "-o", "name", *identity, check=False)

    address = node.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
    identity = ["--kubeconfig=/dev/null", "--insecure-skip-tls-verify", f"--server={address}", f"--token={token}"]
    assert "pod/short" in allowed()
    node.kubectl("delete", "pod", "-n", NAMESPACE, "short", "--wait=true")
    tools.wait_until(lambda: "Unauthorized" in allowed(), "the token is refused", 60, every=0.5)
