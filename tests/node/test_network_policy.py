"""NetworkPolicies on a node with real pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from node.cluster import Cluster
from node.pods import Namespace, container

import tools
from pybernetes.network.policy.cluster_policies import definition

WEB = "hostname > /tmp/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp & wait"
DENY = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
DNS = {"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}]}


@pytest.fixture(scope="module")
def space(node: Cluster) -> Iterator[Namespace]:
    """A server that is probed, behind a Service, and two clients."""
    made = Namespace(node, "policies")
    tools.wait_until(
        lambda: made.kubectl("get", "serviceaccount", "default", check=False).startswith("NAME"), "an account", 60.0
    )
    service = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}
    made.apply(
        *(pod(name) for name in ("web", "friend", "stranger")),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service},
    )
    made.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=110s")
    yield made
    node.kubectl("delete", "namespace", "policies", "--wait=false")


def pod(name: str) -> dict[str, Any]:
    probe = {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1}
    server = {**container(WEB), "readinessProbe": probe, "ports": [{"name": "http", "containerPort": 8080}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [server], "terminationGracePeriodSeconds": 1},
    }


def policy(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name}, "spec": spec}


def fetch(space: Namespace, client: str) -> str:
    url = "http://web.policies/"
    return space.kubectl("exec", client, "--", "timeout", "3", "wget", "-qO-", url, check=False).strip()


def becomes(space: Namespace, client: str, reached: bool) -> None:
    what = f"{client} {'reaches' if reached else 'no longer reaches'} web"
    tools.wait_until(lambda: (fetch(space, client) == "web") == reached, what)


def test_policies_take_effect_change_and_go(node: Cluster, space: Namespace) -> None:
    becomes(space, "friend", True)
    becomes(space, "stranger", True)
    space.apply(policy("deny", **DENY))
    becomes(space, "friend", False)
    allowed = {"podSelector": {"matchLabels": {"app": "friend"}}}
    space.apply(
        policy(
            "in",
            podSelector={"matchLabels": {"app": "web"}},
            ingress=[{"from": [allowed], "ports": [{"port": "http"}]}],
        ),
        policy(
            "out",
            podSelector=allowed["podSelector"],
            egress=[DNS, {"to": [{"podSelector": {"matchLabels": {"app": "web"}}}]}],
            policyTypes=["Egress"],
        ),
    )
    becomes(space, "friend", True)
    assert fetch(space, "stranger") != "web"
    space.kubectl("delete", "networkpolicy", "in")
    becomes(space, "friend", False)
    shown = json.loads(space.kubectl("get", "pods", "-o", "json"))["items"]
    ready = {c["status"] for each in shown for c in each["status"]["conditions"] if c["type"] == "Ready"}
    assert ready == {"True"}, "the kubelet's probes pass all policies"
    space.kubectl("delete", "networkpolicy", "--all")
    becomes(space, "friend", True)
    becomes(space, "stranger", True)
    tools.wait_until(lambda: "network-policy" not in node.inside("nft", "list", "tables"), "no policy, no tables")
    space.apply(policy("deny", **DENY))
    becomes(space, "friend", False)
    space.kubectl("delete", "networkpolicy", "--all")


def test_cluster_policies_take_effect_where_their_definition_is(node: Cluster, space: Namespace) -> None:
    becomes(space, "stranger", True)
    try:
        node.kubectl("apply", "-f", "-", stdin=definition())
        node.kubectl("wait", "--for=condition=Established", "crd", "clusternetworkpolicies.policy.networking.k8s.io")
        of_space = {"matchLabels": {"kubernetes.io/metadata.name": "policies"}}
        stranger = {"namespaceSelector": of_space, "podSelector": {"matchLabels": {"app": "stranger"}}}
        rule = {"name": "no strangers", "action": "Deny", "from": [{"pods": stranger}]}
        spec = {"tier": "Admin", "priority": 10, "subject": {"namespaces": of_space}, "ingress": [rule]}
        kind = {"apiVersion": "policy.networking.k8s.io/v1alpha2", "kind": "ClusterNetworkPolicy"}
        node.apply({**kind, "metadata": {"name": "strangers"}, "spec": spec})
        becomes(space, "stranger", False)
        assert fetch(space, "friend") == "web"
        found = node.pyb("why", "connection", "stranger", "service/web", "-n", "policies")
        assert "ClusterNetworkPolicy strangers (Admin) denies it" in found
        bad = {**spec, "ingress": [{**rule, "action": "Allow"}]}
        refused = json.dumps({**kind, "metadata": {"name": "bad"}, "spec": bad})
        assert "Unsupported value" in node.kubectl("apply", "-f", "-", stdin=refused, check=False)
    finally:
        node.kubectl("delete", "crd", "clusternetworkpolicies.policy.networking.k8s.io", "--ignore-not-found")
    becomes(space, "stranger", True)
