"""How a status is joined with what the API server has, and sent."""

from __future__ import annotations

from kubelet.observed import pod

from pybernetes.api.core.v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    PodCondition,
    PodIP,
    PodStatus,
)
from pybernetes.kubelet.status.merge import illegal_transition, merge, patch, shorten, stamp

NOW, BEFORE = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"


def conditions(*texts: str) -> list[PodCondition]:
    """`"Ready True"`"""
    return [
        PodCondition(type=type, status=status, last_transition_time=BEFORE)
        for type, status in (each.split() for each in texts)
    ]


def ended(name: str, code: int, message: str = "") -> ContainerStatus:
    end = ContainerStateTerminated(exit_code=code, message=message or None)
    return ContainerStatus(name=name, state=ContainerState(terminated=end))


def running(name: str) -> ContainerStatus:
    return ContainerStatus(name=name, state=ContainerState(running=ContainerStateRunning()))


def test_a_condition_keeps_its_time_while_it_says_the_same() -> None:
    old = PodStatus(conditions=conditions("Ready True", "Initialized False"), start_time=BEFORE)
    new = PodStatus(
        conditions=[PodCondition(type="Ready", status="True"), PodCondition(type="Initialized", status="True")]
    )
    stamp(new, old, NOW)
    assert [each.last_transition_time for each in new.conditions or ()] == [BEFORE, NOW]
    assert new.start_time == BEFORE
    fresh = PodStatus()
    stamp(fresh, PodStatus(), NOW)
    assert fresh.start_time == NOW


def test_a_pod_that_may_still_run_is_not_called_ended() -> None:
    subject = pod("{containers: [{name: a, image: i}]}")
    reported = PodStatus(phase="Running", conditions=conditions("Ready True", "x.io/mine True"))
    new = PodStatus(phase="Failed", reason="Evicted", conditions=conditions("Ready False", "DisruptionTarget True"))
    while_running = merge(subject, reported, new, NOW, may_be_running=True)
    assert (while_running.phase, while_running.reason) == ("Running", None)
    assert {each.type for each in while_running.conditions or ()} == {"Ready", "x.io/mine"}
    after = merge(subject, reported, new, NOW, may_be_running=False)
    assert (after.phase, after.reason) == ("Failed", "Evicted")
    assert {each.type for each in after.conditions or ()} == {"Ready", "x.io/mine", "DisruptionTarget"}


def test_a_pod_that_has_ended_is_not_ready() -> None:
    subject = pod("{containers: [{name: a, image: i}]}")
    new = PodStatus(phase="Succeeded", conditions=conditions("Ready True", "ContainersReady True"))
    merged = merge(subject, PodStatus(phase="Running"), new, NOW, may_be_running=False)
    assert [(each.type, each.status, each.reason) for each in merged.conditions or ()] == [
        ("Ready", "False", "PodCompleted"),
        ("ContainersReady", "False", "PodCompleted"),
    ]


def test_a_patch_has_only_what_differs_and_takes_away_what_is_gone() -> None:
    old = PodStatus(
        phase="Pending",
        reason="old",
        pod_ips=[PodIP(ip="10.0.0.1")],
        conditions=[
            PodCondition(type="Ready", status="False", reason="ContainersNotReady", message="why"),
            *conditions("PodScheduled True", "PodResizePending True"),
        ],
    )
    new = PodStatus(
        phase="Running",
        pod_ips=[PodIP(ip="10.0.0.2")],
        conditions=[PodCondition(type="Ready", status="True"), *conditions("PodScheduled True")],
    )
    assert patch(old, old) == {}
    assert patch(old, new) == {
        "phase": "Running",
        "reason": None,
        "podIPs": [{"$patch": "replace"}, {"ip": "10.0.0.2"}],
        "conditions": [
            {"type": "Ready", "status": "True", "reason": None, "message": None},
            {"type": "PodResizePending", "$patch": "delete"},
        ],
    }


def test_a_container_that_ended_for_good_does_not_live_again() -> None:
    never = pod("{restartPolicy: Never, containers: [{name: a, image: i}]}").spec
    on_failure = pod("{restartPolicy: OnFailure, containers: [{name: a, image: i}]}").spec
    always = pod("{containers: [{name: a, image: i}]}").spec
    assert never is not None
    assert on_failure is not None
    assert always is not None
    failed, done, again = (
        PodStatus(container_statuses=[each]) for each in (ended("a", 1), ended("a", 0), running("a"))
    )
    assert illegal_transition(failed, again, never).startswith("terminated container a attempted illegal transition")
    assert illegal_transition(failed, again, on_failure) == ""
    assert illegal_transition(done, again, on_failure) != ""
    assert illegal_transition(done, again, always) == ""


def test_long_last_words_are_cut_to_each_containers_share() -> None:
    spec = pod("{containers: [{name: a, image: i}, {name: b, image: i}, {name: c, image: i}]}").spec
    assert spec is not None
    status = PodStatus(container_statuses=[ended("a", 1, "x" * 5000), ended("b", 1, "short")])
    shorten(status, spec)
    lengths = [len(each.state.terminated.message or "") for each in status.container_statuses or ()]  # type: ignore[union-attr]
    assert lengths == [4096, 5]
