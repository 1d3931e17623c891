"""Names on a node with real pods: what a program in a pod resolves, and where it then gets to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from node.cluster import Cluster
from node.pods import Namespace, container
from node.test_services import service, web

import tools


@pytest.fixture(scope="module")
def space(node: Cluster) -> Iterator[Namespace]:
    """A web server behind a Service and behind a headless one, and a client."""
    made = Namespace(node, "names")
    tools.wait_until(
        lambda: made.kubectl("get", "serviceaccount", "default", check=False).startswith("NAME"), "an account", 60.0
    )
    named = web("zero")
    named["spec"] |= {"hostname": "zero", "subdomain": "peers"}
    made.apply(named, web("client", app="client"))
    made.apply(service("web"), service("peers", clusterIP="None"))
    external = {"type": "ExternalName", "externalName": "web.names.svc.cluster.local"}
    made.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "alias"}, "spec": external})
    made.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=110s")
    yield made
    node.kubectl("delete", "namespace", "names", "--wait=false")


def run(space: Namespace, *command: str, pod: str = "client") -> str:
    return space.kubectl("exec", pod, "--", "timeout", "10", *command, check=False).strip()


def pod_ip(space: Namespace, name: str) -> str:
    return space.kubectl("get", "pod", name, "-o", "jsonpath={.status.podIP}")


def test_the_resolver_of_a_pod_is_the_cluster_s(space: Namespace) -> None:
    assert run(space, "cat", "/etc/resolv.conf").splitlines()[:2] == [
        "search names.svc.cluster.local svc.cluster.local cluster.local",
        "nameserver 10.96.0.10",
    ]


@pytest.mark.parametrize("name", ["web", "web.names", "web.names.svc", "web.names.svc.cluster.local", "alias"])
def test_a_service_is_reached_by_its_name(space: Namespace, name: str) -> None:
    tools.wait_until(lambda: run(space, "wget", "-qO-", f"http://{name}/") == "zero", f"{name} answers")


def test_a_headless_service_has_the_addresses_of_its_pods(space: Namespace) -> None:
    address = pod_ip(space, "zero")
    for name in ("peers.names.svc.cluster.local", "zero.peers.names.svc.cluster.local"):
        tools.wait_until(lambda name=name: address in run(space, "nslookup", name), f"{name} is {address}")


def test_names_of_the_api_server_and_of_nothing(space: Namespace) -> None:
    assert "10.96.0.1" in run(space, "nslookup", "kubernetes.default.svc.cluster.local")
    assert "NXDOMAIN" in run(space, "nslookup", "nothing.names.svc.cluster.local")


def test_a_pod_on_the_node_s_network_resolves_names_too(space: Namespace) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "outside"},
        "spec": {
            "hostNetwork": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "containers": [container("trap 'exit 0' TERM; sleep 1000 & wait")],
            "terminationGracePeriodSeconds": 1,
        },
    }
    space.apply(pod)
    space.kubectl("wait", "pod/outside", "--for=condition=Ready", "--timeout=110s")
    tools.wait_until(lambda: run(space, "wget", "-qO-", "http://web/", pod="outside") == "zero", "the name resolves")
