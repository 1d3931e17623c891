"""Annotations and rules that change while pods run: from then on they behave otherwise, and what is past stays."""

from __future__ import annotations

from kubelet.simulated.cluster import RULES, Simulation, pod
from kubelet.simulated.life import NOW, Life

import tools
from pybernetes.api.times import rfc3339

PREFIX = "simulated.pybernetes.io/"


def test_a_container_ends_when_its_setting_says_and_not_before() -> None:
    life = Life({"restartPolicy": "Never"})
    life.sync()
    life.after(100)
    assert life.annotate(run_for="30s", exit_code="3")
    ended = life.container.state.terminated
    assert (life.status.phase, ended.exit_code, ended.finished_at) == ("Failed", 3, rfc3339(NOW + 100))


def test_one_that_would_end_lives_on() -> None:
    life = Life({"restartPolicy": "Never"}, run_for="10s")
    life.sync()
    life.after(5)
    life.annotate(run_for="forever")
    life.after(100)
    assert (life.status.phase, life.outcome.again_at) == ("Running", None)


def test_probes_are_answered_in_the_new_way_from_now_on() -> None:
    probe = {"tcpSocket": {"port": 1}, "periodSeconds": 10, "failureThreshold": 3}
    life = Life({"containers": [{"name": "c", "image": "i", "livenessProbe": probe, "readinessProbe": probe}]})
    life.sync()
    life.after(1005)
    life.annotate(liveness_probe="failure", readiness_probe="failure")
    assert (life.container.ready, life.container.restart_count) == (True, 0)
    life.after(24.9)
    assert (life.container.ready, life.container.restart_count) == (True, 0)
    life.after(0.2)  # 1010, 1020, 1030
    assert life.container.restart_count == 1


def test_an_image_that_could_not_be_pulled_and_a_start_that_took_for_ever() -> None:
    for setting in ("pull_for", "start_after"):
        life = Life(**{setting: "never"})
        life.sync()
        assert life.status.phase == "Pending"
        life.annotate(**{setting: "0s"})
        life.after(300)
        assert life.container.ready


def test_an_invalid_change_is_reported_and_ignored() -> None:
    life = Life(run_for="abc")
    life.sync()
    assert [reason for reason, _ in life.events].count("BadSimulation") == 1
    life.annotate(ready_after="soon")
    assert life.events[-1][0] == "BadSimulation"
    assert life.container.ready
    told = len(life.events)
    assert not Life().sync().events[3:]
    life.sync()
    assert len(life.events) == told


def test_users_change_annotations_of_running_pods(simulation: Simulation) -> None:
    simulation.apply(pod("changing", {"restartPolicy": "Never"}))
    simulation.ready("changing")
    simulation.kubectl("annotate", "pod", "changing", f"{PREFIX}ready-after=never", f"{PREFIX}no-such=x")
    simulation.kubectl("wait", "pod/changing", "--for=condition=Ready=False", "--timeout=60s")
    problem = ("BadSimulation", f"{PREFIX}no-such: there is no such setting, or no such container")
    tools.wait_until(lambda: problem in simulation.events("changing"), "it is reported", every=0.2)
    simulation.kubectl("annotate", "pod", "changing", f"{PREFIX}run-for=0s", f"{PREFIX}exit-code=9")
    status = simulation.wait_for("changing", lambda s: s["phase"] == "Failed", "it ends")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 9
    simulation.kubectl("delete", "pod", "changing")


def test_a_file_of_rules_may_change_and_a_bad_one_changes_nothing(simulation: Simulation) -> None:
    first = simulation.pid()
    simulation.apply(pod("ruled", {"restartPolicy": "Never"}))
    simulation.ready("ruled")
    log = simulation.folder / "data/logs/simulated-nodes.log"
    try:
        simulation.rules.write_text(RULES + "- name: ruled\n  settings: {run-forr: 0s}\n")
        bad = "rules[2].settings: there is no setting 'run-forr'"
        tools.wait_until(lambda: bad in log.read_text(), "it is reported", every=0.2)
        assert simulation.get("pod", "ruled")["status"]["phase"] == "Running"
        more = "nodes:\n- name: sim-0005\n  settings: {not-ready: by rule}\n"
        simulation.rules.write_text(RULES + "- name: ruled\n  settings: {run-for: 0s}\n" + more)
        simulation.wait_for("ruled", lambda s: s["phase"] == "Succeeded", "it ends")
        simulation.kubectl("wait", "node/sim-0005", "--for=condition=Ready=False", "--timeout=60s")
    finally:
        simulation.rules.write_text(RULES)
    simulation.kubectl("wait", "node/sim-0005", "--for=condition=Ready", "--timeout=60s")
    simulation.kubectl("delete", "pod", "ruled")
    assert simulation.pid() == first
