"""The life of a simulated pod, in simulated time."""

from __future__ import annotations

from kubelet.simulated.life import Life


def test_a_pod_runs_at_once_and_is_ready() -> None:
    life = Life()
    assert life.sync().again_at is None
    assert (life.status.phase, life.status.pod_ip, life.status.host_ip) == ("Running", "10.0.0.5", "192.0.2.1")
    assert (life.container.ready, life.container.started, life.container.restart_count) == (True, True, 0)
    assert life.condition("Ready") == "True"
    assert [reason for reason, _ in life.events] == ["Pulled", "Created", "Started"]


def test_pulling_starting_and_becoming_ready_take_their_time() -> None:
    life = Life(pull_for="5s", start_after="2s", ready_after="3s")
    life.sync()
    assert (life.status.phase, life.container.state.waiting.reason) == ("Pending", "ContainerCreating")
    life.after(6.9)
    assert life.status.phase == "Pending"
    life.after(0.1)
    assert (life.status.phase, life.container.ready) == ("Running", False)
    life.after(3)
    assert (life.container.ready, life.condition("Ready")) == (True, "True")


def test_a_container_that_fails_comes_back_after_a_longer_time_each_time() -> None:
    life = Life(run_for="1s", exit_code="3")
    life.sync()
    life.after(1)
    assert (life.container.restart_count, life.container.last_state.terminated.exit_code) == (1, 3)
    life.after(1)
    assert life.container.state.waiting.reason == "CrashLoopBackOff"
    assert life.container.state.waiting.message.startswith(
        "back-off 10s restarting failed container=c pod=p_default(u)"
    )
    life.after(10)
    assert life.container.restart_count == 2
    life.after(11)
    assert life.container.state.waiting.message.startswith("back-off 20s ")
    assert life.status.phase == "Running"


def test_a_pod_that_is_done_has_succeeded_or_failed() -> None:
    for code, phase, reason in (("0", "Succeeded", "Completed"), ("1", "Failed", "Error")):
        life = Life({"restartPolicy": "Never"}, run_for="2s", exit_code=code)
        life.sync()
        life.after(2)
        assert (life.status.phase, life.container.state.terminated.reason) == (phase, reason)
        assert life.outcome.again_at is None


def test_init_containers_run_first_and_sidecars_beside() -> None:
    inits = [{"name": "first", "image": "i"}, {"name": "side", "image": "i", "restartPolicy": "Always"}]
    life = Life({"initContainers": inits}, **{"run-for.first": "2s"})
    life.sync()
    assert life.status.phase == "Pending"
    assert life.container.state.waiting.reason == "PodInitializing"
    life.after(2)
    assert (life.status.phase, life.condition("Initialized")) == ("Running", "True")
    first, side = life.status.init_container_statuses or []
    assert (first.state.terminated.exit_code, first.ready) == (0, True)  # type: ignore[union-attr]
    assert (side.started, side.ready) == (True, True)


def test_an_image_that_cannot_be_pulled() -> None:
    life = Life(pull_for="never")
    life.sync()
    assert life.container.state.waiting.reason == "ErrImagePull"
    life.after(5)
    life.sync()
    assert life.container.state.waiting.reason == "ImagePullBackOff"
    assert life.status.phase == "Pending"


def test_a_deleted_pod_ends_in_its_own_time_but_within_its_grace() -> None:
    life = Life(stop_after="3s")
    life.sync()
    assert not life.delete().ended
    assert ("Killing", "Stopping container c") in life.events
    life.after(2.9)
    assert not life.outcome.ended
    life.after(0.1)
    assert (life.outcome.ended, life.container.state.terminated.exit_code) == (True, 0)
    stubborn = Life(stop_after="never")
    stubborn.sync()
    stubborn.delete(grace=5)
    stubborn.after(5)
    assert (stubborn.outcome.ended, stubborn.container.state.terminated.exit_code) == (True, 137)


def test_a_deadline_ends_a_pod() -> None:
    life = Life({"activeDeadlineSeconds": 7})
    life.sync()
    life.after(7)
    assert (life.status.phase, life.status.reason) == ("Failed", "DeadlineExceeded")


def test_a_new_process_takes_up_a_pod_where_the_last_one_left_it() -> None:
    life = Life(run_for="10s")
    life.sync()
    life.clock.advance(4)
    before = life.container
    life.simulated = life.new()
    life.sync()
    assert life.container == before
    life.after(5.9)
    assert life.container.restart_count == 0
    life.after(0.2)
    assert life.container.restart_count == 1


def test_too_much_memory_kills_a_container_and_a_new_limit_saves_it() -> None:
    resources = {"limits": {"memory": "100Mi"}, "requests": {"memory": "50Mi"}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
    life = Life(spec, memory="0s=50Mi, 100s=150Mi")
    life.sync()
    life.after(49.9)
    assert life.container.restart_count == 0
    life.after(0.2)
    last = life.container.last_state.terminated
    assert (life.container.restart_count, last.reason, last.exit_code) == (1, "OOMKilled", 137)
    saved = Life(spec, memory="0s=50Mi, 100s=150Mi")
    saved.sync()
    saved.after(40)
    saved.body["spec"]["containers"][0]["resources"]["limits"]["memory"] = "200Mi"
    assert saved.sync().again_at is None
    saved.body["spec"]["containers"][0]["resources"]["limits"]["memory"] = "80Mi"
    saved.sync()
    saved.after(0.1)
    assert saved.container.last_state.terminated.reason == "OOMKilled"


def test_a_new_process_knows_the_container_before_the_present_one() -> None:
    life = Life(run_for="10s")
    life.sync()
    life.after(11)
    assert life.container.restart_count == 1
    life.simulated = life.new()
    life.sync()
    first, second = life.simulated.observed.containers
    assert (first.running, second.exited) == (True, True)
    assert life.container.last_state.terminated.container_id == f"simulated://{second.id}"
