"""The first sentence of `pyb why`, for every state that a pod can hang in."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.cluster.diagnosis import Facts, explain, explain_maker

READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
AWAY = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting."}]}}


def pod(*, status: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", **(metadata or {})},
        "spec": {"containers": [{"name": "c"}], **spec},
        "status": status or {"phase": "Pending"},
    }


def running(container: dict[str, Any], *, init: bool = False, **spec: Any) -> dict[str, Any]:
    key = "initContainerStatuses" if init else "containerStatuses"
    return pod(nodeName="n", status={"phase": "Pending", key: [{"name": "c", "image": "i:1", **container}]}, **spec)


def event(reason: str, message: str) -> dict[str, Any]:
    return {"type": "Warning", "reason": reason, "message": message}


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}, **more}


CLAIM = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
UNBOUND: dict[str, Any] = {"spec": {}, "status": {"phase": "Pending"}}


def of_class(name: str) -> dict[str, Any]:
    return {"spec": {"storageClassName": name}, "status": {"phase": "Pending"}}


CRASHED = {"terminated": {"exitCode": 139}}
DELETED = {"deletionTimestamp": "T", "deletionGracePeriodSeconds": 30}
LATE = {"phase": "Running", "containerStatuses": [{"name": "c", "state": {"running": {}}, "ready": True}]}
NO_FIT = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes: Insufficient cpu."}]}


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (Facts(pod(volumes=CLAIM), claims={"data": None}), "the claim data does not exist"),
        (Facts(pod(volumes=CLAIM), claims={"data": UNBOUND}), "the claim data names no StorageClass"),
        (
            Facts(pod(volumes=CLAIM), claims={"data": of_class("fast")}),
            "the claim data names the StorageClass fast, which does not exist",
        ),
        (
            Facts(
                pod(volumes=CLAIM),
                claims={"data": of_class("fast")},
                classes={"fast": {"provisioner": "x"}},
                claim_events={"data": [event("ProvisioningFailed", "quota is used up")]},
            ),
            "no volume could be made for the claim data: quota is used up",
        ),
        (Facts(pod(schedulingGates=[{"name": "g"}])), "it has scheduling gates (g)"),
        (Facts(pod(status=NO_FIT)), "no node fits: 0/1 nodes: Insufficient cpu."),
        (Facts(pod()), "default-scheduler has not looked at it yet"),
        (Facts(running(waiting("ErrImagePull", "no such host")), node=READY), "the image i:1 of container c cannot"),
        (
            Facts(
                running(waiting("ImagePullBackOff", "Back-off pulling")),
                events=[event("Failed", "Failed to pull image: 404")],
                node=READY,
            ),
            "the image i:1 of container c cannot be had: Failed to pull image: 404",
        ),
        (
            Facts(running(waiting("CreateContainerConfigError", 'configmap "x" not found')), node=READY),
            'container c cannot be started: configmap "x" not found',
        ),
        (
            Facts(
                running(waiting("CrashLoopBackOff", lastState=CRASHED, restartCount=3)), logs={"c": "boom"}, node=READY
            ),
            "container c keeps ending: exit code 139 (SIGSEGV); it was started again 3 times",
        ),
        (
            Facts(running(waiting("CrashLoopBackOff", lastState=CRASHED, restartCount=1), init=True), node=READY),
            "init container c keeps ending: exit code 139 (SIGSEGV)",
        ),
        (Facts(running({"state": {"running": {}}}, init=True), node=READY), "init container c has not ended yet"),
        (
            Facts(running(waiting("ContainerCreating")), events=[event("FailedMount", "no secret")], node=READY),
            "a volume cannot be mounted: no secret",
        ),
        (
            Facts(running(waiting("ContainerCreating")), events=[event("FailedCreatePodSandBox", "no IP")], node=READY),
            "its sandbox cannot be made: no IP",
        ),
        (
            Facts(
                running(waiting("ContainerCreating")),
                events=[event("FailedPrepareDynamicResources", "Failed to prepare dynamic resources: no driver x")],
                node=READY,
            ),
            "the devices of its ResourceClaims cannot be had: no driver x",
        ),
        *(
            (Facts(running(waiting(reason, "why")), node=READY), "the image i:1 of container c cannot be had: why")
            for reason in ("InvalidImageName", "ErrImageNeverPull", "ImageInspectError")
        ),
        *(
            (Facts(running(waiting(reason, "why")), node=READY), "container c cannot be started: why")
            for reason in ("CreateContainerError", "RunContainerError", "PostStartHookError")
        ),
        (Facts(running(waiting("ContainerCreating")), node=AWAY), "its node n is not ready: Kubelet stopped posting."),
        (Facts(pod(nodeName="ghost")), "it is assigned to node ghost, which does not exist"),
        (
            Facts(
                running({"state": {"running": {}}, "started": True, "ready": False}),
                events=[event("Unhealthy", "Readiness probe failed: 503")],
                node=READY,
            ),
            "container c is not ready: Readiness probe failed: 503",
        ),
        (
            Facts(running({"state": {"running": {}}, "started": False, "ready": False}), node=READY),
            "container c has not started",
        ),
        (
            Facts(pod(nodeName="n", status=LATE, readinessGates=[{"conditionType": "x/y"}]), node=READY),
            "its readiness gate x/y is not True",
        ),
        (Facts(pod(nodeName="n", metadata=DELETED)), "it is being deleted since T, but its node n is gone"),
        (Facts(pod(nodeName="n", metadata=DELETED), node=AWAY), "it is being deleted since T, but its node n does not"),
        (
            Facts(pod(nodeName="n", metadata=DELETED, status=LATE), node=READY),
            "it is being deleted; container c may take up to 30 s to end",
        ),
        (
            Facts(pod(nodeName="n", metadata={**DELETED, "finalizers": ["a/b"]}), node=READY),
            "it is being deleted and waits until its finalizers are removed: a/b",
        ),
        (Facts(pod(status={"phase": "Failed", "reason": "Evicted", "message": "disk"})), "it failed: Evicted: disk"),
        (
            Facts(
                pod(
                    status={
                        "phase": "Failed",
                        "containerStatuses": [
                            {"name": "c", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
                        ],
                    }
                )
            ),
            "it failed: container c ended with exit code 137 (SIGKILL), killed because it exceeded its memory limit",
        ),
        (Facts(pod(status={"phase": "Succeeded"})), "it has completed"),
    ],
)
def test_the_first_sentence_names_the_cause(facts: Facts, sentence: str) -> None:
    assert explain(facts).sentence.startswith(sentence)


def test_a_container_that_keeps_ending_shows_the_end_of_its_log() -> None:
    lines = "\n".join(str(number) for number in range(20))
    crashed = running(waiting("CrashLoopBackOff", lastState=CRASHED, restartCount=3))
    answer = explain(Facts(crashed, logs={"c": lines}, node=READY))
    assert answer.details == ("The last lines of c:", *(f"  {number}" for number in range(10, 20)))


def test_what_makes_pods_says_why_they_are_refused() -> None:
    condition = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: q"}
    replicas = {"spec": {}, "status": {"conditions": [condition]}}
    assert (
        explain_maker("Deployment", {"spec": {}}, [], [replicas]).sentence == "its pods are refused: exceeded quota: q"
    )
    refused = [event("FailedCreate", 'violates PodSecurity "restricted"')]
    assert "PodSecurity" in explain_maker("Job", {"spec": {}}, refused, []).sentence
    assert explain_maker("Deployment", {"spec": {"paused": True}}, [], []).sentence == "the Deployment is paused"
