"""When probes ask, what their answers mean for `started` and `ready`, and who hears of it; with a clock we move."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pybernetes.api.core.v1 import Pod, PodStatus
from pybernetes.api.times import rfc3339
from pybernetes.client.clock import FakeClock
from pybernetes.kubelet.probes.manager import ProbeManager
from pybernetes.kubelet.probes.probing import Probing
from pybernetes.kubelet.probes.results import ProbeType, Result

S, F, ERROR = Result.SUCCESS, Result.FAILURE, None


class Scripted:
    """A prober with configured results, by type of probe."""

    def __init__(self, **answers: list[Result | None]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str, str]] = []

    async def probe(self, type: ProbeType, spec: Any, pod: Any, container: Any, id: str, ip: str) -> Result | None:
        self.asked.append((type.lower(), id, ip))
        script = self.answers[type.lower()]
        return script.pop(0) if len(script) > 1 else script[0]

    def times(self, type: str) -> int:
        return sum(each[0] == type for each in self.asked)


class Node:
    """A probe manager with one pod of one container."""

    def __init__(self, prober: Scripted, *, sidecar: bool = False, clock: FakeClock | None = None, **probes: Any):
        self.clock = clock or FakeClock()
        self.prober = prober
        self.changes: list[tuple[ProbeType, str, Result]] = []
        self.manager = ProbeManager(prober, self.clock, lambda uid, *what: self.changes.append(what))  # type: ignore[arg-type]
        container = {"name": "c", "image": "i", **{f"{name}Probe": spec for name, spec in probes.items()}}
        spec = {"containers": [container]}
        if sidecar:
            spec = {"initContainers": [{**container, "restartPolicy": "Always"}], "containers": [{"name": "main"}]}
        self.field = "init_container_statuses" if sidecar else "container_statuses"
        self.pod = msgspec.convert({"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec}, Pod)
        self.manager.add_pod(self.pod)
        self.started: dict[str, bool | None] = {}

    async def sees(
        self, id: str = "a", *, running: bool = True, since: float | None = None, phase: str = "Running"
    ) -> tuple[bool | None, bool | None]:
        """Make a status as the kubelet does; (started, ready) of the container."""
        at = rfc3339(self.clock.now() if since is None else since)
        state = {"running": {"startedAt": at}} if running else {"terminated": {"exitCode": 1}}
        entry = {"name": "c", "containerID": f"containerd://{id}", "state": state, "started": self.started.get(id)}
        key = "initContainerStatuses" if self.field.startswith("init") else "containerStatuses"
        status = msgspec.convert({"phase": phase, "podIP": "10.0.0.1", key: [entry]}, PodStatus)
        self.manager.update_pod_status(self.pod, status)
        (found,) = getattr(status, self.field)
        self.started[id] = found.started
        await settle()
        return found.started, found.ready

    async def after(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.clock.advance(1.0)
            await settle()
        self.clock.advance(seconds - int(seconds))
        await settle()


async def settle() -> None:
    for _ in range(12):
        await asyncio.sleep(0)


def probe(**fields: int) -> dict[str, Any]:
    return {
        "tcpSocket": {"port": 1},
        "periodSeconds": 10,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
        **fields,
    }


async def test_a_container_without_probes_is_started_and_ready_while_it_runs() -> None:
    node = Node(Scripted())
    assert await node.sees() == (True, True)
    assert (await node.sees(running=False))[0] is False


async def test_readiness_is_asked_in_the_moment_in_which_the_container_runs_and_then_once_a_period() -> None:
    node = Node(Scripted(readiness=[F, S]), readiness=probe())
    assert await node.sees(since=node.clock.now()) == (True, False)
    assert node.prober.asked == [("readiness", "a", "10.0.0.1")]
    await node.after(9.5)
    assert node.prober.times("readiness") == 1
    await node.after(1)
    assert node.prober.times("readiness") == 2
    assert node.changes == [(ProbeType.READINESS, "a", F), (ProbeType.READINESS, "a", S)]
    assert await node.sees(since=node.clock.now() - 10) == (True, True)


async def test_a_status_that_says_nothing_new_does_not_make_probes_ask() -> None:
    node = Node(Scripted(readiness=[F]), readiness=probe())
    for _ in range(5):
        await node.sees(since=1_700_000_000.0)
    assert node.prober.times("readiness") == 1


async def test_a_ready_container_is_unready_only_after_as_many_failures_as_its_threshold() -> None:
    node = Node(Scripted(readiness=[S, F, F, S, F, F, F, S]), readiness=probe(periodSeconds=1))
    await node.sees(since=node.clock.now())
    await node.after(5)
    assert node.manager.readiness.get("a") is S
    await node.after(1)
    assert node.manager.readiness.get("a") is F
    await node.after(1)
    assert node.manager.readiness.get("a") is S


async def test_success_threshold_counts_successes_in_a_row() -> None:
    node = Node(Scripted(readiness=[S, F, S, S]), readiness=probe(periodSeconds=1, successThreshold=2))
    await node.sees(since=node.clock.now())
    await node.after(2)
    assert node.manager.readiness.get("a") is F
    await node.after(1)
    assert node.manager.readiness.get("a") is S


async def test_a_probe_that_could_not_be_asked_counts_for_nothing() -> None:
    node = Node(Scripted(liveness=[F, ERROR, ERROR, F]), liveness=probe(periodSeconds=1, failureThreshold=2))
    await node.sees(since=node.clock.now())
    await node.after(2)
    assert node.manager.liveness.get("a") is S
    await node.after(1)
    assert node.manager.liveness.get("a") is F


async def test_the_initial_delay_is_counted_from_the_start_of_the_container() -> None:
    node = Node(Scripted(readiness=[S]), readiness=probe(initialDelaySeconds=30))
    begin = node.clock.now()
    await node.after(10)
    await node.sees(since=begin)
    await node.after(19)
    assert node.prober.asked == []
    await node.after(2)
    assert node.prober.times("readiness") == 1


async def test_a_start_in_the_middle_of_a_second_makes_no_probe_early() -> None:
    node = Node(Scripted(readiness=[S]), clock=FakeClock(1_700_000_000.9), readiness=probe(initialDelaySeconds=1))
    await node.sees(since=1_700_000_000.0)  # as a status says it
    await node.after(0.8)
    assert node.prober.asked == []
    await node.after(0.3)
    assert node.prober.times("readiness") == 1


async def test_liveness_that_fails_is_silent_until_there_is_a_new_container() -> None:
    node = Node(Scripted(liveness=[F]), liveness=probe(periodSeconds=1, failureThreshold=2))
    await node.sees("a", since=node.clock.now())
    assert node.manager.liveness.get("containerd://a") is S  # until it is known better
    await node.after(10)
    assert node.prober.times("liveness") == 2
    assert node.manager.liveness.get("a") is F
    await node.sees("a", running=False)
    await node.sees("b", since=node.clock.now())
    assert node.manager.liveness.get("a") is None
    assert node.manager.liveness.get("b") is S
    await node.after(1)
    assert [each[1] for each in node.prober.asked] == ["a", "a", "b", "b"]


async def test_the_others_wait_for_the_startup_probe_and_then_ask_at_once() -> None:
    node = Node(
        Scripted(startup=[F, F, S], readiness=[S], liveness=[S]),
        startup=probe(periodSeconds=2),
        readiness=probe(periodSeconds=60),
        liveness=probe(periodSeconds=60),
    )
    begin = node.clock.now()
    assert await node.sees(since=begin) == (False, None)
    await node.after(3)
    assert (node.prober.times("readiness"), node.prober.times("liveness")) == (0, 0)
    await node.after(1)
    assert node.changes[-1] == (ProbeType.STARTUP, "a", S)
    assert await node.sees(since=begin) == (True, False)
    assert (node.prober.times("readiness"), node.prober.times("liveness")) == (1, 1)
    assert await node.sees(since=begin) == (True, True)
    await node.after(20)
    assert node.prober.times("startup") == 3


async def test_a_startup_probe_that_fails_too_often_has_failed() -> None:
    node = Node(Scripted(startup=[F]), startup=probe(periodSeconds=1, failureThreshold=3))
    await node.sees(since=node.clock.now())
    await node.after(10)
    assert node.manager.startup.get("a") is F
    assert node.prober.times("startup") == 3


async def test_a_container_that_does_not_run_is_not_ready() -> None:
    node = Node(Scripted(readiness=[S]), readiness=probe())
    await node.sees(since=node.clock.now())
    assert node.manager.readiness.get("a") is S
    await node.sees(running=False)
    assert node.manager.readiness.get("a") is F


async def test_a_pod_that_is_ended_is_asked_for_readiness_only() -> None:
    node = Node(
        Scripted(readiness=[S], liveness=[F]), readiness=probe(periodSeconds=1), liveness=probe(periodSeconds=1)
    )
    await node.sees(since=node.clock.now())
    node.manager.stop_liveness_and_startup("u")
    await node.after(5)
    assert (node.prober.times("readiness"), node.prober.times("liveness")) == (6, 1)
    assert node.manager.liveness.get("a") is None


@pytest.mark.parametrize("end", ["remove_pod", "cleanup_pods", "phase"])
async def test_a_pod_that_is_gone_is_not_asked(end: str) -> None:
    node = Node(Scripted(readiness=[S]), readiness=probe(periodSeconds=1))
    await node.sees(since=node.clock.now())
    if end == "phase":
        await node.sees(running=False, phase="Failed")
    elif end == "remove_pod":
        node.manager.remove_pod("u")
    else:
        node.manager.cleanup_pods(set())
    await node.after(5)
    assert node.prober.times("readiness") == 1
    assert b"prober_probe_total{" not in node.manager.metrics.render() or end == "phase"


async def test_sidecars_are_probed_and_other_init_containers_are_ready_when_they_have_succeeded() -> None:
    node = Node(Scripted(readiness=[S]), sidecar=True, readiness=probe())
    assert await node.sees(since=node.clock.now()) == (True, False)
    assert await node.sees(since=node.clock.now()) == (True, True)
    done = msgspec.convert(
        {"initContainerStatuses": [{"name": "other", "state": {"terminated": {"exitCode": 0}}}]}, PodStatus
    )
    node.manager.update_pod_status(node.pod, done)
    assert done.init_container_statuses is not None
    assert (done.init_container_statuses[0].started, done.init_container_statuses[0].ready) == (False, True)


@pytest.mark.parametrize(("was_ready", "ready"), [(True, True), (False, False)])
async def test_a_restart_of_the_kubelet_leaves_ready_what_was_ready(was_ready: bool, ready: bool) -> None:
    node = Node(Scripted(readiness=[S], startup=[S]), readiness=probe(), startup=probe())
    condition = {"type": "Ready", "status": "True" if was_ready else "False"}
    node.pod.status = msgspec.convert({"conditions": [condition]}, PodStatus)
    node.started["a"] = True
    assert await node.sees(since=node.clock.now() - 3600) == (True, ready)
    assert node.changes == []
    await node.after(10)  # not all in one moment, but within a period
    assert node.manager.readiness.get("a") is S
    assert node.prober.times("startup") == 0


async def test_probes_are_counted() -> None:
    node = Node(Scripted(liveness=[S, F]), liveness=probe(periodSeconds=1))
    await node.sees(since=node.clock.now())
    await node.after(1)
    text = node.manager.metrics.render().decode()
    labels = 'container="c",namespace="ns",pod="p",pod_uid="u",probe_type="Liveness"'
    assert f'prober_probe_total{{{labels},result="successful"}} 1' in text
    assert f'prober_probe_total{{{labels},result="failed"}} 1' in text
    assert "prober_probe_duration_seconds_count" in text


async def test_a_mistake_at_one_probe_does_not_end_all_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(Scripted(readiness=[F, S]), readiness=probe())
    answer, mistakes = Probing.answer, [RuntimeError("a mistake")]

    def once(self: Probing, result: Result) -> None:
        if mistakes:
            raise mistakes.pop()
        answer(self, result)

    monkeypatch.setattr(Probing, "answer", once)
    await node.sees(since=node.clock.now())
    assert not mistakes
    await node.after(21)
    assert node.changes[-1] == (ProbeType.READINESS, "a", S)


class SetClock(FakeClock):
    """A clock whose time of day can be set."""

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


@pytest.mark.parametrize("hours", [-1, 1])
async def test_probes_go_on_when_the_clock_is_set(hours: int) -> None:
    clock = SetClock()
    node = Node(Scripted(readiness=[S]), readiness=probe(), clock=clock)
    await node.sees(since=clock.now())
    clock.ahead = hours * 3600.0
    await node.after(31)
    assert node.prober.times("readiness") == 4


async def test_an_initial_delay_is_not_longer_when_the_clock_is_set_back() -> None:
    clock = SetClock()
    node = Node(Scripted(readiness=[S]), readiness=probe(initialDelaySeconds=5), clock=clock)
    started = clock.now()
    clock.ahead = -3600.0
    await node.sees(since=started)
    await node.after(7)
    assert node.prober.times("readiness") == 1
