"""A node that is short of memory, gives whole CPUs away, cuts logs and shuts down, through kubectl.

One node for all, with a KubeletConfiguration that makes all of this happen quickly; the last test shuts it down.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from kubelet.devices.sample_plugin import SamplePlugin
from node.cluster import Cluster
from node.pods import Namespace, container, pod

import tools
from pybernetes.kubelet.node.allocatable import meminfo

MI = 1 << 20
SLEEP = "trap 'exit 0' TERM; sleep 3600 & wait"
ALL_PODS = 640
"""MiB that all pods together may use; at less than 256 MiB left, one of them goes."""
CONFIG = {
    "kubeReserved": {"cpu": "500m"},
    "systemReserved": {"memory": f"{meminfo()['MemTotal'] // MI - ALL_PODS}Mi"},
    "evictionHard": {"memory.available": "256Mi"},
    "evictionPressureTransitionPeriod": "30s",
    "cpuManagerPolicy": "static",
    "cpuManagerReconcilePeriod": "1s",
    "containerLogMaxSize": "32Ki",
    "containerLogMaxFiles": 3,
    "containerLogMonitorInterval": "3s",
    "shutdownGracePeriod": "20s",
    "shutdownGracePeriodCriticalPods": "10s",
}


@pytest.fixture(scope="module")
def space(own_node: Cluster) -> Namespace:
    """The node's kubelet is started anew with another configuration: its state of the CPU manager must go first."""
    folder = own_node.layout.node("node-1")
    path = folder / "kubelet.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **CONFIG}))
    (folder / "lib-kubelet/cpu_manager_state").unlink(missing_ok=True)
    own_node.kill("kubelet")
    tools.wait_until(
        lambda: own_node.get("node", "node-1")["status"]["allocatable"]["cpu"] != str(os.cpu_count()),
        "the node has less to allocate",
        timeout=60,
        every=0.2,
    )
    return Namespace(own_node, "pressure")


def node_conditions(cluster: Cluster) -> dict[str, Any]:
    return {each["type"]: each for each in cluster.get("node", "node-1")["status"]["conditions"]}


def test_what_is_reserved_is_not_allocatable(space: Namespace) -> None:
    status = space.cluster.get("node", "node-1")["status"]
    assert status["allocatable"]["cpu"] == f"{(os.cpu_count() or 0) * 1000 - 500}m"
    assert int(status["allocatable"]["memory"].removesuffix("Ki")) // 1024 in range(ALL_PODS - 258, ALL_PODS - 254)
    assert status["capacity"]["cpu"] == str(os.cpu_count())
    limit = space.cluster.inside("cat", "/sys/fs/cgroup/memory/kubepods/memory.limit_in_bytes")
    assert int(limit) // MI in range(ALL_PODS - 1, ALL_PODS + 2)


@pytest.mark.skipif((os.cpu_count() or 0) < 2, reason="needs two CPUs")
def test_a_guaranteed_pod_gets_cpus_of_its_own(space: Namespace) -> None:
    script = "grep Cpus_allowed_list /proc/1/status | cut -f2"

    def cpus(name: str) -> str:
        return space.exec(name, script).strip()

    whole = {"resources": {"limits": {"cpu": "1", "memory": "16Mi"}}}
    space.apply(pod("shared", SLEEP))
    space.running("shared")
    everything = cpus("shared")
    space.apply(pod("alone", SLEEP, main=whole))
    found = space.running("alone")
    assert found["status"]["qosClass"] == "Guaranteed"
    own = cpus("alone")
    assert own.isdigit()
    tools.wait_until(lambda: own not in cpus("shared").split(","), "others make room", timeout=30, every=0.2)
    state = space.cluster.layout.node("node-1") / "lib-kubelet/cpu_manager_state"
    kept = json.loads(state.read_text())
    assert kept["entries"] == {found["metadata"]["uid"]: {"main": own}}
    uid = found["metadata"]["uid"]
    quota = space.cluster.inside("cat", f"/sys/fs/cgroup/cpu/kubepods/pod{uid}/cpu.cfs_quota_us").strip()
    assert quota == "-1"
    space.cluster.kill("kubelet")  # a new kubelet knows who has what
    space.kubectl("delete", "pod", "alone")
    space.until("shared", script, f"{everything}\n")


def test_a_restarted_kubelet_leaves_devices_with_those_who_have_them(space: Namespace) -> None:
    folder = space.cluster.layout.node("node-1") / "lib-kubelet/device-plugins"
    name = "example.com/kept"
    wanted = {"resources": {"limits": {name: "1"}}}

    def allocatable() -> str | None:
        return space.cluster.get("node", "node-1")["status"]["allocatable"].get(name)

    async def until(condition: Callable[[], Any], what: str) -> Any:
        return await asyncio.to_thread(tools.wait_until, condition, what, 60.0, 0.1)

    async def scenario() -> None:
        plugin = SamplePlugin(folder, name, "g0", "g1")
        async with plugin:
            await until(lambda: allocatable() == "2", "the node has the devices")
            space.apply(*(pod(each, f"echo $SAMPLE_DEVICES; {SLEEP}", main=wanted) for each in ("first", "second")))
            before = [await asyncio.to_thread(space.running, each) for each in ("first", "second")]
        await until(lambda: allocatable() == "0", "the plugin is away")
        socket = folder / "kubelet.sock"
        old = socket.stat().st_mtime_ns
        space.cluster.kill("kubelet")
        await until(lambda: socket.exists() and socket.stat().st_mtime_ns != old, "plugins may register again")
        async with SamplePlugin(folder, name, "g0", "g1") as again:
            await until(lambda: allocatable() == "2", "the plugin is back")
            for old, each in zip(before, ("first", "second"), strict=True):
                found = space.get(each)["status"]
                assert found["phase"] == "Running"
                assert (
                    found["containerStatuses"][0]["containerID"]
                    == (old["status"]["containerStatuses"][0]["containerID"])
                )
            assert again.allocated == []
            space.kubectl("delete", "pod", "first", "second")

    asyncio.run(scenario())


def test_a_log_is_cut_into_pieces_and_kubectl_reads_on(space: Namespace) -> None:
    script = "i=0; while :; do echo line $i; i=$((i+1)); [ $((i % 50)) = 0 ] && sleep 0.05; done"
    space.apply(pod("chatty", script))
    found = space.running("chatty")
    folder = f"pressure_chatty_{found['metadata']['uid']}/main"
    logs = space.cluster.layout.node("node-1") / "log-pods" / folder

    def names() -> list[str]:
        return os.listdir(logs)

    tools.wait_until(lambda: any(each.endswith(".gz") for each in names()), "a piece is compressed", timeout=120)
    # One that is being compressed is there twice.
    assert len({each.removesuffix(".tmp").removesuffix(".gz") for each in names()}) <= 3
    tools.wait_until(
        lambda: space.kubectl("logs", "chatty", "--tail=1", check=False).startswith("line "),
        "its log is read",
        timeout=60,
    )
    space.kubectl("delete", "pod", "chatty")


def test_under_memory_pressure_the_hungriest_pod_goes_and_others_are_refused(space: Namespace) -> None:
    volumes = [{"name": "m", "emptyDir": {"medium": "Memory"}}]
    mount = {"volumeMounts": [{"name": "m", "mountPath": "/m"}]}
    request = {"resources": {"requests": {"memory": "16Mi"}}}

    def eating(name: str, size: int) -> Any:
        script = f"dd if=/dev/zero of=/m/x bs=1M count={size} 2>&-; {SLEEP}"
        return pod(name, script, main={**mount, **request}, volumes=volumes)

    space.apply(eating("modest", 40))
    space.running("modest")
    space.apply(eating("hungry", 450))
    found = space.wait("hungry", lambda found: found["status"]["phase"] == "Failed", "evicted")
    assert found["status"]["reason"] == "Evicted"
    message = found["status"]["message"]
    assert message.startswith("The node was low on resource: memory. Threshold quantity: 256Mi, available: "), message
    assert "Container main was using " in message
    assert ", request is 16Mi, has larger consumption of memory. " in message
    (condition,) = [each for each in found["status"]["conditions"] if each["type"] == "DisruptionTarget"]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "True",
        "TerminationByKubelet",
        message,
    )
    assert space.event("hungry", "Evicted") == message
    assert space.get("modest")["status"]["phase"] == "Running"
    pressed = tools.wait_until(
        lambda: (found := node_conditions(space.cluster)["MemoryPressure"])["status"] == "True" and found,
        "the node says so",
        timeout=30,
        every=0.1,
    )
    assert (pressed["reason"], pressed["message"]) == (
        "KubeletHasInsufficientMemory",
        "kubelet has insufficient memory available",
    )
    space.apply(pod("refused", SLEEP, nodeName="node-1"))
    found = space.wait("refused", lambda found: found["status"]["phase"] == "Failed", "refused")
    assert (found["status"]["reason"], found["status"]["message"]) == (
        "Evicted",
        "Pod was rejected: The node had condition: [MemoryPressure]. ",
    )
    tools.wait_until(lambda: _tainted(space), "nothing more is scheduled here", timeout=60, every=0.1)
    _relieved(space)
    space.kubectl("delete", "pod", "modest", "hungry", "refused")


def _relieved(space: Namespace) -> None:
    tools.wait_until(
        lambda: node_conditions(space.cluster)["MemoryPressure"]["status"] == "False" and not _tainted(space),
        "it is over",
        timeout=150,
        every=0.2,
    )


def _tainted(space: Namespace) -> bool:
    taints = space.cluster.get("node", "node-1")["spec"].get("taints") or ()
    return any(each["key"] == "node.kubernetes.io/memory-pressure" for each in taints)


def test_the_kernel_kills_before_all_pods_together_take_more_than_they_may(space: Namespace) -> None:
    """`/kubepods` is limited: who is not evicted, being critical, does not take the machine's memory either."""
    space.apply(pod("greedy", "tail /dev/zero; echo killed $?", priorityClassName="system-node-critical"))
    assert "killed 137" in space.logs("greedy")
    space.kubectl("delete", "pod", "greedy")
    _relieved(space)


def test_a_node_that_shuts_down_ends_its_pods_and_takes_no_others(space: Namespace) -> None:
    """The node comes back for the other tests, in whichever order they run, when its kubelet is started again."""
    slow = "trap 'sleep 1; echo goodbye; exit 0' TERM; sleep 3600 & wait"
    critical = {"priorityClassName": "system-cluster-critical"}
    space.apply(
        pod("ordinary", slow, terminationGracePeriodSeconds=30),
        pod("critical", [container(SLEEP)], terminationGracePeriodSeconds=30, **critical),
    )
    space.running("ordinary")
    space.running("critical")
    state = space.cluster.layout.node("node-1") / "lib-kubelet/graceful_node_shutdown_state"
    kubelet = tools.wait_until(lambda: space.cluster.find("kubelet"), "the kubelet runs")
    os.kill(kubelet, signal.SIGPWR)
    for name in ("ordinary", "critical"):
        found = space.wait(name, lambda found: found["status"]["phase"] == "Failed", "ended")
        assert (found["status"]["reason"], found["status"]["message"]) == (
            "Terminated",
            "Pod was terminated in response to imminent node shutdown.",
        )
    ends = [
        space.get(name)["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
        for name in ("ordinary", "critical")
    ]
    assert ends == sorted(ends)
    tools.wait_until(
        lambda: state.exists() and not json.loads(state.read_text())["endTime"].startswith("0001"),
        "the kubelet is done",
        timeout=60,
    )
    tools.wait_until(
        lambda: "node is shutting down" in node_conditions(space.cluster)["Ready"]["message"],
        "the node is not ready",
        timeout=60,
    )
    assert node_conditions(space.cluster)["Ready"]["status"] == "False"
    space.apply(pod("late", SLEEP, nodeName="node-1"))
    found = space.wait("late", lambda found: found["status"]["phase"] == "Failed", "refused")
    assert (found["status"]["reason"], found["status"]["message"]) == (
        "NodeShutdown",
        "Pod was rejected: Pod was rejected as the node is shutting down.",
    )
    space.kubectl("delete", "pod", "ordinary", "critical", "late")
    space.cluster.kill("kubelet")
    space.cluster.wait_ready()
