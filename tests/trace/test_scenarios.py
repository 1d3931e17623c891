"""What happens in a whole cluster is one tree each: from the request, or from the node that fell silent, to the end.

A span is an orphan if it names an unknown cause, or if it changed something for no known cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pybernetes.testing.cluster import Cluster
from pybernetes.testing.state import spans
from pybernetes.trace.span import Span
from pybernetes.trace.tree import Node, Spans

BEHAVIOUR = "simulated.pybernetes.io"
ALIVE = ("update nodes/status", "patch nodes/status")
"""Nodes report by themselves that they are well."""
Wanted = tuple[str, ...]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3) as cluster:
        yield cluster


class Watched:
    """A cluster, and the spans of what is done to it from now on."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.client = cluster, cluster.client
        cluster.settle()
        self._before = {(each.trace, each.id) for each in spans(self.client)}

    def trees(self) -> list[Node]:
        """All that began since; nothing in them is an orphan."""
        everything = spans(self.client)
        new = [each for each in everything if (each.trace, each.id) not in self._before]
        known = Spans(everything)
        assert not [each for each in new if is_orphan(known, each)]
        own = {(each.trace, each.id) for each in new}
        trees = known.trees(lambda span: (span.trace, span.id) in own)
        return [each for each in trees if not (each.span.name in ALIVE and not each.children)]

    def only(self) -> Node:
        """The one tree that began since."""
        trees = self.trees()
        assert len(trees) == 1, [f"{each.span.service}: {each.span.name}" for each in trees]
        return trees[0]


def is_orphan(known: Spans, span: Span) -> bool:
    return bool((span.parent or span.causes or span.links) and not known.causes(span))


def assert_path(tree: Node, *wanted: str) -> None:
    """Each of these pieces of work, `component: name`, has led to the next one, with others between them."""
    effects: dict[int, list[Node]] = {id(node): list(node.children) for node in tree.walk()}
    for node in tree.walk():
        for cause in node.links:
            effects.setdefault(id(cause), []).append(node)
    reached = list(tree.walk())
    for number, each in enumerate(wanted):
        found = [node for node in reached if f"{node.span.service}: {node.span.name}" == each]
        assert found, f"no {each!r} in its place: {wanted[: number + 1]}"
        below: dict[int, Node] = {}
        waiting = [effect for node in found for effect in effects[id(node)]]
        while waiting:
            node = waiting.pop()
            if id(node) not in below:
                below[id(node)] = node
                waiting += effects[id(node)]
        reached = list(below.values())


@pytest.fixture
def watched(cluster: Cluster) -> Watched:
    return Watched(cluster)


def pods(**spec: Any) -> dict[str, Any]:
    annotations = spec.pop("annotations", {})
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "nginx"}], **spec},
    }


def deployment(name: str, replicas: int, **spec: Any) -> dict[str, Any]:
    wanted = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": pods(**spec)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": wanted}


REACHES_A_NODE = (
    "apiserver: create pods",
    "kube-scheduler: schedule",
    "kube-scheduler: bind",
    "apiserver: create pods/binding",
    "simulated-nodes: report status",
    "apiserver: patch pods/status",
)


def test_a_deployment_is_created_scaled_and_rolled_out(watched: Watched) -> None:
    client, cluster = watched.client, watched.cluster
    client.create(deployment("web", 2))
    cluster.clock.advance(10)
    first = watched.only()
    sets = ("deployment-controller: reconcile deployment", "apiserver: create replicasets")
    assert_path(first, "apiserver: create deployments", *sets, *REACHES_A_NODE)
    assert_path(first, "apiserver: create deployments", sets[0], "apiserver: update deployments/status")

    watched = Watched(cluster)
    client.patch("deployments", "web", {"spec": {"replicas": 4}})
    cluster.clock.advance(10)
    assert_path(watched.only(), "apiserver: patch deployments", "apiserver: update replicasets", *REACHES_A_NODE)

    watched = Watched(cluster)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}}}
    client.patch("deployments", "web", image)
    cluster.clock.advance(60)
    rollout = watched.only()
    assert_path(rollout, "apiserver: patch deployments", *sets, *REACHES_A_NODE, "apiserver: delete pods")


def test_a_lost_node_is_one_tree_to_the_pods_that_replace_its_own(watched: Watched) -> None:
    client, cluster = watched.client, watched.cluster
    client.create(deployment("moved", 1, tolerations=TOLERATIONS))
    cluster.clock.advance(10)
    (pod,) = client.list("pods", labels="app=web")
    watched = Watched(cluster)
    silent = {"metadata": {"annotations": {f"{BEHAVIOUR}/silent": "true"}}}
    client.patch("nodes", pod["spec"]["nodeName"], silent)
    cluster.clock.advance(120)
    trees = [each for each in watched.trees() if each.span.name != "patch nodes" or each.children]
    (lost,) = trees
    assert_path(
        lost,
        "node-lifecycle-controller: monitor node",
        "node-lifecycle-controller: taint node",
        "apiserver: patch nodes",
        "taint-eviction-controller: reconcile taint_eviction_pods",
        "apiserver: delete pods",
        "replicaset-controller: reconcile replicaset",
        *REACHES_A_NODE,
    )


TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    for key in ("unreachable", "not-ready")
]


def test_an_autoscaler_scales(watched: Watched) -> None:
    client, cluster = watched.client, watched.cluster
    client.create(deployment("scaled", 1))
    cluster.clock.advance(10)
    watched = Watched(cluster)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"}
    usage = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    spec = {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 5, "metrics": [usage]}
    client.create(
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "s"}, "spec": spec}
    )
    cluster.clock.advance(20)
    assert_path(
        watched.only(),
        "apiserver: create horizontalpodautoscalers",
        "horizontal-pod-autoscaler-controller: reconcile horizontalpodautoscaler",
        "apiserver: update deployments/scale",
        "deployment-controller: reconcile deployment",
        "apiserver: update replicasets",
        *REACHES_A_NODE,
    )


def test_a_cron_job_runs(watched: Watched) -> None:
    client, cluster = watched.client, watched.cluster
    job = {"spec": {"template": pods(restartPolicy="Never")}}
    spec = {"schedule": "*/5 * * * *", "jobTemplate": job}
    client.create({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec})
    cluster.clock.advance(320)
    jobs = ("cronjob-controller: reconcile cronjob", "apiserver: create jobs", "job-controller: reconcile job")
    tree = watched.only()
    assert_path(tree, "apiserver: create cronjobs", *jobs, *REACHES_A_NODE[:-1])
    assert_path(tree, *jobs[:2], "apiserver: update cronjobs/status")


def test_a_job_fails(watched: Watched) -> None:
    client, cluster = watched.client, watched.cluster
    failing = {f"{BEHAVIOUR}/run-for": "1s", f"{BEHAVIOUR}/exit-code": "1"}
    spec = {"backoffLimit": 1, "template": pods(restartPolicy="Never", annotations=failing)}
    client.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "bad"}, "spec": spec})
    cluster.clock.advance(60)
    assert client.get("jobs", "bad")["status"]["failed"] == 2
    reconcile = "job-controller: reconcile job"
    tries = (reconcile, *REACHES_A_NODE)
    assert_path(watched.only(), "apiserver: create jobs", *tries, *tries, reconcile, "apiserver: update jobs/status")


def test_a_claim_is_bound(watched: Watched) -> None:
    client, cluster = watched.client, watched.cluster
    amount, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
    volume = {"capacity": amount, "accessModes": modes, "hostPath": {"path": "/tmp"}, "storageClassName": "none"}
    client.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": volume})
    cluster.clock.advance(5)
    watched = Watched(cluster)
    claim = {"accessModes": modes, "resources": {"requests": amount}, "storageClassName": "none"}
    client.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim})
    cluster.clock.advance(20)
    assert client.get("persistentvolumeclaims", "data")["status"]["phase"] == "Bound"
    tree = watched.only()
    assert_path(tree, "apiserver: create persistentvolumeclaims", "apiserver: update persistentvolumes")
    assert_path(tree, "apiserver: create persistentvolumeclaims", "apiserver: update persistentvolumeclaims/status")


def test_a_pod_of_a_higher_priority_takes_the_place_of_another(watched: Watched) -> None:
    client, cluster = watched.client, watched.cluster
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    client.create(high)
    (node, *_) = client.list("nodes")
    cpus = {"requests": {"cpu": node["status"]["allocatable"]["cpu"]}}

    def pod(name: str, **spec: Any) -> dict[str, Any]:
        on = {"kubernetes.io/hostname": node["metadata"]["name"]}
        containers = [{"name": "main", "image": "nginx", "resources": cpus}]
        wanted = {"containers": containers, "nodeSelector": on, "terminationGracePeriodSeconds": 0, **spec}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": wanted}

    client.create(pod("low"))
    cluster.clock.advance(5)
    watched = Watched(cluster)
    client.create(pod("first", priorityClassName="high"))
    cluster.clock.advance(30)
    client.wait_for("pods", "first", "Ready")
    tree = watched.only()
    assert_path(tree, "apiserver: create pods", "kube-scheduler: schedule", "apiserver: delete pods")
    assert_path(tree, *REACHES_A_NODE)


def test_a_webhook_that_does_not_answer_is_in_the_request(watched: Watched) -> None:
    client, cluster = watched.client, watched.cluster
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    hook = {
        "name": "ask.example.org",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
    }
    kind = "MutatingWebhookConfiguration"
    made = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "ask"}}
    client.create({**made, "webhooks": [hook]})
    cluster.clock.advance(5)
    watched = Watched(cluster)
    client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "asked"}})
    cluster.settle()
    tree = watched.only()
    assert_path(tree, "apiserver: create configmaps", "apiserver: webhook ask.example.org")
