"""Probes, hooks and statistics of real pods, through kubectl."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from node.cluster import Cluster

import tools

IMAGE = "busybox"
TIMEOUT = 120.0
SERVE = "mkdir /www; echo ok > /www/ready; exec httpd -f -p 8080 -h /www"


@pytest.fixture(scope="module")
def namespace(node: Cluster) -> Iterator[str]:
    node.kubectl("create", "namespace", "health")
    yield "health"
    node.kubectl("delete", "namespace", "health", "--wait=false")


def pod(name: str, container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    defaults = {"name": "c", "image": IMAGE, "imagePullPolicy": "IfNotPresent"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "health"},
        "spec": {"terminationGracePeriodSeconds": 1, **spec, "containers": [{**defaults, **container}]},
    }


def shell(script: str, **more: Any) -> dict[str, Any]:
    return {"command": ["sh", "-c", script], **more}


def status(node: Cluster, name: str) -> Any:
    found = node.get("pod", name, "-n", "health")["status"]
    return {**found, "container": (found.get("containerStatuses") or [{}])[0]}


def until(node: Cluster, name: str, condition: Any, what: str) -> Any:
    def look() -> Any:
        found = status(node, name)
        return found if condition(found) else None

    return tools.wait_until(look, what, timeout=TIMEOUT)


def messages(node: Cluster, name: str, reason: str) -> list[str]:
    events = node.get("events", "-n", "health", "--field-selector", f"involvedObject.name={name},reason={reason}")
    return [each["message"] for each in events["items"]]


def is_ready(found: Any) -> bool:
    return bool(found["container"].get("ready"))


def test_readiness_by_http_follows_what_is_served(node: Cluster, namespace: str) -> None:
    probe = {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1, "failureThreshold": 1}
    node.apply(pod("ready", shell(SERVE, readinessProbe=probe)))
    until(node, "ready", is_ready, "the pod is ready")
    node.kubectl("exec", "-n", "health", "ready", "--", "mv", "/www/ready", "/www/not")
    found = until(node, "ready", lambda each: not is_ready(each), "the pod is not ready")
    assert found["container"]["restartCount"] == 0
    tools.wait_until(
        lambda: (
            "Readiness probe failed: HTTP probe failed with statuscode: 404" in messages(node, "ready", "Unhealthy")
        ),
        "an event says why",
        timeout=TIMEOUT,
    )


def test_liveness_restarts_by_exec_with_events(node: Cluster, namespace: str) -> None:
    probe = {"exec": {"command": ["cat", "/tmp/alive"]}, "periodSeconds": 1, "failureThreshold": 1}
    script = "touch /tmp/alive; sleep 2; rm /tmp/alive; exec sleep 600"
    node.apply(pod("alive", shell(script, livenessProbe={**probe, "terminationGracePeriodSeconds": 1})))
    found = until(node, "alive", lambda each: each["container"].get("restartCount", 0) >= 1, "it is restarted")
    assert found["container"]["lastState"]["terminated"]["exitCode"] == 137
    for reason, words in (
        ("Killing", "Container c failed liveness probe, will be restarted"),
        ("Unhealthy", "Liveness probe failed: cat: can't open '/tmp/alive': No such file or directory\n"),
    ):
        told = lambda reason=reason, words=words: words in messages(node, "alive", reason)  # noqa: E731
        tools.wait_until(told, f"an event {reason}", timeout=TIMEOUT)


def test_startup_by_tcp_holds_back_the_others(node: Cluster, namespace: str) -> None:
    script = "mkdir /www; until [ -e /tmp/go ]; do sleep 0.1; done; exec httpd -f -p 7000 -h /www"
    container = shell(
        script,
        startupProbe={"tcpSocket": {"port": 7000}, "periodSeconds": 1, "failureThreshold": 100},
        readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 60},
        livenessProbe={"tcpSocket": {"port": 7000}, "periodSeconds": 1, "failureThreshold": 1},
    )
    node.apply(pod("startup", container))
    first = until(node, "startup", lambda each: "running" in each["container"].get("state", {}), "it runs")
    assert (first["container"]["started"], first["container"]["ready"]) == (False, False)
    node.kubectl("exec", "-n", "health", "startup", "--", "touch", "/tmp/go")
    found = until(node, "startup", is_ready, "ready at once after it has started")
    assert (found["container"]["started"], found["container"]["restartCount"]) == (True, 0)


def test_hooks_run_before_and_after(node: Cluster, namespace: str) -> None:
    hooks = {
        "postStart": {"exec": {"command": ["sh", "-c", "echo started > /data/log"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "echo stopping >> /data/log"]}},
    }
    volume = {"name": "data", "hostPath": {"path": "/run/hooks", "type": "DirectoryOrCreate"}}  # of this node alone
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    node.apply(pod("hooks", shell("exec sleep 600", lifecycle=hooks, **mount), volumes=[volume]))
    until(node, "hooks", is_ready, "it runs")
    assert node.inside("cat", "/run/hooks/log") == "started\n"
    node.kubectl("delete", "pod", "-n", "health", "hooks")
    assert node.inside("cat", "/run/hooks/log") == "started\nstopping\n"


def test_a_failing_post_start_hook_kills_the_container(node: Cluster, namespace: str) -> None:
    hooks = {"postStart": {"exec": {"command": ["sh", "-c", "echo no; exit 7"]}}}
    node.apply(pod("failing", shell("exec sleep 600", lifecycle=hooks)))
    tools.wait_until(
        lambda: messages(node, "failing", "FailedPostStartHook"), "an event tells of the hook", timeout=TIMEOUT
    )
    # No more than that, as upstream: a user who may read events must not see the output of hooks.
    assert messages(node, "failing", "FailedPostStartHook")[0] == "PostStartHook failed"
    assert not is_ready(status(node, "failing"))


def test_top_and_the_kubelets_figures(node: Cluster, namespace: str) -> None:
    limits = {"limits": {"cpu": "200m", "memory": "32Mi"}}
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    node.apply(pod("busy", shell("while :; do :; done", resources=limits, readinessProbe=probe)))
    until(node, "busy", is_ready, "it runs")

    def top() -> list[str] | None:
        shown = node.kubectl("top", "pods", "-n", "health", check=False)
        return next((line.split() for line in shown.splitlines() if line.startswith("busy ")), None)

    row = tools.wait_until(top, "kubectl top shows the pod", timeout=TIMEOUT)
    assert 20 <= int(row[1].removesuffix("m")) <= 300, row
    assert row[2].endswith("Mi")
    lines = node.kubectl("top", "nodes").splitlines()
    assert lines[1].startswith("node-1 ")
    proxy = "/api/v1/nodes/node-1/proxy"
    summary = json.loads(node.kubectl("get", "--raw", f"{proxy}/stats/summary"))
    (found,) = [each for each in summary["pods"] if each["podRef"]["name"] == "busy"]
    assert found["containers"][0]["memory"]["workingSetBytes"] > 0
    assert found["network"]["name"] == "eth0"
    assert summary["node"]["fs"]["capacityBytes"] > 0
    resource = node.kubectl("get", "--raw", f"{proxy}/metrics/resource")
    assert 'container_cpu_usage_seconds_total{container="c",namespace="health",pod="busy"}' in resource
    assert "container_memory_rss{" in node.kubectl("get", "--raw", f"{proxy}/metrics/cadvisor")
    own = node.kubectl("get", "--raw", f"{proxy}/metrics")
    assert "kubelet_running_pods " in own
    families = [line.split()[2] for line in own.splitlines() if line.startswith("# TYPE")]
    assert [each for each, count in Counter(families).items() if count > 1] == []
    assert "prober_probe_total{" in node.kubectl("get", "--raw", f"{proxy}/metrics/probes")
