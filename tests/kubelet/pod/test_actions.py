"""What is to be done for a pod: each line a state of the runtime and what follows from it."""

from __future__ import annotations

import pytest
from kubelet.observed import observed, pod

from pybernetes.kubelet.container.hash import fnv32a
from pybernetes.kubelet.pod.actions import LIVENESS_PROBE, STARTUP_PROBE, PodActions, Verdicts, compute_pod_actions
from pybernetes.kubelet.runtime.types import ObservedPod, ObservedSandbox, replace

TWO = "{containers: [{name: a, image: i}, {name: b, image: i}]}"
WITH_INIT = "{initContainers: [{name: i1, image: i}, {name: i2, image: i}], containers: [{name: a, image: i}]}"
WITH_SIDECAR = (
    "{initContainers: [{name: i1, image: i}, {name: side, image: i, restartPolicy: Always}, {name: i2, image: i}],"
    " containers: [{name: a, image: i}]}"
)


def words(actions: PodActions) -> str:
    """The actions in one line."""
    parts = []
    if actions.kill_pod:
        parts.append("kill-pod")
    if actions.create_sandbox:
        parts.append("sandbox")
    parts += [f"kill:{each.container.id}" for each in actions.to_kill.values()]
    parts += [f"reset:{each.id}" for each in actions.to_reset]
    parts += [f"debug:{each.name}" for each in actions.ephemeral_to_start]
    parts += [f"init:{each.name}" for each in actions.init_to_start]
    parts += [f"start:{each.name}" for each in actions.to_start]
    return " ".join(parts)


def never(spec: str) -> str:
    return spec.replace("{", "{restartPolicy: Never, ", 1)


def on_failure(spec: str) -> str:
    return spec.replace("{", "{restartPolicy: OnFailure, ", 1)


@pytest.mark.parametrize(
    ("spec", "sandbox", "containers", "expected"),
    [
        (TWO, "none", [], "kill-pod sandbox start:a start:b"),
        (TWO, "ready", [], "start:a start:b"),
        (TWO, "ready", ["a running", "b running"], ""),
        (TWO, "ready", ["a running", "b exited 0"], "start:b"),
        (TWO, "ready", ["a running", "b created"], "start:b"),
        (TWO, "ready", ["a running", "b unknown"], "kill:b-0 start:b"),
        (TWO, "dead", ["a exited 255", "b exited 255"], "kill-pod sandbox start:a start:b"),
        (never(TWO), "none", [], "kill-pod sandbox start:a start:b"),
        (never(TWO), "ready", ["a running", "b exited 1"], ""),
        (never(TWO), "ready", ["a exited 0", "b exited 1"], "kill-pod"),
        (never(TWO), "dead", ["a exited 0", "b exited 1"], "kill-pod"),
        (never(TWO), "dead", [], "kill-pod sandbox start:a start:b"),
        (on_failure(TWO), "ready", ["a exited 0", "b exited 1"], "start:b"),
        (on_failure(TWO), "ready", ["a exited 0", "b exited 0"], "kill-pod"),
        (on_failure(TWO), "dead", ["a exited 0", "b exited 1"], "kill-pod sandbox start:b"),
        (on_failure(TWO), "dead", ["a exited 0", "b exited 0"], "kill-pod"),
        (WITH_INIT, "none", [], "kill-pod sandbox init:i1"),
        (WITH_INIT, "ready", [], "init:i1"),
        (WITH_INIT, "ready", ["i1 running"], ""),
        (WITH_INIT, "ready", ["i1 exited 0"], "init:i2"),
        (WITH_INIT, "ready", ["i1 exited 1"], "init:i1"),
        (WITH_INIT, "ready", ["i1 created"], "init:i1"),
        (WITH_INIT, "ready", ["i1 unknown"], "kill:i1-0 init:i1"),
        (WITH_INIT, "ready", ["i2 exited 0"], "start:a"),  # the first one is gone: it must have been done
        (WITH_INIT, "ready", ["i2 exited 0", "i1 exited 0"], "start:a"),
        (WITH_INIT, "ready", ["a running", "i2 exited 1"], ""),  # long over
        (WITH_INIT, "ready", ["a running"], ""),
        (WITH_INIT, "dead", ["a exited 255", "i2 exited 0"], "kill-pod sandbox init:i1"),
        (never(WITH_INIT), "ready", ["i1 exited 1"], "kill-pod"),
        (never(WITH_INIT), "ready", ["i1 unknown"], "kill-pod"),
        (never(WITH_INIT), "ready", ["a exited 1", "i2 exited 0"], "kill-pod"),
        (WITH_SIDECAR, "ready", ["i1 exited 0"], "init:side"),
        (WITH_SIDECAR, "ready", ["side running", "i1 exited 0"], "init:i2"),
        (WITH_SIDECAR, "ready", ["i2 running", "side running", "i1 exited 0"], ""),
        (WITH_SIDECAR, "ready", ["i2 exited 0", "side running", "i1 exited 0"], "start:a"),
        (WITH_SIDECAR, "ready", ["i2 running", "side exited 1", "i1 exited 0"], "init:side"),
        (WITH_SIDECAR, "ready", ["a running", "i2 exited 0", "side exited 0"], "init:side"),
        (WITH_SIDECAR, "ready", ["a running", "i2 exited 0"], "init:side"),
        (never(WITH_SIDECAR), "ready", ["a exited 0", "i2 exited 0", "side running"], "kill-pod"),
        (never(WITH_SIDECAR), "ready", ["a exited 0", "i2 exited 0", "side exited 1"], "kill-pod"),
    ],
)
def test_actions_follow_from_the_spec_and_the_runtime(
    spec: str, sandbox: str, containers: list[str], expected: str
) -> None:
    subject = pod(spec)
    assert words(compute_pod_actions(subject, observed(subject, *containers, sandbox=sandbox))) == expected


@pytest.mark.parametrize(
    ("policy", "rules", "code", "expected"),
    [
        ("Never", "", 0, "kill-pod"),
        ("Always", "", 0, "start:a"),
        ("OnFailure", "", 0, "kill-pod"),
        ("OnFailure", "", 3, "start:a"),
        ("Never", "[{action: Restart, exitCodes: {operator: In, values: [42]}}]", 42, "start:a"),
        ("Never", "[{action: Restart, exitCodes: {operator: In, values: [42]}}]", 1, "kill-pod"),
        ("Never", "[{action: Restart, exitCodes: {operator: NotIn, values: [42]}}]", 1, "start:a"),
        ("Never", "[{action: Restart, exitCodes: {operator: NotIn, values: [42]}}]", 42, "kill-pod"),
    ],
)
def test_a_container_may_have_its_own_policy_and_rules(policy: str, rules: str, code: int, expected: str) -> None:
    more = f", restartPolicyRules: {rules}" if rules else ""
    spec = f"{{restartPolicy: Never, containers: [{{name: a, image: i, restartPolicy: {policy}{more}}}]}}"
    subject = pod(spec)
    assert words(compute_pod_actions(subject, observed(subject, f"a exited {code}"))) == expected


def test_a_pod_that_is_being_deleted_starts_nothing() -> None:
    subject = pod(TWO, deletionTimestamp="2026-01-01T00:00:00Z")
    assert words(compute_pod_actions(subject, observed(subject, "a running", "b exited 1"))) == ""


def test_all_start_over_and_the_cause_is_removed_last() -> None:
    rule = "restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [88]}}]"
    subject = pod(
        f"{{restartPolicy: Never, initContainers: [{{name: i1, image: i}}], containers: ["
        f"{{name: a, image: i, restartPolicy: Never, {rule}}}, {{name: b, image: i}}]}}"
    )
    state = observed(subject, "b running", "a exited 88", "i1 exited 0")
    actions = compute_pod_actions(subject, state, restart_all=True)
    assert words(actions) == "reset:b-0 reset:i1-0 reset:a-0"


@pytest.mark.parametrize(
    ("liveness", "startup", "message", "reason"),
    [
        (False, True, "Container a failed liveness probe, will be restarted", LIVENESS_PROBE),
        (None, False, "Container a failed startup probe, will be restarted", STARTUP_PROBE),
    ],
)
def test_a_failed_probe_restarts_a_container(
    liveness: bool | None, startup: bool | None, message: str, reason: str
) -> None:
    subject = pod(TWO)
    verdicts = Verdicts(lambda id: liveness if id == "a-0" else True, lambda id: startup if id == "a-0" else True)
    actions = compute_pod_actions(subject, observed(subject, "a running", "b running"), verdicts)
    assert words(actions) == "kill:a-0 start:a"
    assert (actions.to_kill["a-0"].message, actions.to_kill["a-0"].reason) == (message, reason)


def test_a_failed_probe_only_kills_where_nothing_is_restarted() -> None:
    subject = pod(never(TWO))
    verdicts = Verdicts(lambda id: id != "a-0")
    actions = compute_pod_actions(subject, observed(subject, "a running", "b running"), verdicts)
    assert words(actions) == "kill:a-0"
    assert actions.to_kill["a-0"].message == "Container a failed liveness probe"


def test_another_image_is_another_container_whatever_the_policy() -> None:
    before, after = pod(never(TWO)), pod(never(TWO).replace("name: a, image: i", "name: a, image: j"))
    actions = compute_pod_actions(after, observed(before, "a running", "b running"))
    assert words(actions) == "kill:a-0 start:a"
    assert actions.to_kill["a-0"].message == "Container a definition changed, will be restarted"


def test_a_sidecar_with_a_startup_probe_is_waited_for() -> None:
    probe = "startupProbe: {exec: {command: [x]}}"
    subject = pod(WITH_SIDECAR.replace("restartPolicy: Always", f"restartPolicy: Always, {probe}"))
    state = observed(subject, "side running", "i1 exited 0")
    assert words(compute_pod_actions(subject, state)) == ""
    assert words(compute_pod_actions(subject, state, Verdicts(startup=lambda _: True))) == "init:i2"
    failed = compute_pod_actions(subject, state, Verdicts(startup=lambda _: False))
    assert words(failed) == "kill:side-0 init:side"
    assert failed.to_kill["side-0"].message == "Init container side failed startup probe"


def test_ephemeral_containers_wait_for_no_init_container_and_run_once() -> None:
    spec = WITH_INIT.replace("{", "{ephemeralContainers: [{name: e, image: i}], ", 1)
    subject = pod(spec)
    assert words(compute_pod_actions(subject, observed(subject, "i1 running"))) == "debug:e"
    assert words(compute_pod_actions(subject, observed(subject, "e exited 1", "i1 running"))) == ""


def _with(state: ObservedPod, *sandboxes: ObservedSandbox) -> ObservedPod:
    return replace(state, sandboxes=sandboxes)


def test_a_sandbox_that_does_not_fit_is_replaced() -> None:
    subject = pod(TWO)
    state = observed(subject, "a running", "b running")
    ready = state.sandboxes[0]
    cases = {
        "two ready": _with(state, replace(ready, id="s1", attempt=1), ready),
        "no address": _with(state, replace(ready, ips=())),
        "of the host": _with(state, replace(ready, host_network=True)),
    }
    for name, case in cases.items():
        actions = compute_pod_actions(subject, case)
        assert actions.kill_pod, name
        assert actions.create_sandbox, name
    assert compute_pod_actions(subject, cases["two ready"]).attempt == 2
    assert compute_pod_actions(subject, _with(state, ready, replace(ready, ready=False))).nothing


def test_a_resize_that_needs_a_restart_does_not_end_the_pod() -> None:
    subject = pod(never(TWO))
    state = observed(subject, "a running", "b running")
    actions = compute_pod_actions(subject, state, keep_as_it_is=lambda container, _: container.name != "a")
    assert words(actions) == "kill:a-0 start:a"
    assert actions.to_kill["a-0"].message == "Container a resize requires restart"


@pytest.mark.parametrize(("data", "value"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)])
def test_fnv32a_is_the_published_one(data: bytes, value: int) -> None:
    assert fnv32a(data) == value
