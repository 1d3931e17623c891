"""`up` and `down` with nodes: several of them, several clusters, failing starts, and a host that is as it was."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node.cluster import PROGRAMS, Cluster
from node.runtimes import only

import tools
from pybernetes.cluster import pidfile
from pybernetes.cluster.images import builtin
from pybernetes.cluster.layout import Layout
from pybernetes.cluster.node import cgroups, inside, plan
from pybernetes.cluster.node.network import Network
from pybernetes.cluster.node.prepare import cgroup


def remains(layout: Layout, bridge: str) -> dict[str, list[str]]:
    """What a cluster with nodes could leave on the host."""
    links = os.listdir("/sys/class/net")
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    tables = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout.split()
    groups = [Path(each.mount, cgroup(layout, "node-1")).parent for each in cgroups.hierarchies()]
    return {
        "links": [name for name in links if name == bridge or name.startswith(f"{bridge}n")],
        "mounts": [line for line in mounts if str(layout.data) in line],
        "tables": [name for name in tables if name == bridge],
        "cgroups": [str(path) for path in groups if path.exists()],
        "processes": _processes(str(layout.data)),
    }


def _processes(text: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in words and path.parent.name != str(os.getpid()):
            found.append(words)
    return found


NOTHING: dict[str, list[str]] = {"links": [], "mounts": [], "tables": [], "cgroups": [], "processes": []}


def pod(name: str, node: str) -> dict[str, Any]:
    """A web server on a certain node that ends when it is told to."""
    script = f"echo {name} > /tmp/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp & wait"
    container = {"name": "web", "image": "busybox:1.35", "command": ["sh", "-c", script]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "pair"}},
        "spec": {"nodeName": node, "containers": [container]},
    }


@pytest.fixture(scope="module", autouse=True)
def needed(runtime_name: str) -> None:
    why = plan.obstacle(runtime_name)
    if why is not None or builtin.busybox_program() is None:
        pytest.skip(f"no node: {why or 'busybox is not installed'}")


@pytest.fixture(scope="module")
def two_nodes(runtime_name: str, needed: None) -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        cluster = Cluster(Path(folder), f"u{os.getpid()}", runtime=runtime_name, nodes=2)
        with cluster:
            bridge = cluster.machine().bridge
            cluster.kubectl("wait", "node", "--all", "--for=condition=Ready", "--timeout=110s")
            tools.wait_until(
                lambda: cluster.kubectl("get", "serviceaccount", "default", check=False).startswith("NAME"),
                "there is a service account for pods",
                60.0,
            )
            cluster.apply(pod("one", "node-1"), pod("two", "node-2"))
            cluster.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=110s")
            assert all(remains(cluster.layout, bridge)[what] for what in ("links", "tables", "cgroups", "processes"))
            yield cluster
        assert not cluster.layout.data.exists()
        assert remains(cluster.layout, bridge) == NOTHING


def addresses(cluster: Cluster) -> dict[str, str]:
    return {each["metadata"]["name"]: each["status"]["podIP"] for each in cluster.get("pods")["items"]}


def fetched(cluster: Cluster, here: str, address: str) -> str:
    """What a pod gets from a server, which listens a moment after its container runs."""
    command = ["exec", here, "--", "timeout", "5", "wget", "-qO-", f"http://{address}:8080/"]
    said: list[str] = []

    def answer() -> bool:
        said.append(cluster.kubectl(*command, check=False))
        return "terminated with exit code" not in said[-1]

    tools.wait_until(answer, f"an answer: {said}", 60.0, every=0.2)
    return said[-1]


def test_pods_of_two_nodes_reach_each_other_under_their_own_addresses(two_nodes: Cluster) -> None:
    ips = addresses(two_nodes)
    ranges = [node["spec"]["podCIDR"] for node in two_nodes.get("nodes")["items"]]
    assert len(set(ranges)) == 2
    for here, there in (("one", "two"), ("two", "one")):
        assert fetched(two_nodes, here, ips[there]) == f"{there}\n"
    reached = two_nodes.kubectl("get", "--raw", "/api/v1/namespaces/default/pods/two:8080/proxy/")
    assert reached == "two\n", "the API server reaches pods too"


def test_a_service_reaches_pods_of_both_nodes_from_pods_and_from_outside(two_nodes: Cluster) -> None:
    port = {"port": 80, "targetPort": 8080, "nodePort": 30180}
    spec = {"type": "NodePort", "selector": {"app": "pair"}, "ports": [port]}
    two_nodes.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "pair"}, "spec": spec})
    address = two_nodes.get("service", "pair")["spec"]["clusterIP"]
    found: set[str] = set()

    def from_pods() -> bool:
        for here in ("one", "two"):
            command = ["exec", here, "--", "timeout", "5", "wget", "-qO-", f"http://{address}/"]
            found.add(f"{here} {two_nodes.kubectl(*command, check=False)}".strip())
        return {"one one", "one two", "two one", "two two"} <= found

    tools.wait_until(from_pods, f"each pod reaches both through the Service: {found}", 60.0)
    nodes = [two_nodes.machine(name).address for name in two_nodes.nodes]
    answers = {(node, _get(node, 30180)) for _ in range(20) for node in nodes}
    assert answers == {(node, pod) for node in nodes for pod in ("one\n", "two\n")}


def _get(address: str, port: int) -> str:
    """The body that a web server sends; the machine's gateway may accept any connection, but sends none."""
    with urllib.request.urlopen(f"http://{address}:{port}/", timeout=10) as answer:
        return str(answer.read().decode())


def test_status_shows_every_node_with_its_programs(two_nodes: Cluster) -> None:
    status = json.loads(two_nodes.pyb("status", "--output=json"))
    assert [node["name"] for node in status["nodes"]] == ["node-1", "node-2"]
    names = [each["name"] for each in status["components"]]
    programs = [PROGRAMS[two_nodes.runtime], "kubelet", "node-network"]
    assert names[-4:] == ["node-2", *(f"node-2/{each}" for each in programs)]


def test_a_second_start_finds_the_pods_and_runs_them_again(two_nodes: Cluster) -> None:
    boots = [node["status"]["nodeInfo"]["bootID"] for node in two_nodes.get("nodes")["items"]]
    two_nodes.pyb("down")
    assert remains(two_nodes.layout, two_nodes.machine().bridge) == NOTHING
    two_nodes.up()
    assert not set(boots) & {node["status"]["nodeInfo"]["bootID"] for node in two_nodes.get("nodes")["items"]}

    def again() -> bool:
        pods = two_nodes.get("pods")["items"]
        statuses = [status for each in pods for status in each["status"].get("containerStatuses", [])]
        return len(statuses) == 2 and all(each["ready"] and each["restartCount"] == 1 for each in statuses)

    tools.wait_until(again, "both pods run again", timeout=120, every=0.2)
    ips = addresses(two_nodes)
    assert fetched(two_nodes, "one", ips["two"]) == "two\n"


def test_clusters_side_by_side_have_networks_of_their_own(two_nodes: Cluster) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="pyb-") as folder,
        Cluster(Path(folder), f"v{os.getpid()}", runtime=two_nodes.runtime) as other,
    ):
        assert other.machine().bridge != two_nodes.machine().bridge
        assert other.machine().pods != two_nodes.machine().pods
        assert "Ready" in other.kubectl("get", "nodes")
        bridge = other.machine().bridge
        other.pyb("down")
        assert remains(other.layout, bridge) == NOTHING
    assert two_nodes.kubectl("exec", "one", "--", "hostname") == "one\n", "its neighbour did not notice"


@only("containerd")
def test_a_start_that_fails_shows_why_and_leaves_nothing() -> None:
    with tempfile.TemporaryDirectory(prefix="pyb-") as folder:
        for number in itertools.count():  # one whose network no other cluster has
            place = Path(folder, str(number))
            cluster = Cluster(place, f"w{os.getpid()}", runtime="containerd")
            bridge = Network(plan.first_choice(cluster.layout)).bridge
            if not os.path.exists(f"/sys/class/net/{bridge}"):
                break
        place.mkdir()
        broken = Path(folder, "bin")
        broken.mkdir()
        script = (
            "import sys\n"  # a runtime that cannot start is found before the real one
            "from pybernetes.cluster import cli\n"
            "from pybernetes.cluster.node import programs\n"
            f"programs.PATH = {str(broken)!r} + ':' + programs.PATH\n"
            "sys.exit(cli.main(sys.argv[1:]))\n"
        )
        fake = broken / "containerd"
        fake.write_text("#!/bin/sh\necho this containerd is broken\nexit 7\n")
        fake.chmod(0o755)
        command = [
            *tools.PYTHON[:2],
            "-c",
            script,
            "up",
            "--name",
            cluster.layout.name,
            "--data-dir",
            str(cluster.layout.data),
        ]
        done = subprocess.run(
            [*command, *cluster.flags], env=cluster.environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 1
        assert "the containerd of node-1 keeps ending" in done.stderr
        assert "this containerd is broken" in done.stderr
        assert remains(cluster.layout, bridge) == NOTHING
        assert {path.name for path in cluster.layout.data.iterdir()} == {"cluster.json", "lock", "logs"}
        cluster.down()


def test_down_cleans_up_after_a_supervisor_that_was_killed(two_nodes: Cluster) -> None:
    bridge = two_nodes.machine().bridge
    supervisor = pidfile.read(str(two_nodes.layout.pid_file("supervisor")))
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGKILL)
    tools.wait_until(lambda: not supervisor.alive, "the supervisor is gone")
    assert inside.init_process(two_nodes.layout, "node-1") is not None, "nodes live on"
    assert "`pyb down` cleans up" in two_nodes.pyb("up", *two_nodes.flags, check=False)
    two_nodes.pyb("down")
    assert remains(two_nodes.layout, bridge) == NOTHING
