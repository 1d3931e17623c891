"""Pods that no other component deletes."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.times import rfc3339
from pybernetes.controllers.options import Options
from pybernetes.controllers.podgc import on_nodes_out_of_service, terminated, unscheduled_terminating

NAME = "pod-garbage-collector-controller"
NOW = 1_700_000_000.0


def pod(
    name: str, phase: str = "Running", node: str = "", age: float = 0, deleted: bool = False, reason: str = ""
) -> Pod:
    meta = {
        "name": name,
        "creationTimestamp": rfc3339(NOW - age),
        "deletionTimestamp": rfc3339(NOW) if deleted else None,
    }
    return msgspec.convert(
        {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": phase, "reason": reason}}, Pod
    )


def node(name: str, ready: str = "True", taint: str | None = None) -> Node:
    taints = [{"key": taint, "effect": "NoExecute"}] if taint else []
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return msgspec.convert({"metadata": {"name": name}, "spec": {"taints": taints}, "status": status}, Node)


def names(pods: list[Pod]) -> list[str | None]:
    return [each.metadata.name for each in pods if each.metadata]


def test_ended_pods_beyond_the_limit_go_evicted_first_then_the_oldest() -> None:
    pods = [
        pod("running"),
        pod("young", "Succeeded", age=1),
        pod("old", "Failed", age=3),
        pod("older", "Succeeded", age=5),
        pod("evicted", "Failed", reason="Evicted"),
    ]
    assert names(terminated(pods, 2)) == ["evicted", "older"]
    assert terminated(pods, 4) == []
    assert terminated(pods, 0) == []


def test_deleted_pods_on_nodes_out_of_service_go() -> None:
    taint = "node.kubernetes.io/out-of-service"
    nodes = [node("lost", "Unknown", taint), node("back", "True", taint), node("slow", "Unknown")]
    pods = [
        pod(f"{each.metadata.name}-pod", node=each.metadata.name or "", deleted=True) for each in nodes if each.metadata
    ]
    pods.append(pod("kept", node="lost"))
    assert names(on_nodes_out_of_service(pods, nodes)) == ["lost-pod"]


def test_deleted_pods_without_node_go() -> None:
    pods = [pod("gone", deleted=True), pod("bound", node="n", deleted=True), pod("pending")]
    assert names(unscheduled_terminating(pods)) == ["gone"]


def real_pod(h: Any, name: str, node: str | None = None, finalizer: str | None = None) -> Pod:
    meta = {"name": name, "namespace": h.namespace, "finalizers": [finalizer] if finalizer else None}
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "busybox"}]}
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


async def test_pods_of_a_node_that_is_gone_fail_and_go_after_a_while(harness) -> None:
    async with harness(NAME) as h:
        await h.client.create(msgspec.convert({"metadata": {"name": "here"}}, Node))
        await h.client.create(real_pod(h, "fine", "here"))
        await h.client.create(real_pod(h, "lost", "elsewhere", "example.com/look"))
        await h.until(
            lambda: len(h.live(Pod)) == 2 and all(each.status.phase == "Running" for each in h.live(Pod)), "run"
        )
        await h.controller(NAME).collect()
        assert len(await h.list(Pod)) == 2
        h.clock.advance(41)
        await h.until(lambda: names(h.live(Pod)) == ["fine"], "the lost one goes")
        lost = await h.get(Pod, "lost")
        assert lost.status.phase == "Failed"
        condition = next(each for each in lost.status.conditions if each.type == "DisruptionTarget")
        assert (condition.status, condition.reason, condition.message) == (
            "True",
            "DeletionByPodGC",
            "PodGC: node no longer exists",
        )


async def test_ended_pods_are_kept_up_to_the_threshold(harness) -> None:
    async with harness(NAME, options=Options(terminated_pod_gc_threshold=1)) as h:
        for name in ("a", "b", "c"):
            made = real_pod(h, name)
            made.metadata.annotations = {"fake-kubelet/exit-code": "0"}
            await h.client.create(made)
        await h.until(lambda: all(each.status.phase == "Succeeded" for each in h.live(Pod)), "all have ended")
        h.clock.advance(21)
        await h.until(lambda: len(h.live(Pod)) <= 1, "all but one are gone")
