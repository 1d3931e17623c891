"""Simulated nodes run pods, and fail when configured to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubelet.simulated.cluster import RULES, Simulation, first, pod

import tools
from pybernetes.api.core.v1 import Pod
from pybernetes.client import config
from pybernetes.client.client import Client

PREFIX = "simulated.pybernetes.io/"


def conditions(simulation: Simulation, node: str) -> dict[str, str]:
    found = simulation.get("node", node)["status"]["conditions"]
    return {each["type"]: each["status"] for each in found}


def on(node: str, **more: Any) -> dict[str, Any]:
    return {"nodeName": node, **more}


def with_resources(node: str = "", **resources: dict[str, str]) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "x", "resources": resources}]}
    return {**spec, "nodeName": node} if node else spec


def test_a_node_refuses_what_it_has_no_room_for(simulation: Simulation) -> None:
    simulation.apply(pod("too-big", with_resources("sim-0001", requests={"cpu": "100"})))
    status = simulation.wait_for("too-big", lambda status: status["phase"] == "Failed", "it is refused")
    assert status["reason"] == "OutOfcpu"
    assert status["message"].startswith("Pod was rejected: Node didn't have enough resource: cpu, requested: 100000")
    tools.wait_until(
        lambda: "OutOfcpu" in [reason for reason, _ in simulation.events("too-big")], "it is reported", every=0.2
    )
    simulation.apply(pod("elsewhere", on("sim-0001", nodeSelector={"no": "such"})))
    status = simulation.wait_for("elsewhere", lambda status: status["phase"] == "Failed", "it is refused")
    assert status["reason"] == "NodeAffinity"
    simulation.kubectl("delete", "pod", "too-big", "elsewhere")


def test_too_much_memory_is_the_end_of_a_container(simulation: Simulation) -> None:
    limits = {"limits": {"memory": "100Mi"}}
    simulation.apply(pod("hungry", with_resources(**limits), memory="0s=10Mi, 1s=200Mi"))
    status = simulation.wait_for("hungry", lambda s: first(s).get("lastState"), "it is killed")
    last = first(status)["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"]) == ("OOMKilled", 137)
    simulation.kubectl("delete", "pod", "hungry", "--wait=false")


def test_a_pod_waits_for_what_it_mounts_and_for_its_environment(simulation: Simulation) -> None:
    volume = {"name": "v", "configMap": {"name": "later"}}
    simulation.apply(pod("mounting", {"volumes": [volume]}))
    wanted = ("FailedMount", 'MountVolume.SetUp failed for volume "v" : configmap "later" not found')
    tools.wait_until(lambda: wanted in simulation.events("mounting"), "it is reported", every=0.2)
    status = simulation.wait_for("mounting", lambda status: status.get("containerStatuses"), "it is reported")
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "later", "key": "k"}}}]
    simulation.apply(pod("reading", {"containers": [{"name": "c", "image": "x", "env": env}]}))
    status = simulation.wait_for("reading", lambda status: status.get("containerStatuses"), "it is reported")
    assert status["containerStatuses"][0]["state"]["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": 'secret "later" not found',
    }
    simulation.kubectl("create", "configmap", "later")
    simulation.kubectl("create", "secret", "generic", "later", "--from-literal=k=v")
    simulation.ready("mounting")
    simulation.ready("reading")
    simulation.kubectl("delete", "pod", "mounting", "reading", "--wait=false")


def test_a_silent_node_does_nothing_until_it_is_back(simulation: Simulation) -> None:
    node = "sim-0002"
    simulation.apply(pod("left-alone", on(node)))
    simulation.ready("left-alone")
    simulation.kubectl("annotate", "node", node, f"{PREFIX}silent=true")

    def unheard() -> bool:
        return simulation.run("get", "--raw", f"/api/v1/nodes/{node}/proxy/healthz").returncode != 0

    tools.wait_until(unheard, "its kubelet does not answer", every=0.2)
    lease = simulation.get("lease", node, "-n", "kube-node-lease")["spec"]["renewTime"]
    simulation.kubectl("delete", "pod", "left-alone", "--wait=false")
    simulation.apply(pod("unseen", on(node)))
    simulation.apply(pod("seen", on("sim-0003")))
    simulation.ready("seen")
    assert simulation.get("pod", "unseen")["status"]["phase"] == "Pending"
    assert simulation.get("pod", "left-alone")["metadata"]["deletionTimestamp"]
    assert simulation.get("lease", node, "-n", "kube-node-lease")["spec"]["renewTime"] == lease
    simulation.kubectl("annotate", "node", node, f"{PREFIX}silent-")
    simulation.ready("unseen")
    gone = lambda: simulation.run("get", "pod", "left-alone").returncode == 1  # noqa: E731
    tools.wait_until(gone, "the deleted pod ends", every=0.2)
    simulation.kubectl("delete", "pod", "unseen", "seen", "--wait=false")


def test_a_node_that_is_deleted_stays_away_until_it_is_created_or_its_machine_goes_on_again(
    simulation: Simulation,
) -> None:
    node = "sim-0003"
    simulation.apply(pod("orphan", on(node)))
    simulation.ready("orphan")
    simulation.kubectl("delete", "node", node)
    gone = lambda: simulation.run("get", "lease", node, "-n", "kube-node-lease").returncode == 1  # noqa: E731
    tools.wait_until(gone, "its lease goes with it", every=0.2)
    log = simulation.folder / "data" / "logs" / "simulated-nodes.log"
    tools.wait_until(lambda: f"node {node} not found" in log.read_text(), "it is reported", every=0.2)
    assert simulation.run("get", "node", node).returncode == 1
    simulation.kubectl("delete", "pod", "orphan")  # its kubelet still lives
    simulation.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    simulation.kubectl("wait", f"node/{node}", "--for=condition=Ready", "--timeout=60s")
    try:
        simulation.rules.write_text(f"{RULES}nodes:\n- name: {node}\n  settings: {{silent: true}}\n")
        proxied = f"/api/v1/nodes/{node}/proxy/healthz"
        tools.wait_until(lambda: simulation.run("get", "--raw", proxied).returncode, "its machine is off", every=0.2)
        simulation.kubectl("delete", "node", node)
    finally:
        simulation.rules.write_text(RULES)
    tools.wait_until(lambda: simulation.run("get", "node", node).returncode == 0, "it is registered", every=0.2)
    simulation.kubectl("wait", f"node/{node}", "--for=condition=Ready", "--timeout=60s")


def test_a_node_is_not_ready_or_short_of_something_as_annotations_say(simulation: Simulation) -> None:
    node = "sim-0004"
    simulation.kubectl("annotate", "node", node, f"{PREFIX}not-ready=no network", f"{PREFIX}pressure=MemoryPressure")
    wanted = {"Ready": "False", "MemoryPressure": "True", "DiskPressure": "False", "PIDPressure": "False"}
    tools.wait_until(lambda: wanted.items() <= conditions(simulation, node).items(), "it says so", every=0.2)
    simulation.apply(pod("unwelcome", on(node)))
    status = simulation.wait_for("unwelcome", lambda status: status["phase"] == "Failed", "it is refused")
    assert (status["reason"], "MemoryPressure" in status["message"]) == ("Evicted", True)
    taints = [each["key"] for each in simulation.get("node", node)["spec"]["taints"]]
    assert "node.kubernetes.io/memory-pressure" in taints
    simulation.kubectl("annotate", "node", node, f"{PREFIX}not-ready-", f"{PREFIX}pressure-")
    tools.wait_until(lambda: conditions(simulation, node)["Ready"] == "True", "it is well again", every=0.2)
    simulation.kubectl("delete", "pod", "unwelcome")


@pytest.mark.soak
def test_pods_that_use_more_memory_than_the_node_has_are_evicted(simulation: Simulation) -> None:
    spec = on("sim-0005")
    simulation.apply(pod("modest", spec, memory="10Gi"), pod("greedy", spec, memory="0s=1Gi, 1s=300Gi"))
    status = simulation.wait_for("greedy", lambda status: status["phase"] == "Failed", "it is evicted")
    assert status["reason"] == "Evicted"
    assert status["message"].startswith(
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 0."
    )
    assert "TerminationByKubelet" in [each.get("reason") for each in status["conditions"]]
    assert simulation.get("pod", "modest")["status"]["phase"] == "Running"
    simulation.kubectl("delete", "pod", "modest", "greedy", "--wait=false")
    tools.wait_until(
        lambda: conditions(simulation, "sim-0005")["MemoryPressure"] == "False", "there is enough again", every=0.3
    )


def test_an_invalid_setting_of_a_node_is_reported(simulation: Simulation) -> None:
    simulation.kubectl("annotate", "node", "sim-0005", f"{PREFIX}silent=perhaps")
    wanted = ("BadSimulation", f"{PREFIX}silent: must be true or false: 'perhaps'")
    tools.wait_until(lambda: wanted in simulation.events("sim-0005"), "it is reported", every=0.2)
    simulation.kubectl("annotate", "node", "sim-0005", f"{PREFIX}silent-")


async def resize(simulation: Simulation, name: str, cpu: str) -> None:
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    async with Client(config.load(str(simulation.folder / "config"))) as client:
        await client.patch(Pod, name, body, "default", type="strategic", subresource="resize")


def test_a_pod_is_resized_in_place_or_waits_for_room(simulation: Simulation) -> None:
    simulation.apply(pod("growing", with_resources("sim-0005", requests={"cpu": "1"})))
    simulation.ready("growing")

    def has(cpu: str) -> Any:
        return lambda status: status["containerStatuses"][0]["resources"]["requests"]["cpu"] == cpu

    asyncio.run(resize(simulation, "growing", "2"))
    status = simulation.wait_for("growing", has("2"), "it has more")
    assert status["containerStatuses"][0]["restartCount"] == 0
    simulation.apply(pod("big", with_resources("sim-0005", requests={"cpu": "29"})))
    simulation.ready("big")
    asyncio.run(resize(simulation, "growing", "20"))
    pending = lambda status: [each for each in status["conditions"] if each["type"] == "PodResizePending"]  # noqa: E731
    status = simulation.wait_for("growing", pending, "it waits")
    assert pending(status)[0]["reason"] == "Deferred"
    assert has("2")(status)
    simulation.kubectl("delete", "pod", "big")
    status = simulation.wait_for("growing", has("20"), "there is room")
    assert not pending(status)
    simulation.kubectl("delete", "pod", "growing", "--wait=false")


def test_nodes_speak_for_themselves(simulation: Simulation) -> None:
    simulation.apply(pod("named", on("sim-0003")))
    simulation.ready("named")
    managers = {each["manager"] for each in simulation.get("pod", "named")["metadata"]["managedFields"]}
    assert "kubelet" in managers
    found = tools.wait_until(
        lambda: simulation.get("events", "--field-selector=involvedObject.name=named,reason=Started")["items"],
        "events are there",
        every=0.2,
    )
    assert found[0]["source"] == {"component": "kubelet", "host": "sim-0003"}
    simulation.kubectl("delete", "pod", "named", "--wait=false")


@pytest.mark.soak
def test_an_autoscaler_follows_what_pods_use(simulation: Simulation) -> None:
    simulation.kubectl("create", "deployment", "scaled", "--image=x")
    change = (
        '{"spec":{"template":{"metadata":{"annotations":{"simulated.pybernetes.io/cpu":"900m"}},'
        '"spec":{"containers":[{"name":"x","resources":{"requests":{"cpu":"1"}}}]}}}}'
    )
    simulation.kubectl("patch", "deployment", "scaled", "-p", change)
    simulation.kubectl("autoscale", "deployment", "scaled", "--cpu-percent=45", "--min=1", "--max=4")
    tools.wait_until(
        lambda: simulation.get("deployment", "scaled")["spec"]["replicas"] == 4, "it scales up", timeout=120, every=1
    )
    simulation.kubectl("delete", "hpa,deployment", "scaled")


def test_probes_decide_as_on_a_real_node(simulation: Simulation) -> None:
    probe = {"httpGet": {"port": 80}, "periodSeconds": 1}
    container = {"name": "c", "image": "x", "livenessProbe": probe, "readinessProbe": probe}
    simulation.apply(pod("probed", {"containers": [container]}, ready_after="2s", liveness_probe="4s=failure"))
    simulation.ready("probed")
    seen = ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
    tools.wait_until(lambda: seen in simulation.events("probed"), "it is reported", every=0.2)
    simulation.wait_for("probed", lambda s: s["containerStatuses"][0]["restartCount"], "it is restarted")
    killed = ("Killing", "Container c failed liveness probe, will be restarted")
    tools.wait_until(lambda: killed in simulation.events("probed"), "it is reported", every=0.2)
    simulation.kubectl("delete", "pod", "probed", "--wait=false")
