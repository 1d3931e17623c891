"""Simulated nodes beside a real control plane: what users see of them."""

from __future__ import annotations

import os
from typing import Any

from kubelet.simulated.cluster import NODES, Simulation

import tools


def test_nodes_are_ready_and_have_leases(simulation: Simulation) -> None:
    nodes = simulation.get("nodes")["items"]
    assert [node["metadata"]["name"] for node in nodes] == [f"sim-{number:04}" for number in range(1, NODES + 1)]
    for node in nodes:
        ready = {each["type"]: each["status"] for each in node["status"]["conditions"]}
        assert ready["Ready"] == "True"
        assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("simulated://")
    # A kubelet reports that it is ready and renews its lease beside that.
    tools.wait_until(
        lambda: len(simulation.get("leases", "-n", "kube-node-lease")["items"]) == NODES, "all have leases", every=0.2
    )


def test_a_deployment_is_rolled_out_scaled_and_deleted(simulation: Simulation) -> None:
    # Taints of nodes that other tests made ill go a moment after they are well.
    tainted = lambda: [each for each in simulation.get("nodes")["items"] if each["spec"].get("taints")]  # noqa: E731
    tools.wait_until(lambda: not tainted(), "every node takes pods", every=0.2)
    simulation.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=20")
    simulation.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    pods = simulation.get("pods", "-l", "app=web")["items"]
    assert len({pod["status"]["podIP"] for pod in pods}) == 20
    assert {pod["spec"]["nodeName"] for pod in pods} == {f"sim-{number:04}" for number in range(1, NODES + 1)}
    simulation.kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    simulation.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    simulation.kubectl("delete", "deployment", "web")
    tools.wait_until(lambda: not simulation.get("pods", "-l", "app=web")["items"], "all pods are gone")


def test_a_job_finishes_and_rules_say_what_else_happens(simulation: Simulation) -> None:
    simulation.kubectl("create", "job", "work", "--image=x", "--", "true")
    simulation.kubectl("wait", "job/work", "--for=condition=Complete", "--timeout=60s")
    simulation.kubectl("run", "short-1", "--image=x", "--restart=Never")

    def ended() -> Any:
        status = simulation.get("pod", "short-1")["status"]
        return status if status.get("phase") == "Failed" else None

    status = tools.wait_until(ended, "the pod fails")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 4


def test_pods_outlive_the_process_that_pretends_them(simulation: Simulation) -> None:
    simulation.kubectl("run", "lasting", "--image=x")
    simulation.kubectl("wait", "pod/lasting", "--for=condition=Ready", "--timeout=60s")
    before = simulation.get("pod", "lasting")["status"]
    first = simulation.pid()
    assert first is not None
    os.kill(first, 9)
    tools.wait_until(lambda: simulation.pid() not in (None, first), "the process is started again")
    simulation.kubectl("run", "later", "--image=x")
    simulation.kubectl("wait", "pod/later", "--for=condition=Ready", "--timeout=60s")
    assert simulation.get("pod", "lasting")["status"] == before
