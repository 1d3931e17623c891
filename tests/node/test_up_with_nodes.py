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
    """A web server on a certain node that ends at SIGTERM."""
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


@pytest.fixture
def two_nodes(pair: Cluster) -> Cluster:
    """The pair, started again if the test before has ended it."""
    if pair.find("apiserver") is None:
        pair.up()
        pair.kubectl("wait", "node", "--all", "--for=condition=Ready", "--timeout=110s")
        pair.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=110s")
    return pair


@pytest.fixture(scope="module")
def pair(runtime_name: str, needed: None) -> Iterator[Cluster]:
    """Two nodes with a pod on each; what `down` leaves of them is looked for at the end."""
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
    pods = cluster.get("pods")["items"]
    return {each["metadata"]["name"]: each["status"]["podIP"] for each in pods if "podIP" in each["status"]}


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
    assert names[-5:] == ["node-2", *(f"node-2/{each}" for each in programs), "ingress"]


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


def nodes(cluster: Cluster) -> list[str]:
    return [node["metadata"]["name"] for node in cluster.get("nodes")["items"]]


def test_the_server_is_on_the_loopback_for_people_and_on_the_bridge_for_nodes(two_nodes: Cluster) -> None:
    server = json.loads(two_nodes.pyb("status", "--output=json"))["server"]
    assert server.startswith("https://127.0.0.1:")
    gateway = two_nodes.machine().gateway
    for host in ("127.0.0.1", gateway):  # its certificate is checked at both
        url = f"https://{host}:{server.rpartition(':')[2]}"
        assert two_nodes.kubectl("--server", url, "get", "--raw", "/readyz") == "ok"
    slices = two_nodes.get("endpoints", "kubernetes")["subsets"]
    assert [each["ip"] for each in slices[0]["addresses"]] == [gateway]


def test_why_names_the_cause_first_and_asks_the_cluster_of_the_current_context(two_nodes: Cluster) -> None:
    container = {"name": "c", "image": "busybox:1.35", "command": ["sh", "-c", "echo last words; exit 3"]}
    crash = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "crash"}, "spec": {"containers": [container]}}
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    spec = {"containers": [{"name": "c", "image": "busybox:1.35"}], "volumes": [volume]}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
    }
    two_nodes.apply(
        crash,
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "unbound"}, "spec": spec},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim},
    )

    def why(name: str) -> str:
        return two_nodes._run([*tools.PYTHON, "why", name], check=False)

    tools.wait_until(lambda: "keeps ending: exit code 3" in why("crash"), "it keeps ending", 60.0, every=0.5)
    assert why("pod/crash").splitlines()[1:] == ["The last lines of c:", "  last words"]
    tools.wait_until(lambda: "refused by VolumeBinding" in why("unbound"), "the scheduler has tried", every=0.5)
    assert why("unbound").startswith(
        'Pod default/unbound: the claim data names the StorageClass "", so only a PersistentVolume'
    )
    two_nodes.kubectl("delete", "pod/crash", "pod/unbound", "pvc/data", "--wait=false")
    tools.wait_until(lambda: len(two_nodes.get("pods")["items"]) == 2, "they are gone", 60.0, every=0.2)


def test_nodes_are_added_stopped_cut_off_and_removed_while_the_others_run(two_nodes: Cluster) -> None:
    before = two_nodes.init()
    assert "--nodes 2 -> 3" in two_nodes.pyb("up", "--nodes=3")
    assert nodes(two_nodes) == ["node-1", "node-2", "node-3"]
    two_nodes.apply(pod("three", "node-3"))
    two_nodes.kubectl("wait", "pod", "three", "--for=condition=Ready", "--timeout=110s")
    assert fetched(two_nodes, "one", addresses(two_nodes)["three"]) == "three\n"

    command_line = [two_nodes.layout.name, "--data-dir", str(two_nodes.layout.data)]

    def node(verb: str, name: str, check: bool = True) -> str:
        return two_nodes._run([*tools.PYTHON, "node", verb, name, "--name", *command_line], check=check)

    assert node("stop", "node-3") == "node node-3 is off\n"
    assert inside.init_process(two_nodes.layout, "node-3") is None
    status = json.loads(two_nodes.pyb("status", "--output=json"))
    assert (status["ready"], status["nodes"][2]["state"]) == (True, "off")
    assert node("start", "node-3") == "node node-3 is ready\n"

    init, gateway = two_nodes.init("node-3"), two_nodes.machine("node-3").gateway
    busybox = str(builtin.busybox_program())
    reach = ["timeout", "5", "nsenter", "-t", str(init), "-n", busybox, "ping", "-c1", "-W1", gateway]
    assert subprocess.run(reach, capture_output=True).returncode == 0
    node("partition", "node-3")
    tools.wait_until(lambda: subprocess.run(reach, capture_output=True).returncode != 0, "it is cut off")
    assert "cut off" in two_nodes.pyb("status")
    node("heal", "node-3")
    tools.wait_until(lambda: subprocess.run(reach, capture_output=True).returncode == 0, "it is back")

    assert node("add", "big") == "node big is ready\n"
    assert "already has a node big" in node("add", "big", check=False)
    assert "invalid node name 'scheduler'" in node("add", "scheduler", check=False)
    assert "has no node ghost; it has: node-1, node-2, node-3, big" in node("stop", "ghost", check=False)
    assert node("remove", "big") == "node big is removed\n"

    # What a removed node had goes with it: its Node, its pods, its disk, its cgroups.
    assert "--nodes 3 -> 2" in two_nodes.pyb("up", "--nodes=2")
    assert nodes(two_nodes) == ["node-1", "node-2"]
    assert "three" not in addresses(two_nodes)
    assert not two_nodes.layout.node("node-3").exists()
    groups = [Path(each.mount, cgroup(two_nodes.layout, "node-3")) for each in cgroups.hierarchies()]
    assert not any(path.exists() for path in groups)
    assert two_nodes.init() == before, "the others did not notice"


def test_a_cluster_started_with_fewer_nodes_has_no_ghosts(two_nodes: Cluster) -> None:
    two_nodes.pyb("down")
    assert "--nodes 2 -> 1" in two_nodes.pyb("up", "--nodes=1")
    assert nodes(two_nodes) == ["node-1"]
    assert [each["metadata"]["name"] for each in two_nodes.get("pods")["items"]] == ["one"]
    assert "--nodes 1 -> 2" in two_nodes.pyb("up", "--nodes=2")


def test_nodes_outlive_their_supervisor_and_are_taken_over_or_ended(two_nodes: Cluster) -> None:
    bridge, before = two_nodes.machine().bridge, two_nodes.init()

    def kill_supervisor() -> None:
        supervisor = pidfile.read(str(two_nodes.layout.pid_file("supervisor")))
        assert supervisor is not None
        os.kill(supervisor.pid, signal.SIGKILL)
        tools.wait_until(lambda: not supervisor.alive, "the supervisor is gone")

    kill_supervisor()
    assert "taken over, with apiserver, controller-manager, ingress, node-1, node-2, scheduler" in two_nodes.pyb("up")
    assert two_nodes.init() == before
    two_nodes.kill("node", "node-2")
    tools.wait_until(lambda: inside.init_process(two_nodes.layout, "node-2"), "node-2 is started again", 60.0)
    kill_supervisor()
    two_nodes.pyb("down")
    assert remains(two_nodes.layout, bridge) == NOTHING
