"""The network of two nodes under faults and changes: no wrong endpoint at any time, nothing left over at the end.

A client on each node fetches every Service by its name all the time and notes what it gets. Meanwhile processes are
killed, rules, routes and devices are removed by hand, a node is cut off and comes back, and users scale, delete, and
add policies.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from node.cluster import Cluster, settle
from node.runtimes import only

import tools

NODES = ("node-1", "node-2")
SERVICES = ("a", "b")
WEB = "echo $APP $(hostname) > /tmp/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp & wait"
CLIENT = """trap 'exit 0' TERM
while :; do
  for name in a b; do echo "$name $(wget -T 2 -qO- http://$name/ 2>/dev/null)"; done
  sleep 0.1
done"""
FLUSH_FORWARDING = "bridge fdb show dev pyb-vxlan | while read mac rest; do bridge fdb delete $mac dev pyb-vxlan; done"
POLICY = {
    "podSelector": {"matchLabels": {"app": "a"}},
    "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}],
}


def workload(name: str, replicas: int) -> dict[str, Any]:
    container = {
        "name": "web",
        "image": "busybox:1.35",
        "command": ["sh", "-c", WEB],
        "env": [{"name": "APP", "value": name}],
        "readinessProbe": {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1},
    }
    labels = {"app": name}
    spread = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}]
    template = {
        "metadata": {"labels": labels},
        "spec": {
            "containers": [container],
            "terminationGracePeriodSeconds": 1,
            "topologySpreadConstraints": [{**each, "labelSelector": {"matchLabels": labels}} for each in spread],
        },
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def service(name: str, app: str) -> dict[str, Any]:
    spec = {"selector": {"app": app}, "ports": [{"port": 80, "targetPort": 8080}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def client(node: str) -> dict[str, Any]:
    container = {"name": "client", "image": "busybox:1.35", "command": ["sh", "-c", CLIENT]}
    metadata = {"name": f"client-{node}", "labels": {"app": "client"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 1},
    }


class Chaos:
    """Draws what happens next; `calm` ends what goes on."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)
        self.done: list[str] = []
        self._cut_off = ""
        self._later = 0
        self._bag: list[Callable[[], None]] = []

    def step(self) -> None:
        """One fault or change; each kind comes once before any comes again."""
        if not self._bag:
            self._bag = [
                self.kill,
                self.remove_rules,
                self.remove_device,
                self.remove_routes,
                self.partition,
                self.scale,
                self.delete_pod,
                self.services_come_and_go,
                self.policy_comes_and_goes,
            ]
            self.random.shuffle(self._bag)
        action = self._bag.pop()
        self.done.append(action.__name__)
        action()

    def calm(self) -> None:
        self.heal()
        self.cluster.kubectl("delete", "networkpolicies", "--all")
        self.cluster.kubectl("delete", "services", "-l", "later=yes")

    def _node(self) -> str:
        return self.random.choice([each for each in NODES if each != self._cut_off])

    def kill(self) -> None:
        self.cluster.kill("node-network", self._node())

    def remove_rules(self) -> None:
        self.cluster.inside("nft", "flush", "ruleset", node=self._node())

    def remove_device(self) -> None:
        self.cluster.inside("ip", "link", "delete", "pyb-vxlan", node=self._node(), check=False)

    def remove_routes(self) -> None:
        node = self._node()
        # A route that the node's own repair removes at the same moment makes it fail.
        self.cluster.inside("ip", "route", "flush", "proto", "80", node=node, check=False)
        self.cluster.inside("sh", "-c", FLUSH_FORWARDING, node=node, check=False)

    def partition(self) -> None:
        if self._cut_off:
            self.heal()
        else:
            self._cut_off = self.random.choice(NODES)
            self.cluster.pyb_node("partition", self._cut_off)

    def heal(self) -> None:
        if self._cut_off:
            self.cluster.pyb_node("heal", self._cut_off)
            self._cut_off = ""

    def scale(self) -> None:
        replicas = self.random.randrange(1, 4)
        self.cluster.kubectl("scale", f"deployment/{self.random.choice(SERVICES)}", f"--replicas={replicas}")

    def delete_pod(self) -> None:
        pods = self.cluster.get("pods", "-l", f"app={self.random.choice(SERVICES)}")["items"]
        if pods:
            name = self.random.choice(sorted(each["metadata"]["name"] for each in pods))
            # One that was being deleted may be gone by now.
            self.cluster.kubectl("delete", "pod", name, "--wait=false", "--ignore-not-found")

    def services_come_and_go(self) -> None:
        """A new Service may get the address that another had."""
        self.cluster.kubectl("delete", "services", "-l", "later=yes")
        for _ in range(3):
            made = service(f"later-{self._later}", self.random.choice(SERVICES))
            made["metadata"]["labels"] = {"later": "yes"}
            self.cluster.apply(made)
            self._later += 1

    def policy_comes_and_goes(self) -> None:
        if self.cluster.get("networkpolicies")["items"]:
            self.cluster.kubectl("delete", "networkpolicies", "--all")
        else:
            metadata = {"name": "clients"}
            kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
            self.cluster.apply({**kind, "metadata": metadata, "spec": POLICY})


def wrong_answers(cluster: Cluster) -> list[str]:
    """What the clients got that another Service says."""
    lines = [line for node in NODES for line in cluster.kubectl("logs", f"client-{node}").splitlines()]
    answers = [line.split() for line in lines]
    return [" ".join(words) for words in answers if len(words) > 1 and words[0] != words[1]]


def not_reached(cluster: Cluster) -> list[str]:
    """Which Ready pods the clients have not reached among their last answers."""
    wrong = []
    pods = {name: cluster.get("pods", "-l", f"app={name}")["items"] for name in SERVICES}
    for node in NODES:
        lines = cluster.kubectl("logs", "--tail=80", f"client-{node}").splitlines()
        seen = Counter(lines)
        for name, some in pods.items():
            names = {each["metadata"]["name"] for each in some}
            wrong += [f"{node}: {name} {each}" for each in names if not seen[f"{name} {name} {each}"]]
            last = [line.split() for line in lines if line.startswith(name)][-10:]
            wrong += [f"{node}: {words}" for words in last if len(words) < 3 or words[2] not in names]
    return wrong


def catch_up(cluster: Cluster) -> None:
    """Waits until the network of every node knows of all changes so far.

    Rules serve on while their process waits to be started again (up to half a minute if it has died often) or its
    watches have not noticed yet that the node is connected again: that all pods are reached does not show it.
    """
    metadata, kind = {"name": "last"}, {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    cluster.apply(service("last", "client"), {**kind, "metadata": metadata, "spec": POLICY})
    address = cluster.get("service", "last")["spec"]["clusterIP"]

    def tables(node: str) -> str:
        return cluster.inside("nft", "list", "tables", node=node)

    def served(node: str) -> bool:
        endpoints = cluster.inside("nft", "list", "map", "ip", "kube-proxy", "endpoints", node=node, check=False)
        return endpoints.count(f"{address} .") == len(NODES) and "network-policy" in tables(node)

    for node in NODES:
        tools.wait_until(lambda: served(node), f"{node} knows of the last Service and policy", 120.0, 0.1)  # noqa: B023
    cluster.kubectl("delete", "networkpolicy", "last")
    for node in NODES:
        tools.wait_until(
            lambda: "network-policy" not in tables(node),  # noqa: B023
            f"{node} knows that the last policy is gone",
            60.0,
        )


def leaving(cluster: Cluster) -> list[str]:
    """The pods that are being deleted: the node's network still knows them."""
    pods = cluster.get("pods")["items"]
    return [each["metadata"]["name"] for each in pods if "deletionTimestamp" in each["metadata"]]


def at_rest(cluster: Cluster, node: str) -> dict[str, Any]:
    """The network of a node once two looks at it find the same: the last change or repair may be under way."""
    # Lookups that were made while there were no rules are still known to the kernel; from now on there are no more.
    cluster.inside("conntrack", "-D", "-p", "udp", "-d", "10.96.0.10", node=node, check=False)
    last = in_kernel(cluster, node)

    def same() -> dict[str, Any] | None:
        nonlocal last
        before, last = last, in_kernel(cluster, node)
        return last if before == last and last["conntrack"] == [] else None

    return tools.wait_until(same, f"the network of {node} is at rest", 60.0, every=0.5)


def in_kernel(cluster: Cluster, node: str) -> dict[str, Any]:
    """How much there is of each thing that the network of a node consists of."""
    rules = json.loads(cluster.inside("nft", "-j", "list", "ruleset", node=node))["nftables"]
    found: dict[str, Any] = {}
    for each in rules:
        (kind, body), *_ = each.items()
        if body.get("family") == "netdev":
            continue  # the CNI plugin's: they come and go with pods
        if kind in ("set", "map") and "timeout" not in body.get("flags", ()):
            found[f"{body['family']} {body['table']} {body['name']}"] = len(body.get("elem", ()))
        elif kind in ("chain", "rule"):
            name = f"{kind}s of {body['family']} {body['table']}"
            found[name] = found.get(name, 0) + 1
    for what in (["ip", "route", "show", "proto", "80"], ["bridge", "fdb", "show", "dev", "pyb-vxlan"]):
        found[what[0]] = sorted(cluster.inside(*what, node=node).splitlines())
    tracked = cluster.inside("conntrack", "-L", "-p", "udp", node=node, check=False)
    found["conntrack"] = [line for line in tracked.splitlines() if "dport=53" in line and "10.96.0.10" in line]
    return found


@only("embedded")
@pytest.mark.parametrize("seconds", [5, pytest.param(600, marks=pytest.mark.soak)])
def test_chaos_ends_with_the_network_that_a_fresh_start_makes(runtime_name: str, seconds: int, run_seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        cluster = Cluster(Path(folder), f"x{os.getpid()}", runtime=runtime_name, nodes=2)
        with cluster:
            tools.wait_until(
                lambda: cluster.kubectl("get", "serviceaccount", "default", check=False).startswith("NAME"),
                "account",
                60,
            )
            cluster.apply(*(workload(name, 2) for name in SERVICES), *(service(name, name) for name in SERVICES))
            cluster.apply(*(client(node) for node in NODES))
            cluster.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=110s")
            assert not settle(lambda: not_reached(cluster), 60)
            chaos, end = Chaos(cluster, run_seed), time.monotonic() + seconds
            while time.monotonic() < end or len(chaos.done) < 10:
                chaos.step()
                time.sleep(chaos.random.random() * 0.2)  # not a wait for anything: the pace
            chaos.calm()
            for node in NODES:
                cluster.wait_ready(node)
            for name in SERVICES:
                cluster.kubectl("rollout", "status", f"deployment/{name}", "--timeout=110s")
            assert not settle(lambda: not_reached(cluster), 90), chaos.done
            assert wrong_answers(cluster) == [], chaos.done
            assert not settle(lambda: leaving(cluster), 60), chaos.done
            catch_up(cluster)
            for node in NODES:
                lived = at_rest(cluster, node)
                cluster.kill("node-network", node)
                # One that has died often is started again after up to half a minute.
                assert not settle(lambda: differs(cluster, node, lived), 120), chaos.done  # noqa: B023


def differs(cluster: Cluster, node: str, lived: dict[str, Any]) -> str:
    """How the network of a process that has just started differs from what another kept up through everything."""
    healthy = cluster.inside("busybox", "wget", "-qO-", "http://127.0.0.1:10256/healthz", node=node, check=False)
    if cluster.find("node-network", node) is None or '"nodeEligible": true' not in healthy:
        return "it has not set the rules yet"
    fresh = in_kernel(cluster, node)
    return "; ".join(
        f"{name}: {lived.get(name)} became {fresh.get(name)}"
        for name in sorted({*lived, *fresh})
        if lived.get(name) != fresh.get(name)
    )
