"""The first sentence of `pyb why`, for every state that a pod can hang in."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.trace.why.claims import explain_claim
from pybernetes.trace.why.facts import Facts
from pybernetes.trace.why.makers import explain_maker, summary, worst
from pybernetes.trace.why.others import explain_namespace, explain_node
from pybernetes.trace.why.pods import explain

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


def event(reason: str, message: str, **more: Any) -> dict[str, Any]:
    return {"type": "Warning", "reason": reason, "message": message, **more}


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}, **more}


CLAIM = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]


def unbound(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "data", "namespace": "x"}, "spec": spec, "status": {"phase": "Pending"}}


def of_class(name: str) -> dict[str, Any]:
    return unbound(storageClassName=name)


UNBOUND = unbound()


CRASHED = {"terminated": {"exitCode": 139}}
DELETED = {"deletionTimestamp": "T", "deletionGracePeriodSeconds": 30}
LATE = {"phase": "Running", "containerStatuses": [{"name": "c", "state": {"running": {}}, "ready": True}]}


def unscheduled(reason: str, message: str, **more: Any) -> dict[str, Any]:
    found = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {"phase": "Pending", "conditions": [found], **more}


NO_FIT = unscheduled("Unschedulable", "0/1 nodes: Insufficient cpu.")
IN_CONTAINER = {"involvedObject": {"fieldPath": "spec.containers{c}"}}
IN_ANOTHER = {"involvedObject": {"fieldPath": "spec.containers{other}"}}
NOT_READY = {"state": {"running": {}}, "started": True, "ready": False}
READY_POD = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [{"name": "c", "state": {"running": {}}, "started": True, "ready": True}],
}
LOOPS = waiting("CrashLoopBackOff", lastState={"terminated": {"exitCode": 137, "startedAt": "T1"}}, restartCount=2)
HOOK = [{"name": "c", "lifecycle": {"postStart": {"exec": {}}}}]


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
        (Facts(pod(nodeName="n", metadata=DELETED)), "it is being deleted, but its node n is gone"),
        (Facts(pod(nodeName="n", metadata=DELETED), node=AWAY), "it is being deleted, but its node n does not"),
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
        # What an event said of a time before the pod got further is not the cause.
        (
            Facts(running(waiting("ContainerCreating")), events=[event("FailedScheduling", "no room")], node=READY),
            "node n is making its containers",
        ),
        (
            Facts(
                running(waiting("ContainerCreating")),
                events=[event("FailedMount", "no secret"), event("Pulling", 'Pulling image "i"', lastTimestamp="T3")],
                node=READY,
            ),
            'node n is pulling an image (Pulling image "i"), since T3',
        ),
        (
            Facts(running(waiting("ContainerCreating")), events=[event("NetworkNotReady", "no CNI")], node=READY),
            "its sandbox cannot be made: no CNI",
        ),
        (
            Facts(pod(nodeName="n"), events=[event("Scheduled", "assigned")], node=READY),
            "it is assigned to node n, whose kubelet has reported nothing about it yet",
        ),
        (
            Facts(pod(status=unscheduled("SchedulerError", "an extender does not answer"))),
            "it could not be scheduled: an extender does not answer",
        ),
        (
            Facts(pod(status={**NO_FIT, "nominatedNodeName": "n"})),
            "it waits for room on node n, where pods of lower priority have to end first; before that: 0/1 nodes",
        ),
        (Facts(pod(schedulerName="mine")), "no scheduler of the name mine, which it asks for, has looked at it yet"),
        (
            Facts(pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}]), resource_claims={"one": None}),
            "the ResourceClaim one does not exist",
        ),
        (
            Facts(
                pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}]),
                events=[event("FailedResourceClaimCreation", "no template t")],
            ),
            "the ResourceClaim for its gpu has not been made from its template: no template t",
        ),
        (
            Facts(pod(volumes=CLAIM), claims={"data": unbound(volumeName="v1")}, volumes={"v1": None}),
            "the claim data names the PersistentVolume v1, which does not exist",
        ),
        (
            Facts(
                pod(volumes=CLAIM),
                claims={"data": unbound(volumeName="v1")},
                volumes={"v1": {"spec": {"claimRef": {"namespace": "x", "name": "other"}}}},
            ),
            "the claim data names the PersistentVolume v1, which belongs to the claim x/other",
        ),
        (
            Facts(
                running(NOT_READY),
                events=[
                    event("Unhealthy", "Readiness probe failed: 503", **IN_CONTAINER),
                    event("Unhealthy", "Liveness probe failed: 500", **IN_CONTAINER),
                    event("Unhealthy", "Readiness probe failed: 404", **IN_ANOTHER),
                ],
                node=READY,
            ),
            "container c is not ready: Readiness probe failed: 503",
        ),
        (
            Facts(running({**NOT_READY, "started": False}, containers=HOOK), node=READY),
            "container c has not started: its postStart hook has not ended yet",
        ),
        (
            Facts(
                running(waiting("ContainerCreating"), containers=HOOK),
                events=[event("Started", "Container started", **IN_CONTAINER)],
                node=READY,
            ),
            "container c runs, and its postStart hook has not ended yet",
        ),
        (
            Facts(running(NOT_READY), events=[event("Unhealthy", "Readiness probe failed: ")], node=READY),
            "container c is not ready: Readiness probe failed",
        ),
        (
            Facts(
                running(LOOPS),
                events=[
                    event("Unhealthy", "Liveness probe failed: 500", **IN_CONTAINER),
                    event("Killing", "Container c failed liveness probe, will be restarted", lastTimestamp="T2"),
                ],
                node=READY,
            ),
            "container c is killed because its liveness probe fails: Liveness probe failed: 500; it was started",
        ),
        (
            Facts(
                running(LOOPS),
                events=[event("Killing", "Container c failed liveness probe, will be restarted", lastTimestamp="T0")],
                node=READY,
            ),
            "container c is killed because its liveness probe fails: Container c failed liveness probe",
        ),
        (
            Facts(
                running(waiting("CrashLoopBackOff", lastState={"terminated": {"exitCode": 1, "startedAt": "T1"}})),
                events=[event("Killing", "Container c failed liveness probe, will be restarted", lastTimestamp="T0")],
                node=READY,
            ),
            "container c keeps ending: exit code 1",
        ),
        (
            Facts(pod(nodeName="n", metadata=DELETED, status=LATE), node=READY, now="U"),
            "it is being deleted, but container c has not ended, though its grace period was over at T",
        ),
        (
            Facts(
                pod(
                    nodeName="n",
                    status={
                        **READY_POD,
                        "ephemeralContainerStatuses": [{"name": "d", "image": "i", **waiting("ErrImagePull", "404")}],
                    },
                ),
                node=READY,
            ),
            "it is running and ready, but the image i of ephemeral container d cannot be had: 404",
        ),
        (
            Facts(pod(metadata={"initializers": {"pending": [{"name": "a"}, {"name": "b"}]}})),
            "it is not visible yet: it waits for the initializer a, then for b",
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


def test_a_pending_resize_is_reported_for_a_running_pod() -> None:
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no room"}
    status = {**READY_POD, "conditions": [*READY_POD["conditions"], pending]}
    answer = explain(Facts(pod(nodeName="n", status=status), node=READY))
    assert answer.sentence == "it is running and ready, on node n"
    assert answer.details == ("Its resize is pending: Deferred: no room",)


def maker(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "m"}, "spec": {"replicas": 1}, "status": {"observedGeneration": 1, **status}}


def test_what_makes_pods_says_why_they_are_refused() -> None:
    condition = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: q"}
    replicas = {"spec": {}, "status": {"conditions": [condition]}}
    answer = explain_maker("Deployment", maker(), [], [replicas])
    assert answer is not None
    assert answer.sentence == "its pods are refused: exceeded quota: q"
    refused = [event("FailedCreate", 'violates PodSecurity "restricted"')]
    answer = explain_maker("ReplicaSet", maker(), refused, [])
    assert answer is not None
    assert "PodSecurity" in answer.sentence
    assert explain_maker("ReplicaSet", maker(readyReplicas=1), refused, []) is None, "it has all its pods by now"


@pytest.mark.parametrize(
    ("kind", "thing", "sentence"),
    [
        ("Deployment", {**maker(), "spec": {"paused": True}}, "the Deployment is paused"),
        ("Job", {**maker(), "spec": {"suspend": True}}, "the Job is suspended"),
        ("Job", maker(conditions=[{"type": "Complete", "status": "True"}]), "the Job is complete"),
        (
            "Job",
            maker(conditions=[{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "x"}]),
            "BackoffLimitExceeded: x",
        ),
        ("DaemonSet", maker(desiredNumberScheduled=0), "no node is for it"),
        ("StatefulSet", {**maker(), "status": {}}, "the controller manager has not looked at the StatefulSet yet"),
    ],
)
def test_what_makes_pods_says_why_it_makes_none(kind: str, thing: dict[str, Any], sentence: str) -> None:
    answer = explain_maker(kind, thing, [], [])
    assert answer is not None
    assert answer.sentence.startswith(sentence)


def test_of_several_pods_the_oldest_that_is_not_ready_is_explained() -> None:
    def of(name: str, created: str, status: dict[str, Any], **more: Any) -> dict[str, Any]:
        return pod(metadata={"name": name, "creationTimestamp": created, **more}, status=status)

    pods = [
        of("going", "T0", {"phase": "Running"}, deletionTimestamp="T9"),
        of("young", "T3", {"phase": "Pending"}),
        of("old", "T2", {"phase": "Pending"}),
        of("fine", "T1", READY_POD),
        of("done", "T1", {"phase": "Succeeded"}),
    ]
    found = worst(pods)
    assert found is not None
    assert found["metadata"]["name"] == "old"
    assert worst(pods[3:]) is None
    assert summary("ReplicaSet", {"spec": {"replicas": 3}}, pods[2:4]) == "1 of its 3 pods is ready"
    assert summary("ReplicaSet", {"spec": {"replicas": 3}}, []) == "it has none of its 3 pods"


def test_a_claim_says_what_it_waits_for() -> None:
    late = {"late": {"provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer"}}
    answer = explain_claim(Facts({}, claims={"data": of_class("late")}, classes=late), "data", [])
    assert answer.sentence.startswith("it is bound when a pod that uses it is scheduled")
    going = of_class("late")
    going["metadata"] |= {"deletionTimestamp": "T", "finalizers": ["kubernetes.io/pvc-protection"]}
    assert "now web would" in explain_claim(Facts({}, claims={"data": going}), "data", ["web"]).sentence


def test_a_node_says_why_it_is_not_ready() -> None:
    def node(**spec: Any) -> dict[str, Any]:
        return {"metadata": {"name": "n"}, "spec": spec, **READY}

    assert explain_node({**node(), "status": {}}, None, []).sentence == "no kubelet has reported it yet"
    lease = {"spec": {"renewTime": "T5"}}
    silent = explain_node({**node(), **AWAY}, lease, []).sentence
    assert silent == "its kubelet has been silent since T5: Kubelet stopped posting."
    assert "cordoned" in explain_node(node(unschedulable=True), None, []).sentence
    assert (
        "tolerate a:NoSchedule" in explain_node(node(taints=[{"key": "a", "effect": "NoSchedule"}]), None, []).sentence
    )


def test_a_namespace_says_what_keeps_it() -> None:
    conditions = [
        {"type": "NamespaceContentRemaining", "status": "True", "message": "widgets. has 1 resource instances"},
        {"type": "NamespaceDeletionDiscoveryFailure", "status": "True", "message": "stale GroupVersion: metrics"},
    ]
    namespace = {"metadata": {"deletionTimestamp": "T"}, "spec": {}, "status": {"conditions": conditions}}
    answer = explain_namespace(namespace)
    assert answer.sentence.endswith("NamespaceDeletionDiscoveryFailure: stale GroupVersion: metrics")
    assert answer.details == ("NamespaceContentRemaining: widgets. has 1 resource instances",)
