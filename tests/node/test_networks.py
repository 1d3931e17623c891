"""`up --network`: two nodes by host-gw, with both IP versions, and by udp; none; one that waits for a foreign one."""

from __future__ import annotations

import json
import os
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from node.cluster import Cluster
from node.runtimes import only

import tools


def pod(name: str, node: str, **spec: Any) -> dict[str, Any]:
    script = f"echo {name} > /tmp/index.html; trap 'exit 0' TERM; httpd -f -p 8099 -h /tmp & wait"
    container = {"name": "web", "image": "busybox:1.35", "command": ["sh", "-c", script]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"nodeName": node, "containers": [container], **spec},
    }


def service(name: str) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8099}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def fetch(cluster: Cluster, here: str, name: str) -> str:
    command = ["exec", here, "--", "timeout", "5", "wget", "-qO-", f"http://{name}/"]
    return cluster.kubectl(*command, check=False)


def account(cluster: Cluster) -> None:
    tools.wait_until(
        lambda: cluster.kubectl("get", "serviceaccount", "default", check=False).startswith("NAME"),
        "there is a service account for pods",
        60.0,
    )


def both_versions_work(cluster: Cluster) -> None:
    """Nodes, pods and Services have IPv4 and IPv6, and each is reached by both."""
    node = cluster.get("node", "node-2")
    assert [len(node["spec"]["podCIDRs"]), ":" in node["spec"]["podCIDRs"][1]] == [2, True]
    addresses = [each["address"] for each in node["status"]["addresses"] if each["type"] == "InternalIP"]
    assert addresses == [cluster.machine("node-2").address, cluster.machine("node-2").address6]
    own = [each["ip"] for each in cluster.get("pod", "two")["status"]["podIPs"]]
    assert fetch(cluster, "one", f"[{own[1]}]:8099") == "two\n", "pod to pod"
    both = service("two")
    both["metadata"]["name"] = "both"
    both["spec"] |= {"ipFamilyPolicy": "RequireDualStack", "type": "LoadBalancer"}
    cluster.apply(both)
    made = tools.wait_until(
        lambda: (found := cluster.get("service", "both"))["status"]["loadBalancer"].get("ingress") and found,
        "addresses",
    )
    for address in made["spec"]["clusterIPs"]:
        host = f"[{address}]" if ":" in address else address
        tools.wait_until(lambda: fetch(cluster, "one", host) == "two\n", f"{address} is served", 60)  # noqa: B023
    found = cluster.kubectl("exec", "one", "--", "nslookup", "-type=AAAA", "both.default.svc.cluster.local")
    assert made["spec"]["clusterIPs"][1] in found
    (outside,) = [each["ip"] for each in made["status"]["loadBalancer"]["ingress"] if ":" in each["ip"]]
    port = made["spec"]["ports"][0]["nodePort"]
    for url in (f"http://[{addresses[1]}]:{port}/", f"http://[{outside}]/"):
        tools.wait_until(lambda: from_here(url) == "two\n", f"{url} is reached from this machine", 60)  # noqa: B023


def from_here(url: str) -> str:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError as error:
        return str(error)


@only("embedded")
@pytest.mark.parametrize("network", ["host-gw", "udp"])
def test_pods_of_two_nodes_reach_each_other_by_service_names(network: str, runtime_name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        flags = [f"--network={network}", *(["--ip-family=dual"] if network == "host-gw" else [])]
        cluster = Cluster(Path(folder), f"w{os.getpid()}", *flags, runtime=runtime_name, nodes=2)
        with cluster:
            account(cluster)
            cluster.apply(pod("one", "node-1"), pod("two", "node-2"), service("one"), service("two"))
            cluster.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=110s")
            for here, there in (("one", "two"), ("two", "one")):
                tools.wait_until(lambda: fetch(cluster, here, there) == f"{there}\n", f"{here} -> {there}", 60)  # noqa: B023
            annotations = cluster.get("node", "node-1")["metadata"]["annotations"]
            assert annotations["network.pybernetes.io/backend"] == network
            if network == "host-gw":
                both_versions_work(cluster)
            # The agent is killed while its routes are removed: the next one restores them.
            cluster.inside("ip", "route", "flush", "proto", "80", node="node-2")
            cluster.kill("node-network", "node-2")
            tools.wait_until(lambda: fetch(cluster, "two", "one") == "one\n", "the routes are back", 60)


@only("embedded")
def test_a_node_without_a_pod_network_and_one_that_waits_for_a_foreign_one(runtime_name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        cluster = Cluster(Path(folder), f"w{os.getpid()}", "--network=none", runtime=runtime_name)
        with cluster:
            account(cluster)
            node = cluster.get("node", "node-1")
            assert "podCIDR" not in node["spec"]
            cluster.apply(pod("host", "node-1", hostNetwork=True), pod("lost", "node-1"))
            cluster.kubectl("wait", "pod", "host", "--for=condition=Ready", "--timeout=110s")
            assert cluster.get("pod", "host")["status"]["podIP"] == cluster.machine().address
            tools.wait_until(
                lambda: "FailedCreatePodSandBox" in cluster.kubectl("get", "events"), "a pod gets no network", 60
            )
            # The same cluster, whose network is to be brought by others.
            cluster.pyb("down")
            cluster.pyb("up", "--port=0", "--network=cni")
            ready = ["get", "node", "node-1", "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}"]
            assert cluster.kubectl(*ready) == "False"
            plugin = {"type": "bridge", "bridge": "cni7", "isGateway": True}
            ipam = {"type": "host-local", "subnet": "10.77.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}
            foreign = {"cniVersion": "1.0.0", "name": "foreign", "plugins": [{**plugin, "ipam": ipam}]}
            place = cluster.layout.node("node-1") / "etc-cni" / "net.d" / "05-foreign.conflist"
            place.write_text(json.dumps(foreign))
            cluster.wait_ready()
            tools.wait_until(
                lambda: cluster.get("pod", "lost")["status"].get("podIP", "").startswith("10.77.0."), "an address", 60
            )


def test_after_a_power_failure_leases_are_those_of_the_pods_that_live(own_node: Cluster) -> None:
    account(own_node)
    own_node.apply(*(pod(f"lease-{number}", "node-1") for number in range(3)))
    own_node.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=110s")
    own_node.kill("node")
    own_node.wait_ready()

    def same() -> bool:
        found = [each["status"].get("podIP") for each in own_node.get("pods")["items"]]
        names = own_node.inside("ls", "/run/cni/networks/pods", check=False).split()
        leases = {name for name in names if name.startswith("10.")}
        return len(set(found)) == 3 and leases == set(found)

    tools.wait_until(same, "each pod that lives has a lease, and nothing else has one", 100.0, every=0.5)
