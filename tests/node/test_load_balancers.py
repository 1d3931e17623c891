"""Services of type LoadBalancer on a plain `up`: the host reaches them at addresses of the nodes' link."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node.cluster import Cluster
from node.pods import container
from node.runtimes import only

import tools

pytestmark = only("embedded")
WHO = (
    "mkdir -p /tmp/cgi-bin; printf '#!/bin/sh\\necho; echo $REMOTE_ADDR $(hostname)\\n' > /tmp/cgi-bin/who; "
    "chmod +x /tmp/cgi-bin/who; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp & wait"
)


@pytest.fixture(scope="module")
def pair(runtime_name: str) -> Iterator[Cluster]:
    """Two nodes of both IP versions with a web server on each, which says who asks it."""
    with (
        tempfile.TemporaryDirectory(prefix="pyb-") as folder,
        Cluster(Path(folder), f"l{os.getpid()}", "--ip-family=dual", runtime=runtime_name, nodes=2) as cluster,
    ):
        tools.wait_until(
            lambda: cluster.kubectl("get", "serviceaccount", "default", check=False).startswith("NAME"),
            "an account",
            60,
        )
        cluster.apply(web("one", "node-1"), web("two", "node-2"))
        cluster.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=110s")
        yield cluster


def web(name: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web", "pod": name}},
        "spec": {"nodeName": node, "containers": [container(WHO)], "terminationGracePeriodSeconds": 1},
    }


def service(name: str, selector: dict[str, str], **spec: Any) -> dict[str, Any]:
    ports = [{"port": 80, "targetPort": 8080}]
    spec = {"type": "LoadBalancer", "selector": selector, "ports": ports, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def address(cluster: Cluster, name: str) -> str:
    """The address that `kubectl get service` shows as EXTERNAL-IP."""

    def shown() -> str:
        found = cluster.kubectl("get", "service", name, "--no-headers").split()[3]
        return "" if "pending" in found or found == "<none>" else found

    return tools.wait_until(shown, f"{name} has an address", 60)


def ask(url: str, wait: float = 2.0) -> tuple[str, str]:
    """Who the pod was asked by, and its name; what went wrong instead, and nothing."""
    try:
        with urllib.request.urlopen(url, timeout=wait) as got:
            client, _, name = got.read().decode().strip().partition(" ")
            return client.strip("[]").removeprefix("::ffff:"), name
    except (urllib.error.URLError, OSError) as error:
        return str(error), ""


def mac_of(found: str) -> str:
    """The MAC at which this machine finds an address of the link."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.sendto(b"?", (found, 9))
    shown = subprocess.run(["ip", "neigh", "show", found], capture_output=True, text=True, check=True).stdout.split()
    return shown[shown.index("lladdr") + 1] if "lladdr" in shown else ""


def mac_of_node(cluster: Cluster, node: str) -> str:
    return cluster.inside("cat", "/sys/class/net/eth0/address", node=node).strip()


def node(cluster: Cluster, verb: str, name: str) -> None:
    """`pyb node VERB NAME`."""
    named = [f"--name={cluster.layout.name}", f"--data-dir={cluster.layout.data}"]
    command = [*tools.PYTHON, "node", verb, name, *named]
    subprocess.run(command, env=cluster.environment, check=True, capture_output=True, timeout=200)


def test_pods_reach_each_other_by_ipv6_over_a_tunnel_of_ipv4(pair: Cluster) -> None:
    for here, there in (("one", "two"), ("two", "one")):
        own = [each["ip"] for each in pair.get("pod", there)["status"]["podIPs"]]
        command = ["exec", here, "--", "timeout", "5", "wget", "-qO-", f"http://[{own[1]}]:8080/cgi-bin/who"]
        tools.wait_until(
            lambda: pair.kubectl(*command, check=False).strip().endswith(there),  # noqa: B023
            f"{here} reaches {there} at {own}",
            60,
        )


def test_the_host_reaches_a_load_balancer_at_its_external_ip(pair: Cluster) -> None:
    pair.apply(service("web", {"app": "web"}))
    external = address(pair, "web")
    index = pair.machine().gateway.rpartition(".")[0]
    assert external.startswith(f"{index}.")
    for name in ("one", "two"):
        tools.wait_until(lambda name=name: ask(f"http://{external}/cgi-bin/who")[1] == name, f"{name} answers", 60)
    reasons = [each["reason"] for each in pair.get("events")["items"] if each["involvedObject"]["name"] == "web"]
    assert {"EnsuringLoadBalancer", "EnsuredLoadBalancer"} <= set(reasons)
    ingress = pair.get("service", "web")["status"]["loadBalancer"]["ingress"]
    assert ingress == [{"ip": external, "ipMode": "VIP"}]


def test_with_local_policy_the_client_keeps_its_address_and_the_pods_node_answers(pair: Cluster) -> None:
    pair.apply(service("local", {"pod": "one"}, externalTrafficPolicy="Local"))
    external = address(pair, "local")
    url = f"http://{external}/cgi-bin/who"
    tools.wait_until(lambda: ask(url) == (pair.machine().gateway, "one"), "the pod sees this machine's address", 60)
    assert mac_of(external) == mac_of_node(pair, "node-1")
    change = {"spec": {"selector": {"pod": "two"}}}
    pair.kubectl("patch", "service", "local", "-p", json.dumps(change))
    tools.wait_until(lambda: ask(url) == (pair.machine().gateway, "two"), "the other node has taken over", 60)
    assert mac_of(external) == mac_of_node(pair, "node-2")


def test_source_ranges_and_freed_addresses(pair: Cluster) -> None:
    pair.apply(service("narrow", {"app": "web"}, loadBalancerSourceRanges=["192.0.2.0/24"]))
    external = address(pair, "narrow")
    url = f"http://{external}/cgi-bin/who"
    tools.wait_until(lambda: mac_of(external), "a node answers", 60)
    assert ask(url, 1.0)[1] == ""
    pair.kubectl("patch", "service", "narrow", "-p", '{"spec":{"loadBalancerSourceRanges":["10.0.0.0/8"]}}')
    tools.wait_until(lambda: ask(url)[1] in ("one", "two"), "the host is let in", 60)
    pair.kubectl("delete", "service", "narrow")
    tools.wait_until(lambda: ask(url, 1.0)[1] == "", "nothing answers any more", 60)


@pytest.mark.soak
def test_another_node_answers_when_one_has_lost_its_power(pair: Cluster) -> None:
    pair.apply(service("failover", {"app": "web"}))
    external = address(pair, "failover")
    tools.wait_until(lambda: mac_of(external), "a node answers", 60)
    holder = next(node for node in pair.nodes if mac_of_node(pair, node) == mac_of(external))
    other = next(node for node in pair.nodes if node != holder)
    wanted = mac_of_node(pair, other)
    node(pair, "stop", holder)
    tools.wait_until(lambda: mac_of(external) == wanted, f"{other} answers", 90)
    node(pair, "start", holder)
