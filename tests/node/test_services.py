"""Services on a node with real pods: what answers is checked by its body."""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from node.cluster import Cluster
from node.pods import Namespace, container

import tools
from pybernetes.cluster.node import inside

WEB = "hostname > /tmp/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp & wait"


@pytest.fixture(scope="module")
def space(node: Cluster) -> Iterator[Namespace]:
    """Two web servers behind a Service, and a client."""
    made = Namespace(node, "services")
    tools.wait_until(
        lambda: made.kubectl("get", "serviceaccount", "default", check=False).startswith("NAME"), "an account", 60.0
    )
    made.apply(*(web(name) for name in ("web-1", "web-2")), web("client", app="client"))
    made.apply(service("web", type="NodePort"), service("nobody", {"app": "nobody"}))
    made.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=110s")
    yield made
    node.kubectl("delete", "namespace", "services", "--wait=false")


def web(name: str, app: str = "web") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [container(WEB)], "terminationGracePeriodSeconds": 1},
    }


def service(name: str, selector: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    ports = [{"port": 80, "targetPort": 8080}]
    spec = {"selector": selector or {"app": "web"}, "ports": ports, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def address(space: Namespace, name: str = "web") -> str:
    return space.kubectl("get", "service", name, "-o", "jsonpath={.spec.clusterIP}")


def fetch(space: Namespace, url: str, pod: str = "client") -> str:
    return space.kubectl("exec", pod, "--", "timeout", "5", "wget", "-qO-", url, check=False).strip()


def reaches(space: Namespace, url: str, want: set[str], pod: str = "client") -> None:
    """Waits until a URL is answered by all of these."""
    found: set[str] = set()

    def all_of_them() -> bool:
        found.add(fetch(space, url, pod))
        return want <= found

    tools.wait_until(all_of_them, f"{url} is answered by {want}: {found}", 60.0)


def test_a_cluster_ip_leads_to_every_pod_behind_it(space: Namespace) -> None:
    reaches(space, f"http://{address(space)}/", {"web-1", "web-2"})


def test_a_pod_reaches_itself_through_its_service(space: Namespace) -> None:
    reaches(space, f"http://{address(space)}/", {"web-1", "web-2"}, pod="web-1")


def test_a_service_without_endpoints_refuses(space: Namespace) -> None:
    said = fetch(space, f"http://{address(space, 'nobody')}/")
    assert "Connection refused" in said


def test_a_node_port_is_reached_from_outside_the_node(node: Cluster, space: Namespace) -> None:
    port = space.kubectl("get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}")
    url = f"http://{node.machine().address}:{port}/"

    def answer() -> str:
        with urllib.request.urlopen(url, timeout=10) as got:
            return str(got.read().decode()).strip()

    tools.wait_until(lambda: answer() == "web-1", "one pod answers")
    tools.wait_until(lambda: answer() == "web-2", "the other pod answers")


def test_a_service_works_while_and_after_its_proxy_is_killed(node: Cluster, space: Namespace) -> None:
    url = f"http://{address(space)}/"
    reaches(space, url, {"web-1"})
    before = node.find("node-network")
    assert before is not None
    os.kill(before, signal.SIGKILL)
    assert fetch(space, url) in ("web-1", "web-2")
    tools.wait_until(lambda: node.find("node-network") not in (None, before), "another process", 60.0)
    space.apply(service("later"))
    reaches(space, f"http://{address(space, 'later')}/", {"web-1", "web-2"})


def test_rules_that_are_removed_on_the_node_come_back(node: Cluster, space: Namespace) -> None:
    url = f"http://{address(space)}/"
    reaches(space, url, {"web-1"})
    node.inside("nft", "delete", "table", "ip", "kube-proxy")
    reaches(space, url, {"web-1", "web-2"})


def test_the_process_reports_health_and_metrics_on_the_node(node: Cluster, space: Namespace) -> None:
    assert inside.programs(node.init())["node-network"]
    assert '"nodeEligible": true' in node.inside("busybox", "wget", "-qO-", "http://127.0.0.1:10256/healthz")
    metrics = node.inside("busybox", "wget", "-qO-", "http://127.0.0.1:10249/metrics")
    assert "kubeproxy_sync_proxy_rules_last_timestamp_seconds" in metrics


def test_the_service_kubernetes_is_reached_from_the_node_itself(node: Cluster) -> None:
    script = (
        "import ssl, urllib.request\n"
        "answer = urllib.request.urlopen('https://10.96.0.1/version', context=ssl._create_unverified_context())\n"
        "print(answer.read().decode())"
    )
    assert '"gitVersion"' in node.inside(sys.executable, "-c", script)


def test_a_pod_finds_a_service_by_its_name(space: Namespace) -> None:
    reaches(space, "http://web/", {"web-1", "web-2"})
    reaches(space, "http://web.services/", {"web-1"})
    reaches(space, "http://web.services.svc.cluster.local/", {"web-2"})


def test_names_are_served_on_the_node_that_asks(node: Cluster, space: Namespace) -> None:
    assert "nameserver 10.96.0.10\n" in space.exec("client", "cat /etc/resolv.conf")
    answer = space.exec("client", "timeout 10 nslookup web.services.svc.cluster.local")
    assert f"Address: {address(space)}\n" in answer
    assert node.kubectl("get", "service", "-n", "kube-system", "kube-dns").count("10.96.0.10") == 1
    assert "10.96.0.10/32" in node.inside("ip", "-br", "address", "show", "lo")


def test_a_configuration_of_dns_is_taken_up(node: Cluster, space: Namespace) -> None:
    corefile = ".:53 {\n kubernetes cluster.local in-addr.arpa\n hosts {\n  192.0.2.7 printer.example\n }\n}\n"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns"}, "data": {"Corefile": corefile}}
    node.kubectl("create", "-n", "kube-system", "-f", "-", stdin=json.dumps(body))

    def known() -> bool:
        return "192.0.2.7" in space.kubectl(
            "exec", "client", "--", "timeout", "5", "nslookup", "printer.example", check=False
        )

    tools.wait_until(known, "the name is known", 90.0)
    node.kubectl("delete", "-n", "kube-system", "configmap", "coredns")
