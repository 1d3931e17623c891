"""kill -9 of the kubelet, the runtime and the whole node: pods go on or come back, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest
from node import leaks
from node.cluster import Cluster, settle
from node.workloads import APP, all_ready, bare_pod, container_ids, deployment, leaked, pods, remove_all, rollout


@pytest.mark.parametrize("victim", ["kubelet", "runtime"])
def test_a_killed_program_of_the_node_disturbs_no_container(own_node: Cluster, victim: str) -> None:
    cluster = own_node
    before = cluster.at_rest()
    cluster.apply(deployment("steady", 3))
    rollout(cluster, "steady")
    ids = container_ids(cluster)
    with_pods = cluster.count()
    for _ in range(2):
        cluster.kill(victim)
    cluster.wait_ready()
    cluster.kubectl("scale", "deployment/steady", "--replicas=4")  # it works again
    rollout(cluster, "steady")
    cluster.kubectl("scale", "deployment/steady", "--replicas=3")
    assert not settle(lambda: all_ready(cluster, 3))
    kept = {name: each for name, each in container_ids(cluster).items() if name in ids}
    assert len(kept) >= 2
    assert kept.items() <= ids.items()
    assert all(each["status"]["containerStatuses"][0]["restartCount"] == 0 for each in pods(cluster).values())
    assert not settle(lambda: leaked(cluster, with_pods, besides="folders"))  # logs of those that ended stay
    remove_all(cluster)
    assert not settle(lambda: leaked(cluster, before))


def test_after_a_power_failure_the_pods_come_back_and_nothing_is_left_of_the_old_ones(own_node: Cluster) -> None:
    cluster = own_node
    before = cluster.at_rest()
    cluster.apply(deployment("steady", 3))
    rollout(cluster, "steady")
    ids = container_ids(cluster)
    with_pods = cluster.count()
    cluster.kill("node")
    cluster.wait_ready()
    assert not settle(lambda: all_ready(cluster, 3)), cluster.log("node-1-kubelet")
    assert settle(lambda: [name for name, id in container_ids(cluster).items() if ids.get(name) == id]) == []
    assert not settle(lambda: leaked(cluster, with_pods, besides="folders"))  # logs of those that ended stay
    remove_all(cluster)
    assert not settle(lambda: leaked(cluster, before))


@pytest.mark.parametrize("victim", ["containerd-shim-runc-v2", "pause", "sh"])
def test_a_killed_process_of_a_pod_is_replaced(own_node: Cluster, victim: str) -> None:
    if victim.startswith("containerd") and own_node.runtime != "containerd":
        pytest.skip("has no shims")
    cluster = own_node
    before = cluster.at_rest()
    cluster.apply(deployment("steady", 1))
    rollout(cluster, "steady")
    with_pods = cluster.count()
    (name, id), *_ = container_ids(cluster).items()
    # The first is the parent of a second one, which will be a sleep in a moment.
    pid, *_ = [pid for pid in leaks.processes(cluster.init()) if leaks.command(pid) == victim]
    os.kill(pid, signal.SIGKILL)
    assert not settle(lambda: container_ids(cluster)[name] == id)
    assert not settle(lambda: all_ready(cluster, 1)), cluster.log("node-1-kubelet")
    (pod,) = pods(cluster).values()
    assert pod["metadata"]["name"] == name
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    assert not settle(lambda: leaked(cluster, with_pods, besides="folders"))  # logs of those that ended stay
    remove_all(cluster)
    assert not settle(lambda: leaked(cluster, before))


def test_a_restarted_kubelet_forgets_nothing(own_node: Cluster) -> None:
    cluster = own_node
    before = cluster.at_rest()
    crashing = deployment("crashing", 1)
    crashing["spec"]["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "echo again; exit 3"]
    staged = bare_pod("staged", APP)
    staged["spec"]["initContainers"] = [
        {**staged["spec"]["containers"][0], "name": "first", "command": ["sh", "-c", "exit 0"]},
        {**staged["spec"]["containers"][0], "name": "sidecar", "restartPolicy": "Always"},
    ]
    done = bare_pod("done", "echo last words > /dev/termination-log", restartPolicy="Never")
    failed = bare_pod("failed", "exit 4", restartPolicy="Never")
    cluster.apply(deployment("steady", 2), crashing, staged, done, failed)
    rollout(cluster, "steady")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/staged", "--timeout=60s")

    def unsettled() -> list[str]:
        found = pods(cluster)
        status = container(found, "crashing")
        phases = {name: found[name]["status"]["phase"] for name in ("done", "failed")}
        ended = all(not has_sandbox(found[name]) for name in phases)  # the last that changes
        right = ended and phases == {"done": "Succeeded", "failed": "Failed"} and status["restartCount"] >= 1
        return [] if right and "waiting" in status["state"] else [json.dumps(phases), json.dumps(status)]

    assert not settle(unsettled)
    found = pods(cluster)
    old = {name: each["status"] for name, each in found.items() if not name.startswith("crashing")}
    restarts = container(found, "crashing")["restartCount"]
    cluster.kill("kubelet")
    (name,) = [name for name in found if name.startswith("crashing")]
    # Whatever the kubelet does at its start is done when the one that crashed has been started again.
    assert not settle(lambda: container(pods(cluster), "crashing")["restartCount"] <= restarts)
    assert not settle(lambda: cluster.kubectl("logs", name, "--previous", check=False).removesuffix("again\n"))
    found = pods(cluster)
    assert {name: each["status"] for name, each in found.items() if not name.startswith("crashing")} == old
    cluster.kubectl("delete", "pods", "staged", "done", "failed")
    remove_all(cluster)
    assert not settle(lambda: leaked(cluster, before))


@pytest.mark.parametrize("victim", ["kubelet", "runtime", "node"])
def test_killed_while_a_pod_uses_its_grace_period(own_node: Cluster, victim: str) -> None:
    cluster = own_node
    before = cluster.at_rest()
    cluster.apply(bare_pod("stubborn", "trap '' TERM; while :; do sleep 0.1; done", terminationGracePeriodSeconds=4))
    cluster.kubectl("wait", "--for=condition=Ready", "pod/stubborn", "--timeout=60s")
    cluster.kubectl("delete", "pod", "stubborn", "--wait=false")
    assert not settle(lambda: "Killing" not in {each["reason"] for each in cluster.get("events")["items"]})
    cluster.kill(victim)
    assert not settle(lambda: list(pods(cluster))), cluster.log("node-1-kubelet")
    cluster.wait_ready()
    assert not settle(lambda: leaked(cluster, before))


def has_sandbox(pod: dict[str, Any]) -> bool:
    """Whether a pod says that it has one."""
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return conditions.get("PodReadyToStartContainers") != "False"


def container(found: dict[str, dict[str, Any]], app: str) -> dict[str, Any]:
    """The status of the first container of an app's first pod."""
    (status, *_) = [each["status"] for name, each in sorted(found.items()) if name.startswith(app)]
    first: dict[str, Any] = status["containerStatuses"][0]
    return first


@pytest.mark.parametrize("victim", ["kubelet", "runtime", "node"])
def test_killed_in_the_midst_of_starting_pods(own_node: Cluster, victim: str) -> None:
    cluster = own_node
    before = cluster.at_rest()
    for round_, moment in enumerate((0.05, 0.3)):
        cluster.apply(deployment(f"round-{round_}", 6))
        time.sleep(moment)  # not a wait for anything: at another moment of the starting each time
        cluster.kill(victim)
        cluster.wait_ready()
        assert not settle(lambda number=6 * (round_ + 1): all_ready(cluster, number)), cluster.log("node-1-kubelet")
    remove_all(cluster)
    assert not settle(lambda: leaked(cluster, before))


def test_killed_while_it_made_the_cgroup_of_a_pod(own_node: Cluster) -> None:
    cluster = own_node
    before = cluster.at_rest()
    pid = cluster.find("kubelet")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)  # somewhere before: what it had made until it was killed is made here
    limited = bare_pod("limited", APP)
    limited["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "100m", "memory": "64Mi"}}
    cluster.apply(limited)
    cluster.kubectl("wait", "--for=condition=PodScheduled", "pod/limited", "--timeout=60s")
    name = f"kubepods/pod{cluster.get('pod', 'limited')['metadata']['uid']}"
    for folder in leaks.cgroup_folders(cluster.machine().cgroup):
        if (folder / "kubepods").is_dir():
            (folder / name).mkdir()
    cluster.kill("kubelet")
    cluster.wait_ready()
    assert not settle(lambda: all_ready(cluster, 1)), cluster.log("node-1-kubelet")
    made = leaks.cgroup_folders(f"{cluster.machine().cgroup}/{name}")
    files = [folder / file for folder in made for file in ("memory.max", "memory.limit_in_bytes")]
    limits = [file.read_text().strip() for file in files if file.exists()]
    assert limits == [str(64 << 20)]
    cluster.kubectl("delete", "pod", "limited")
    assert not settle(lambda: leaked(cluster, before))


@pytest.mark.parametrize("victim", ["kubelet", "runtime", "node"])
def test_killed_in_the_midst_of_ending_pods(own_node: Cluster, victim: str) -> None:
    cluster = own_node
    before = cluster.at_rest()
    for round_, moment in enumerate((0.05, 0.2)):
        cluster.apply(deployment(f"round-{round_}", 6))
        rollout(cluster, f"round-{round_}")
        cluster.kubectl("delete", "deployments", "--all", "--wait=false")
        time.sleep(moment)  # as above
        cluster.kill(victim)
        cluster.wait_ready()
        remove_all(cluster)
    assert not settle(lambda: leaked(cluster, before))


@pytest.mark.soak
def test_a_runtime_that_hangs_makes_its_node_not_ready_until_it_answers(own_node: Cluster) -> None:
    cluster = own_node

    def ready() -> tuple[str, str]:
        conditions = cluster.get("node", "node-1")["status"]["conditions"]
        return next((each["status"], each["message"]) for each in conditions if each["type"] == "Ready")

    pid = cluster.find("runtime")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        assert not settle(lambda: ready()[0] == "True", 60)
        assert ready() == ("False", "container runtime is down")
    finally:
        os.kill(pid, signal.SIGCONT)
    cluster.wait_ready(timeout=10.0)
