"""Deployments and pods for tests that kill, and whether they are as they should be."""

from __future__ import annotations

from typing import Any

from node import leaks
from node.cluster import Cluster, settle

APP = "trap 'exit 0' TERM; i=0; while :; do echo $i; i=$((i+1)); sleep 0.1; done"


def deployment(name: str, replicas: int, runtime_class: str = "") -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "main",
        "image": "busybox",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", APP],
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [container],
                    "volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory"}}],
                    **({"runtimeClassName": runtime_class} if runtime_class else {}),
                },
            },
        },
    }


def rollout(cluster: Cluster, name: str) -> None:
    cluster.kubectl("rollout", "status", f"deployment/{name}", "--timeout=110s")


def pods(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in cluster.get("pods")["items"]}


def container_ids(cluster: Cluster) -> dict[str, str]:
    """The id of each pod's first container; empty while it has none."""
    found = {name: each["status"].get("containerStatuses") or [{}] for name, each in pods(cluster).items()}
    return {name: statuses[0].get("containerID", "") for name, statuses in found.items()}


def all_ready(cluster: Cluster, number: int) -> str:
    """What is wrong: not so many pods, or one that is not ready."""
    found = pods(cluster)
    waiting = [
        name
        for name, each in found.items()
        if not any(c["type"] == "Ready" and c["status"] == "True" for c in each["status"].get("conditions", ()))
    ]
    return "" if len(found) == number and not waiting else f"{len(found)} pods, not ready: {waiting}"


def remove_all(cluster: Cluster) -> None:
    cluster.kubectl("delete", "deployments", "--all", "--timeout=110s")
    wrong = settle(lambda: list(pods(cluster)))
    assert not wrong, f"pods that do not end: {wrong}\n{cluster.log('node-1-kubelet')}"


def bare_pod(name: str, command: str, **spec: Any) -> dict[str, Any]:
    main = {
        "name": "main",
        "image": "busybox",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", command],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [main], **spec}}


def leaked(cluster: Cluster, before: leaks.Count, *, besides: str = "") -> dict[str, Any]:
    """What the node has more than before, but for one sort of things."""
    return {name: more for name, more in cluster.count().more_than(before).items() if name != besides}
