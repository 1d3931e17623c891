"""A pod's status from what the runtime has: phase, conditions, container statuses."""

from __future__ import annotations

from typing import Any

import pytest
from kubelet.observed import observed, pod

from pybernetes.api.core.v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodCondition,
    PodIP,
    PodStatus,
)
from pybernetes.client.keys import copy
from pybernetes.kubelet.pod.active_deadline import seconds_left
from pybernetes.kubelet.runtime.types import ObservedPod, replace
from pybernetes.kubelet.status.container_status import StartFailure
from pybernetes.kubelet.status.pod_status import Eviction, StatusFacts, generate_status, sort_ips

ONE = "{containers: [{name: a, image: i}]}"
TWO = "{containers: [{name: a, image: i}, {name: b, image: i}]}"
WITH_INIT = "{initContainers: [{name: i1, image: i}], containers: [{name: a, image: i}]}"
WITH_SIDECAR = "{initContainers: [{name: side, image: i, restartPolicy: Always}], containers: [{name: a, image: i}]}"


def ready_if_running(_: Pod, status: PodStatus) -> None:
    """As the probe manager does for containers without probes."""
    for each in [*(status.container_statuses or ()), *(status.init_container_statuses or ())]:
        state = each.state or ContainerState()
        each.started = state.running is not None
        done = state.terminated is not None and not state.terminated.exit_code
        each.ready = each.started or (done and each in (status.init_container_statuses or ()))


def report(subject: Pod, state: ObservedPod, old: PodStatus | None = None, **more: Any) -> PodStatus:
    terminal = more.pop("terminal", False)
    facts = StatusFacts(judge=ready_if_running, host_ips=["192.0.2.1"], **more)
    return generate_status(subject, state, copy(old or PodStatus()), facts, terminal=terminal)


def condition(status: PodStatus, type: str) -> PodCondition:
    return next(each for each in status.conditions or () if each.type == type)


def of(spec: str, policy: str) -> str:
    return spec.replace("{", f"{{restartPolicy: {policy}, ", 1)


@pytest.mark.parametrize(
    ("spec", "containers", "phase"),
    [
        (TWO, [], "Pending"),
        (TWO, ["a running"], "Pending"),
        (TWO, ["a running", "b running"], "Running"),
        (TWO, ["a running", "b exited 1"], "Running"),
        (TWO, ["a exited 0", "b exited 1"], "Running"),
        (of(TWO, "Never"), ["a running", "b exited 1"], "Running"),
        (of(TWO, "Never"), ["a exited 0", "b exited 1"], "Failed"),
        (of(TWO, "Never"), ["a exited 0", "b exited 0"], "Succeeded"),
        (of(TWO, "OnFailure"), ["a exited 0", "b exited 1"], "Running"),
        (of(TWO, "OnFailure"), ["a exited 0", "b exited 0"], "Succeeded"),
        (TWO, ["a running", "b created"], "Pending"),
        (WITH_INIT, ["i1 running"], "Pending"),
        (WITH_INIT, ["i1 exited 0"], "Pending"),
        (WITH_INIT, ["a running", "i1 exited 0"], "Running"),
        (WITH_INIT, ["i1 exited 1"], "Pending"),
        (of(WITH_INIT, "Never"), ["i1 exited 1"], "Failed"),
        (WITH_SIDECAR, ["side running"], "Pending"),
        (WITH_SIDECAR, ["a running", "side running"], "Running"),
        (WITH_SIDECAR, ["a running", "side exited 1"], "Running"),
        (of(WITH_SIDECAR, "Never"), ["a exited 0", "side running"], "Running"),
        (of(WITH_SIDECAR, "Never"), ["a exited 0", "side exited 137"], "Succeeded"),
    ],
)
def test_phase_follows_from_the_containers(spec: str, containers: list[str], phase: str) -> None:
    subject = pod(spec)
    assert report(subject, observed(subject, *containers)).phase == phase


@pytest.mark.parametrize(("codes", "phase"), [((0, 0), "Succeeded"), ((0, 143), "Failed")])
def test_a_pod_whose_end_was_ordered_has_ended_whatever_its_policy(codes: tuple[int, int], phase: str) -> None:
    subject = pod(TWO)
    state = observed(subject, f"a exited {codes[0]}", f"b exited {codes[1]}")
    assert report(subject, state, terminal=True).phase == phase
    static = pod(TWO, annotations={"kubernetes.io/config.source": "file"})
    assert report(static, state, terminal=True).phase == "Running"  # it is started again with its file


def test_what_has_ended_never_runs_again() -> None:
    subject = pod(of(TWO, "Never"))
    state = observed(subject, "a running", "b running")
    old = PodStatus(phase="Failed", reason="Evicted", message="why")
    status = report(subject, state, old)
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", "why")
    subject.status = PodStatus(phase="Succeeded")
    assert report(subject, state).phase == "Succeeded"


def test_an_eviction_fails_the_pod_with_its_reason() -> None:
    subject = pod(ONE)
    status = report(subject, observed(subject, "a running"), eviction=Eviction("DeadlineExceeded", "too long"))
    assert (status.phase, status.reason, status.message) == ("Failed", "DeadlineExceeded", "too long")
    assert condition(status, "Ready").reason == "PodFailed"


def test_a_pod_that_runs_is_ready_when_all_containers_are() -> None:
    subject = pod(TWO)
    status = report(subject, observed(subject, "a running", "b running"))
    for type in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"):
        found = condition(status, type)
        assert (found.status, found.reason, found.observed_generation) == ("True", None, 1), type
    status = report(subject, observed(subject, "a running", "b exited 1"))
    assert condition(status, "Ready").status == "False"
    assert condition(status, "Ready").message == "containers with unready status: [b]"
    assert condition(status, "ContainersReady").reason == "ContainersNotReady"


def test_conditions_before_anything_is_there() -> None:
    subject = pod(WITH_INIT)
    status = report(subject, observed(subject, sandbox="none"))
    assert condition(status, "PodReadyToStartContainers").status == "False"
    assert condition(status, "Initialized").message == "containers with incomplete status: [i1]"
    assert condition(status, "Initialized").reason == "ContainersNotInitialized"
    waiting = [each.state.waiting.reason for each in status.container_statuses or ()]  # type: ignore[union-attr]
    assert waiting == ["PodInitializing"]


def test_readiness_gates_keep_a_pod_unready() -> None:
    subject = pod("{readinessGates: [{conditionType: x.io/a}], containers: [{name: a, image: i}]}")
    state = observed(subject, "a running")
    found = condition(report(subject, state), "Ready")
    assert found.message == 'corresponding condition of pod readiness gate "x.io/a" does not exist.'
    assert found.reason == "ReadinessGatesNotReady"
    subject.status = PodStatus(conditions=[PodCondition(type="x.io/a", status="False")])
    found = condition(report(subject, state), "Ready")
    assert found.message == 'the status of pod readiness gate "x.io/a" is not "True", but False'
    subject.status.conditions = [PodCondition(type="x.io/a", status="True")]
    status = report(subject, state)
    assert condition(status, "Ready").status == "True"
    assert condition(status, "x.io/a").status == "True"  # others' conditions stay


def test_a_pod_that_is_done_says_so_in_its_conditions() -> None:
    subject = pod(of(WITH_INIT, "Never"))
    status = report(subject, observed(subject, "a exited 0", "i1 exited 0"))
    assert (condition(status, "Initialized").status, condition(status, "Initialized").reason) == (
        "True",
        "PodCompleted",
    )
    assert (condition(status, "Ready").status, condition(status, "Ready").reason) == ("False", "PodCompleted")


def test_a_container_that_cannot_be_started_waits_with_the_reason() -> None:
    subject = pod(ONE)
    failures = {"a": StartFailure("CrashLoopBackOff", "back-off 10s restarting failed container=a")}
    status = report(subject, observed(subject, "a exited 7"), failures=failures)
    (found,) = status.container_statuses or ()
    assert found.state is not None
    assert found.state.waiting is not None
    assert found.state.waiting.reason == "CrashLoopBackOff"
    assert found.last_state is not None
    assert found.last_state.terminated is not None
    assert found.last_state.terminated.exit_code == 7
    assert status.phase == "Running"


def test_the_container_before_is_the_last_state() -> None:
    subject = pod(ONE)
    (found,) = report(subject, observed(subject, "a running", "a exited 3")).container_statuses or ()
    assert found.restart_count == 1
    assert found.container_id == "containerd://a-1"
    assert found.last_state is not None
    assert found.last_state.terminated is not None
    assert found.last_state.terminated.exit_code == 3


def test_a_container_that_vanished_while_it_ran_has_ended_and_did_not_never_run() -> None:
    subject = pod(ONE)
    old = PodStatus(
        phase="Running",
        container_statuses=[
            ContainerStatus(name="a", restart_count=2, state=ContainerState(running=ContainerStateRunning()))
        ],
    )
    status = report(subject, observed(subject), old)
    (found,) = status.container_statuses or ()
    assert found.last_state is not None
    assert found.last_state.terminated is not None
    assert (found.last_state.terminated.reason, found.last_state.terminated.exit_code) == (
        "ContainerStatusUnknown",
        137,
    )
    assert found.restart_count == 3
    assert status.phase == "Running"


def test_an_end_that_was_reported_stays_when_the_container_is_gone() -> None:
    subject = pod(of(ONE, "Never"))
    end = ContainerState(terminated=ContainerStateTerminated(exit_code=4, reason="Error"))
    old = PodStatus(phase="Failed", container_statuses=[ContainerStatus(name="a", state=end)])
    (found,) = report(subject, observed(subject, sandbox="dead"), old).container_statuses or ()
    assert found.state == end


def test_an_init_container_that_was_removed_after_its_work_is_completed() -> None:
    subject = pod(WITH_INIT)
    (found,) = report(subject, observed(subject, "a running")).init_container_statuses or ()
    assert found.state is not None
    assert found.state.terminated is not None
    assert found.state.terminated.reason == "Completed"


def test_host_network_pods_have_the_nodes_addresses() -> None:
    subject = pod("{hostNetwork: true, containers: [{name: a, image: i}]}")
    status = report(subject, observed(subject, "a running"))
    assert (status.pod_ip, status.host_ip) == ("192.0.2.1", "192.0.2.1")
    subject = pod(ONE)
    status = report(subject, observed(subject, "a running"))
    assert (status.pod_ip, status.host_ip) == ("10.0.0.5", "192.0.2.1")
    state = observed(subject, "a exited 0", sandbox="dead")
    assert report(subject, replace(state)).pod_ip is None
    assert report(subject, replace(state), PodStatus(pod_ips=[PodIP(ip="10.0.0.5")])).pod_ip == "10.0.0.5"


@pytest.mark.parametrize(
    ("ips", "host", "expected"),
    [
        (["10.0.0.1"], [], ["10.0.0.1"]),
        (["fd00::1", "10.0.0.1"], ["192.0.2.1"], ["10.0.0.1", "fd00::1"]),
        (["10.0.0.1", "fd00::0001"], ["fd00::9"], ["fd00::1", "10.0.0.1"]),
        (["10.0.0.1", "10.0.0.2"], [], ["10.0.0.1"]),
        ([], [], []),
    ],
)
def test_addresses_come_in_the_order_of_the_nodes_families(
    ips: list[str], host: list[str], expected: list[str]
) -> None:
    assert sort_ips(ips, host) == expected


def test_the_deadline_counts_from_the_start_that_was_reported() -> None:
    subject = pod("{activeDeadlineSeconds: 30, containers: [{name: a, image: i}]}")
    started = PodStatus(start_time="1970-01-01T00:01:40Z")
    assert seconds_left(subject, started, 110.0) == 20.0
    assert seconds_left(subject, PodStatus(), 110.0) is None
    assert seconds_left(pod(ONE), started, 110.0) is None
