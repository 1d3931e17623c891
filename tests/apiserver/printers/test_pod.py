"""What `kubectl get pods` says; the words were checked against an upstream server."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.printers.rows import AGE, resource, row, shown, table

PODS = resource("pods")
STARTED, ENDED = "2024-01-10T09:00:00Z", "2024-01-10T11:00:00Z"
RUNNING = {"running": {"startedAt": STARTED}}


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


def ended(code: int = 0, reason: str = "", signal: int = 0, at: str = ENDED) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "signal": signal, "finishedAt": at}}


def container(
    state: dict[str, Any],
    *,
    name: str = "c",
    last: dict[str, Any] | None = None,
    ready: bool = False,
    restarts: int = 0,
    started: bool | None = None,
) -> dict[str, Any]:
    status = {"name": name, "state": state, "lastState": last or {}, "ready": ready, "restartCount": restarts}
    return status if started is None else {**status, "started": started}


def pod(
    *containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), phase: str = "Pending", **more: Any
) -> dict[str, Any]:
    """A pod with as many containers as there are statuses; init containers whose name begins with s are sidecars."""
    spec: dict[str, Any] = {"containers": [{"name": each["name"], "image": "i"} for each in containers]}
    if init:
        spec["initContainers"] = [
            {"name": each["name"], **({"restartPolicy": "Always"} if each["name"].startswith("s") else {})}
            for each in init
        ]
    status: dict[str, Any] = {"phase": phase, "containerStatuses": list(containers)}
    status["initContainerStatuses"] = list(init)
    status.update(more.pop("status", {}))
    spec.update(more.pop("spec", {}))
    return {"spec": spec, "status": status, **more}


def condition(type: str, status: str = "True", **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": type, "status": status, **more}]}


DELETED = {"deletionTimestamp": "2024-01-10T11:59:00Z"}
UP = container(RUNNING, ready=True)
DONE = container(ended(0, "Completed"))
WAITS = container(waiting("PodInitializing"))


@pytest.mark.parametrize(
    ("obj", "ready", "status", "restarts"),
    [
        pytest.param(pod(UP, phase="Running"), "1/1", "Running", "0", id="running"),
        pytest.param({"spec": {"containers": [{}]}, "status": {"phase": "Pending"}}, "0/1", "Pending", "0", id="new"),
        pytest.param(pod(container(waiting("ErrImagePull"))), "0/1", "ErrImagePull", "0", id="no image"),
        pytest.param(
            pod(
                container(RUNNING, ready=True, restarts=3, last=ended(1)),
                container(waiting("CrashLoopBackOff"), name="d", restarts=2, last=ended(at="2024-01-10T11:57:00Z")),
                phase="Running",
            ),
            "1/2",
            "CrashLoopBackOff",
            "5 (3m ago)",
            id="restarts are summed and the last one dates them",
        ),
        pytest.param(
            pod(container(waiting("A")), container(waiting("B"), name="d")), "0/2", "A", "0", id="the first wins"
        ),
        pytest.param(pod(container(RUNNING, restarts=1), phase="Running"), "0/1", "Running", "1", id="undated"),
        # init containers
        pytest.param(
            pod(WAITS, init=(container(RUNNING, name="i"), container(waiting("PodInitializing"), name="j"))),
            "0/1",
            "Init:0/2",
            "0",
            id="first init container runs",
        ),
        pytest.param(
            pod(
                WAITS,
                init=(
                    container(ended(), name="i", restarts=1, last=ended(2)),
                    container(waiting("PodInitializing"), name="j"),
                ),
            ),
            "0/1",
            "Init:1/2",
            "1 (60m ago)",
            id="second init container waits",
        ),
        pytest.param(
            pod(WAITS, init=(container(waiting("CrashLoopBackOff"), name="i", restarts=4),)),
            "0/1",
            "Init:CrashLoopBackOff",
            "4",
            id="init container crashes",
        ),
        pytest.param(pod(WAITS, init=(container(ended(1, "Error"), name="i"),)), "0/1", "Init:Error", "0", id="error"),
        pytest.param(pod(WAITS, init=(container(ended(7), name="i"),)), "0/1", "Init:ExitCode:7", "0", id="init code"),
        pytest.param(
            pod(WAITS, init=(container(ended(7, signal=9), name="i"),)), "0/1", "Init:Signal:9", "0", id="init signal"
        ),
        pytest.param(
            pod(WAITS, init=(container(ended(), name="i", restarts=2),)),
            "0/1",
            "PodInitializing",
            "0",
            id="init containers are done and their restarts forgotten",
        ),
        # sidecars
        pytest.param(
            pod(
                UP,
                init=(
                    container(RUNNING, name="s", ready=True, started=True, restarts=2, last=ended(1)),
                    container(ended(), name="i", restarts=5),
                ),
                phase="Running",
            ),
            "2/2",
            "Running",
            "2 (60m ago)",
            id="sidecars count, and their restarts stay",
        ),
        pytest.param(
            pod(
                WAITS,
                init=(container(RUNNING, name="s", started=False), container(waiting("PodInitializing"), name="i")),
            ),
            "0/2",
            "Init:0/2",
            "0",
            id="a sidecar starts",
        ),
        pytest.param(
            pod(
                container(RUNNING, ready=True, restarts=1),
                init=(container(waiting("CrashLoopBackOff"), name="s", started=False, restarts=3, last=ended(1)),),
                phase="Running",
                status=condition("Initialized"),
            ),
            "1/2",
            "Init:CrashLoopBackOff",
            "4 (60m ago)",
            id="a sidecar crashes later",
        ),
        # ends
        pytest.param(pod(DONE, phase="Succeeded"), "0/1", "Completed", "0", id="completed"),
        pytest.param(pod(container(ended(3)), phase="Failed"), "0/1", "ExitCode:3", "0", id="exit code"),
        pytest.param(pod(container(ended(137, signal=9)), phase="Failed"), "0/1", "Signal:9", "0", id="signal"),
        pytest.param(pod(container(ended(137, "OOMKilled")), phase="Failed"), "0/1", "OOMKilled", "0", id="reason"),
        pytest.param(pod(phase="Failed", status={"reason": "Evicted"}), "0/0", "Evicted", "0", id="evicted"),
        pytest.param(
            pod(DONE, container(RUNNING, name="d", ready=True), phase="Running", status=condition("Ready")),
            "1/2",
            "Running",
            "0",
            id="one container is done, the pod is not",
        ),
        pytest.param(
            pod(DONE, container(RUNNING, name="d", ready=True), phase="Running"), "1/2", "NotReady", "0", id="not ready"
        ),
        pytest.param(
            pod(DONE, container(ended(1, "Error"), name="d"), phase="Running"), "0/2", "Error", "0", id="one failed"
        ),
        # the rest
        pytest.param(
            pod(status=condition("PodScheduled", "False", reason="SchedulingGated")),
            "0/0",
            "SchedulingGated",
            "0",
            id="gated",
        ),
        pytest.param(pod(UP, phase="Running", metadata=DELETED), "1/1", "Terminating", "0", id="terminating"),
        pytest.param(pod(DONE, phase="Succeeded", metadata=DELETED), "0/1", "Completed", "0", id="done, then deleted"),
        pytest.param(
            pod(UP, phase="Running", metadata=DELETED, status={"reason": "NodeLost"}),
            "1/1",
            "Unknown",
            "0",
            id="node lost",
        ),
    ],
)
def test_ready_status_restarts(obj: dict[str, Any], ready: str, status: str, restarts: str) -> None:
    assert shown(PODS, obj, "Ready", "Status", "Restarts") == [ready, status, restarts]


def test_the_other_columns() -> None:
    obj = pod(
        UP,
        spec={"nodeName": "n1", "readinessGates": [{"conditionType": "a/b"}, {"conditionType": "a/c"}]},
        status={
            "podIP": "10.0.0.1",
            "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
            "nominatedNodeName": "n2",
            **condition("a/b"),
        },
    )
    cells = row(PODS, obj)
    assert (cells["Name"], cells["Age"]) == ("x", AGE)
    wide = ("IP", "Node", "Nominated Node", "Readiness Gates")
    assert [cells[each] for each in wide] == ["10.0.0.1", "n1", "n2", "1/2"]
    assert shown(PODS, pod(UP), *wide) == ["<none>"] * 4
    assert [each["name"] for each in table(PODS)["columnDefinitions"] if each["priority"]] == list(wide)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_the_row_of_a_pod_that_ended_says_so(phase: str) -> None:
    (condition,) = table(PODS, pod(DONE, phase=phase))["rows"][0]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Completed", "True", phase)


def test_the_row_of_another_pod_says_nothing() -> None:
    assert "conditions" not in table(PODS, pod(UP, phase="Running"))["rows"][0]
