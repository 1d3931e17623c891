"""A node without a network configuration: NotReady with upstream's reason, while pods on the node's network run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from node.cluster import Cluster

import tools

NAMESPACE = "network-ready"
PROBLEM = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized"
)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "600"],
    }
    everywhere = [{"operator": "Exists"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [container], "tolerations": everywhere, "terminationGracePeriodSeconds": 1, **spec},
    }


def ready(node: Cluster) -> dict[str, str]:
    conditions = node.get("node", "node-1")["status"]["conditions"]
    found: dict[str, str] = next(each for each in conditions if each["type"] == "Ready")
    return found


@pytest.fixture
def no_network(node: Cluster) -> Iterator[None]:
    """Takes the network's configuration away and gives it back."""
    node.kubectl("create", "namespace", NAMESPACE)
    node.inside("sh", "-c", "mkdir /run/kept && mv /etc/cni/net.d/* /run/kept/")
    try:
        yield
    finally:
        node.inside("sh", "-c", "mv /run/kept/* /etc/cni/net.d/ && rmdir /run/kept", check=False)
        node.wait_ready()
        node.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def test_pods_wait_for_the_network_unless_they_use_the_nodes(node: Cluster, no_network: None) -> None:
    tools.wait_until(lambda: ready(node)["status"] == "False", "the node is not Ready", 90, every=0.2)
    condition = ready(node)
    assert condition["reason"] == "KubeletNotReady"
    assert condition["message"] == PROBLEM
    taints = tools.wait_until(lambda: node.get("node", "node-1")["spec"].get("taints"), "taints", 90, every=0.2)
    assert {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}.items() <= taints[0].items()

    node.apply(pod("on-host", hostNetwork=True), pod("waiting"))
    node.kubectl("wait", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=60s", "pod/on-host")

    def told() -> str | None:
        events = node.get("events", "-n", NAMESPACE, "--field-selector=reason=NetworkNotReady")["items"]
        return events[0]["message"] if events else None

    assert tools.wait_until(told, "an event", 90, every=0.2) == f"network is not ready: {PROBLEM}"
    assert node.get("pod", "-n", NAMESPACE, "waiting")["status"]["phase"] == "Pending"

    node.inside("sh", "-c", "mv /run/kept/* /etc/cni/net.d/")
    node.wait_ready()
    node.kubectl("wait", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=120s", "pod/waiting")
    tools.wait_until(lambda: not node.get("node", "node-1")["spec"].get("taints"), "no taints", 90, every=0.2)
