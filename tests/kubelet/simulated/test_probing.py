"""Probes and hooks of simulated pods: what a kubelet would find out, at the moments when it would."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubelet.simulated.life import Life

from pybernetes.api.core.v1 import Probe
from pybernetes.kubelet.probes.results import ProbeType
from pybernetes.kubelet.simulated.probing import Answers, Asked, read_answers


def probed(probes: dict[str, dict[str, Any]], spec: dict[str, Any] | None = None, **settings: str) -> Life:
    """A pod whose container has these probes."""
    defaults = {"httpGet": {"port": 80}, "periodSeconds": 10, "failureThreshold": 3, "successThreshold": 1}
    container = {"name": "c", "image": "i", **{name: {**defaults, **probe} for name, probe in probes.items()}}
    life = Life({"containers": [container], "terminationGracePeriodSeconds": 30, **(spec or {})}, **settings)
    life.sync()
    return life


def state(life: Life) -> tuple[bool, bool, int]:
    return life.container.started, life.container.ready, life.container.restart_count


# -- readiness


def test_a_probe_that_is_answered_well_makes_ready_with_its_first_answer_and_costs_nothing_afterwards() -> None:
    life = probed({"readinessProbe": {}})
    assert state(life) == (True, True, 0)
    assert life.outcome.again_at is None


def test_good_answers_that_change_nothing_are_not_asked_for_one_by_one() -> None:
    asked_at: list[float] = []

    class Counting(Answers):
        def at(self, age: float) -> bool:
            asked_at.append(age)
            return True

    asked = Asked(ProbeType.READINESS, Probe(period_seconds=1), Counting(), 0.0)
    assert list(asked.ask(1_000_000.0)) == []
    assert asked.passes
    assert len(asked_at) < 20


def test_readiness_waits_for_the_initial_delay_and_for_enough_good_answers() -> None:
    life = probed({"readinessProbe": {"initialDelaySeconds": 5, "periodSeconds": 2, "successThreshold": 3}})
    life.after(8.9)
    assert (state(life), life.condition("Ready")) == ((True, False, 0), "False")
    life.after(0.2)  # 5, 7, 9
    assert (state(life), life.condition("Ready")) == ((True, True, 0), "True")
    assert "Unhealthy" not in [reason for reason, _ in life.events]


def test_a_program_that_is_ready_later_is_found_out_by_the_next_probe() -> None:
    life = probed({"readinessProbe": {"periodSeconds": 10}}, ready_after="12s")
    life.after(19.9)
    assert not life.container.ready
    assert life.events.count(("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")) == 2
    life.after(0.2)
    assert life.container.ready


def test_readiness_comes_and_goes_and_nothing_is_restarted() -> None:
    life = probed({"readinessProbe": {"periodSeconds": 1}}, readiness_probe="0s=success, 30s=failure, 60s=success")
    life.after(31.9)
    assert life.container.ready
    life.after(0.2)  # 30, 31, 32
    assert not life.container.ready
    life.after(27)
    assert not life.container.ready
    life.after(1)
    assert (state(life), life.outcome.again_at) == ((True, True, 0), None)


def test_who_is_never_ready_stays_so() -> None:
    for settings in ({"ready_after": "never"}, {"readiness_probe": "failure"}):
        life = probed({"readinessProbe": {"periodSeconds": 5}}, **settings)
        life.after(100)
        assert state(life) == (True, False, 0)


# -- liveness


def test_a_container_that_does_not_live_is_ended_and_started_anew_with_a_longer_pause_each_time() -> None:
    life = probed({"livenessProbe": {"periodSeconds": 2}}, liveness_probe="10s=failure")
    life.after(13.9)
    assert (state(life), life.container.last_state.terminated) == ((True, True, 0), None)
    life.after(0.2)  # 10, 12, 14
    assert state(life) == (True, True, 1)
    assert life.container.last_state.terminated.exit_code == 137
    assert ("Killing", "Container c failed liveness probe, will be restarted") in life.events
    assert [text for reason, text in life.events if reason == "Unhealthy"] == [
        "Liveness probe failed: HTTP probe failed with statuscode: 503"
    ] * 3
    life.after(15)
    assert life.container.state.waiting.reason == "CrashLoopBackOff"


def test_a_container_that_takes_its_time_to_end_is_replaced_when_it_has_ended() -> None:
    life = probed({"livenessProbe": {"periodSeconds": 1}}, liveness_probe="5s=failure", stop_after="4s")
    life.after(7.5)  # 5, 6, 7
    assert life.events.count(("Killing", "Container c failed liveness probe, will be restarted")) == 1
    life.after(3.4)
    assert state(life) == (True, True, 0)
    life.after(0.2)
    assert state(life) == (True, True, 1)
    assert life.events.count(("Killing", "Container c failed liveness probe, will be restarted")) == 1


def test_the_probes_own_grace_period_is_shorter_than_the_pods() -> None:
    probe = {"periodSeconds": 1, "failureThreshold": 1, "terminationGracePeriodSeconds": 2}
    life = probed({"livenessProbe": probe}, liveness_probe="5s=failure", stop_after="never")
    life.after(6.9)
    assert life.container.restart_count == 0
    life.after(0.2)
    assert life.container.restart_count == 1


def test_who_is_not_restarted_has_failed() -> None:
    life = probed({"livenessProbe": {"periodSeconds": 1}}, {"restartPolicy": "Never"}, liveness_probe="failure")
    life.after(3)
    assert (life.status.phase, life.container.state.terminated.exit_code) == ("Failed", 137)
    assert ("Killing", "Stopping container c") in life.events


def test_a_pod_that_is_deleted_is_not_restarted_by_its_probes_but_may_come_to_be_unready() -> None:
    probes = {"livenessProbe": {"periodSeconds": 1}, "readinessProbe": {"periodSeconds": 1}}
    life = probed(probes, liveness_probe="5s=failure", readiness_probe="5s=failure", stop_after="20s")
    life.delete()
    life.after(10)
    assert state(life) == (True, False, 0)
    assert not any("Liveness" in text for _, text in life.events)


# -- startup


def test_other_probes_wait_until_the_container_has_started() -> None:
    probes = {
        "startupProbe": {"periodSeconds": 5, "failureThreshold": 10},
        "readinessProbe": {"periodSeconds": 10},
        "livenessProbe": {"periodSeconds": 1, "failureThreshold": 1},
    }
    life = probed(probes, startup_probe="12s=success", liveness_probe="0s=failure, 14s=success")
    life.after(14.9)
    assert state(life) == (False, False, 0)
    life.after(0.2)  # 0, 5, 10, 15; then the others at once
    assert state(life) == (True, True, 0)
    assert life.outcome.again_at is None
    assert [text.split()[0] for reason, text in life.events if reason == "Unhealthy"] == ["Startup"] * 3


def test_a_container_that_does_not_start_in_time_is_restarted() -> None:
    life = probed({"startupProbe": {"periodSeconds": 1, "failureThreshold": 4}}, startup_probe="failure")
    life.after(3.1)
    assert (state(life)[0], state(life)[2]) == (False, 1)
    assert ("Killing", "Container c failed startup probe, will be restarted") in life.events


def test_containers_wait_for_a_sidecar_with_a_startup_probe() -> None:
    side = {"name": "side", "image": "i", "restartPolicy": "Always"}
    probe = {"tcpSocket": {"port": 1}, "periodSeconds": 1, "failureThreshold": 30}
    life = Life({"initContainers": [{**side, "startupProbe": probe}]}, **{"startup-probe.side": "3s=success"})
    life.sync()
    life.after(2.9)
    assert (life.status.phase, life.container.state.waiting.reason) == ("Pending", "PodInitializing")
    life.after(0.2)
    assert (life.status.phase, state(life)) == ("Running", (True, True, 0))
    assert ("Unhealthy", "Startup probe failed: dial tcp 10.0.0.5:1: connect: connection refused") in life.events


# -- another process takes over


def test_a_new_process_finds_out_what_the_last_one_knew_and_tells_nothing_twice() -> None:
    probes = {"startupProbe": {"periodSeconds": 1}, "readinessProbe": {"periodSeconds": 10}}
    life = probed(probes, startup_probe="2s=success", readiness_probe="0s=failure, 10s=success, 60s=failure")
    life.after(30)
    assert state(life) == (True, True, 0)
    told = list(life.events)
    life.simulated = life.new()
    life.sync()
    assert (state(life), life.events) == ((True, True, 0), told)
    life.after(60)
    assert state(life) == (True, False, 0)


@given(
    st.lists(st.integers(1, 50), max_size=6, unique=True).map(sorted),
    st.booleans(),
    st.integers(1, 7),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 9),
    st.lists(st.integers(0, 200), max_size=8).map(sorted),
    st.sampled_from([0, 61]),
)
def test_the_result_does_not_depend_on_how_often_the_simulation_is_read(
    changes: list[int],
    first: bool,
    period: int,
    failures: int,
    successes: int,
    delay: int,
    looks: list[int],
    again: int,
) -> None:
    answers = Answers(first, tuple(map(float, changes)), float(again))
    spec = Probe(
        period_seconds=period, failure_threshold=failures, success_threshold=successes, initial_delay_seconds=delay
    )
    eager, lazy = (Asked(ProbeType.READINESS, spec, answers, 1000.0) for _ in range(2))
    bad: list[float] = []
    told: list[float] = []
    for now in range(1000, 1202):
        bad += eager.ask(float(now))
        if now - 1000 in looks or lazy.again_at <= now:
            told += lazy.ask(float(now))
            assert lazy.passes is eager.passes
        assert bool(lazy.passes) is bool(eager.passes)
    assert told == bad


@pytest.mark.parametrize(
    ("text", "ages"),
    [
        ("success", {0: True, 1000: True}),
        ("failure", {0: False, 1000: False}),
        ("30s=failure", {0: True, 29.9: True, 30: False}),
        ("0s=failure, 5s=success", {0: False, 4: False, 5: True}),
        ("0s=success, 1m=failure, 2m=success, repeat", {0: True, 60: False, 119: False, 120: True, 180: False}),
        ("10s=failure, 20s=failure, 30s=success", {9: True, 10: False, 25: False, 30: True}),
    ],
)
def test_answers_by_age(text: str, ages: dict[float, bool]) -> None:
    answers = read_answers(text)
    assert {age: answers.at(age) for age in ages} == ages


@pytest.mark.parametrize(
    "text", ["", "yes", "5s", "5s=yes", "5s=failure, 5s=success", "-1s=failure", "1s=failure, repeat"]
)
def test_answers_that_make_no_sense(text: str) -> None:
    with pytest.raises(ValueError, match=r"success|greater|repeated"):
        read_answers(text)


# -- hooks


def hooked(hooks: dict[str, Any], **settings: str) -> Life:
    life = Life({"containers": [{"name": "c", "image": "i", "lifecycle": hooks}]}, **settings)
    life.sync()
    return life


def test_a_container_runs_for_others_when_its_hook_is_done() -> None:
    for hooks, settings in (
        ({"postStart": {"exec": {"command": ["x"]}}}, {"post_start": "3s"}),
        ({"postStart": {"sleep": {"seconds": 3}}}, {}),
    ):
        life = hooked(hooks, **settings)
        life.after(2.9)
        assert life.container.state.waiting.reason == "ContainerCreating"
        life.after(0.2)
        assert state(life) == (True, True, 0)


def test_a_container_whose_hook_fails_is_ended_and_tried_again() -> None:
    life = hooked({"postStart": {"exec": {"command": ["x"]}}}, post_start="failure")
    assert [each for each in life.events if "Hook" in each[0] or each[0] == "Killing"] == [
        ("FailedPostStartHook", "PostStartHook failed"),
        ("Killing", "FailedPostStartHook"),
    ]
    assert life.container.state.waiting.reason == "PostStartHookError"
    assert life.container.last_state.terminated.exit_code == 137
    life.after(10.1)
    assert life.container.restart_count == 1


def test_a_hook_before_the_end_has_the_grace_period_and_two_seconds_are_left_after_it() -> None:
    life = hooked({"preStop": {"sleep": {"seconds": 5}}}, stop_after="1s")
    life.delete()
    life.after(5.9)
    assert not life.outcome.ended
    life.after(0.2)
    assert (life.outcome.ended, life.container.state.terminated.exit_code) == (True, 0)
    slow = hooked({"preStop": {"httpGet": {"port": 1}}}, pre_stop="1m, failure", stop_after="never")
    slow.delete(grace=10)
    assert ("FailedPreStopHook", "PreStopHook failed") in slow.events
    slow.after(11.9)
    assert not slow.outcome.ended
    slow.after(0.2)
    assert (slow.outcome.ended, slow.container.state.terminated.exit_code) == (True, 137)


def test_without_a_hook_its_setting_means_nothing_and_without_grace_none_is_run() -> None:
    life = hooked({}, pre_stop="20s", post_start="20s")
    assert state(life) == (True, True, 0)
    assert life.delete().ended
    now = hooked({"preStop": {"sleep": {"seconds": 5}}})
    assert now.delete(grace=0).ended


def test_sidecars_end_after_all_others_the_last_one_first() -> None:
    sides = [{"name": name, "image": "i", "restartPolicy": "Always"} for name in ("one", "two")]
    life = Life({"initContainers": sides}, **{"stop-after.c": "3s", "stop-after.one": "1s", "stop-after.two": "2s"})
    life.sync()
    life.delete()

    def running() -> list[str]:
        return sorted(each.name for each in life.simulated.observed.running())

    life.after(2.9)
    assert running() == ["c", "one", "two"]
    life.after(1)
    assert running() == ["one", "two"]
    life.after(1.2)
    assert running() == ["one"]
    life.after(1)
    assert life.outcome.ended
