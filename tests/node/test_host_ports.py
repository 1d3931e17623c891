"""hostPort on a real node: from outside, from the node, from other pods and from the pod itself."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from node import host_programs
from node.cluster import Cluster

import tools

NAMESPACE = "host-ports"
SERVE = "mkdir /www; echo $HOSTNAME > /www/index.html; exec httpd -f -p 80 -h /www"
PONG = """
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", 53))
while True:
    server.sendto(b"pong", server.recvfrom(100)[1])
"""


@pytest.fixture(scope="module", autouse=True)
def namespace(node: Cluster) -> Iterator[None]:
    node.kubectl("create", "namespace", NAMESPACE)
    yield
    node.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def pod(name: str, script: str, *ports: dict[str, Any], **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "ports": list(ports),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }


def wait_ready(node: Cluster, *names: str) -> None:
    node.kubectl("wait", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=110s", *(f"pod/{name}" for name in names))


def node_address(node: Cluster) -> str:
    addresses = node.get("node", "node-1")["status"]["addresses"]
    return str(next(each["address"] for each in addresses if each["type"] == "InternalIP"))


def fetch(url: str, via: list[str] | None = None) -> str:
    """What a server says, asked from here or by a command that runs another."""
    command = [*(via or []), "busybox", "wget", "-qO-", url]
    done = subprocess.run(["timeout", "10", *command], capture_output=True, text=True, check=False)
    return done.stdout.strip() or f"error: {done.stderr.strip()}"


def fetched(url: str, expected: str, via: list[str] | None = None) -> None:
    """Waits for an answer: a server listens a moment after its container runs."""
    answers: list[str] = []

    def right() -> bool:
        answers.append(fetch(url, via))
        return answers[-1] == expected

    tools.wait_until(right, f"{url} says {expected}: {answers}", 90, every=0.2)


def from_pod(node: Cluster, name: str) -> list[str]:
    kubeconfig = f"--kubeconfig={node.environment['KUBECONFIG']}"
    return [tools.kubectl(), kubeconfig, "exec", "-n", NAMESPACE, name, "--"]


def test_a_port_of_the_node_leads_to_the_pod_from_everywhere(node: Cluster) -> None:
    address = node_address(node)
    mapped = [
        {"containerPort": 80, "hostPort": 18080},
        {"containerPort": 80, "hostPort": 18081, "hostIP": "127.0.0.1"},
    ]
    node.apply(pod("web", SERVE, *mapped), pod("client", "exec sleep 600"))
    wait_ready(node, "web", "client")
    inside = node.enter([])
    fetched(f"http://{address}:18080/", "web")
    fetched(f"http://{address}:18080/", "web", inside)
    fetched("http://127.0.0.1:18080/", "web", inside)
    fetched("http://127.0.0.1:18081/", "web", inside)
    fetched(f"http://{address}:18080/", "web", from_pod(node, "client"))
    fetched(f"http://{address}:18080/", "web", from_pod(node, "web"))
    assert fetch(f"http://{address}:18081/").startswith("error: ")  # that one is for 127.0.0.1
    node.kubectl("delete", "pod", "-n", NAMESPACE, "web", "--wait=true")
    assert fetch(f"http://{address}:18080/").startswith("error: ")
    tools.wait_until(lambda: "18080" not in node.inside("iptables-save", "-t", "nat"), "the rules are gone")


def test_the_port_is_taken_until_its_pod_is_gone(node: Cluster) -> None:
    address = node_address(node)
    port = {"containerPort": 80, "hostPort": 18090}
    node.apply(pod("first", SERVE, port))
    wait_ready(node, "first")
    fetched(f"http://{address}:18090/", "first")
    node.apply(pod("second", SERVE, port))

    def refusal() -> str:
        conditions = node.get("pod", "-n", NAMESPACE, "second")["status"].get("conditions", [])
        return next((each["message"] for each in conditions if each["type"] == "PodScheduled"), "")

    tools.wait_until(lambda: "didn't have free ports for the requested pod ports" in refusal(), "second is refused", 90)
    node.kubectl("delete", "pod", "-n", NAMESPACE, "first", "--wait=true")
    wait_ready(node, "second")
    fetched(f"http://{address}:18090/", "second")


def test_the_same_number_with_another_protocol_is_another_port(node: Cluster) -> None:
    address = node_address(node)
    udp = pod("udp", f"exec {sys.executable} -c '{PONG}'", {"containerPort": 53, "hostPort": 18095, "protocol": "UDP"})
    node.apply(
        host_programs.give(udp, host_programs.python()), pod("tcp", SERVE, {"containerPort": 80, "hostPort": 18095})
    )
    wait_ready(node, "udp", "tcp")
    fetched(f"http://{address}:18095/", "tcp")

    def pong() -> bool:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(1)
            client.connect((address, 18095))
            try:
                client.send(b"ping")
                return client.recv(100) == b"pong"
            except OSError:
                return False

    tools.wait_until(pong, "the UDP port answers", 90)


def test_a_pod_on_the_nodes_network_listens_there_itself(node: Cluster) -> None:
    script = "mkdir /www; echo of the node > /www/index.html; exec httpd -f -p 18099 -h /www"
    port = {"containerPort": 18099}
    node.apply(pod("host", script, port, hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet"))
    wait_ready(node, "host")
    address = node_address(node)
    status = node.get("pod", "-n", NAMESPACE, "host")
    assert status["status"]["podIP"] == status["status"]["hostIP"] == address
    assert status["spec"]["containers"][0]["ports"][0]["hostPort"] == 18099
    fetched(f"http://{address}:18099/", "of the node")
    assert "18099" not in node.inside("iptables-save", "-t", "nat")


def test_a_port_outlives_its_runtime_and_comes_back_with_its_node(own_node: Cluster) -> None:
    own_node.kubectl("create", "namespace", NAMESPACE)
    own_node.apply(pod("web", SERVE, {"containerPort": 80, "hostPort": 18080}))
    wait_ready(own_node, "web")
    address = node_address(own_node)
    fetched(f"http://{address}:18080/", "web")
    for victim in ("kubelet", "runtime"):
        own_node.kill(victim)
        assert fetch(f"http://{address}:18080/") == "web"
    own_node.wait_ready()
    own_node.kill("node")
    own_node.wait_ready()
    fetched(f"http://{address}:18080/", "web")
    own_node.kubectl("delete", "pod", "-n", NAMESPACE, "web", "--wait=true")
    tools.wait_until(lambda: "CNI-DN-" not in own_node.inside("iptables-save", "-t", "nat"), "the rules are gone")
