"""Pods get nodes on a real API server: what is written, in which words, and what happens when things go wrong."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import Any

import pytest
from scheduler.live.conftest import Live, MakeLive

from pybernetes.api import errors
from pybernetes.api.core.podconditions import find_pod_condition
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.api.core.v1.affinity import Taint, Toleration
from pybernetes.api.core.v1.pod import PodSchedulingGate
from pybernetes.client.client import Client
from pybernetes.client.informers import InformerFactory
from pybernetes.scheduler.framework import WAIT, CycleState, PermitPlugin, PodInfo, Status
from pybernetes.scheduler.plugins import registry
from pybernetes.scheduler.scheduler import Scheduler


async def test_a_pod_is_bound_with_upstreams_event(live: MakeLive) -> None:
    async with live() as s:
        await s.node("n1")
        await s.pod("p", cpu="1")
        assert await s.bound("p") == "n1"
        pod = await s.get("p")
        assert pod is not None
        condition = find_pod_condition(pod.status, "PodScheduled")
        assert condition is not None
        assert (condition.status, condition.reason, condition.message) == ("True", None, None)
        events = await s.until(lambda: s.events("Scheduled"), "the event")
        assert len(events) == 1
        assert (events[0].type, events[0].message) == ("Normal", f"Successfully assigned {s.namespace}/p to n1")
        assert (events[0].reporting_component, events[0].action) == ("default-scheduler", "Binding")
        assert events[0].involved_object is not None
        assert (events[0].involved_object.kind, events[0].involved_object.uid) == ("Pod", pod.metadata.uid)


async def test_one_pod_costs_one_binding_and_one_event(live: MakeLive) -> None:
    async with live() as s:
        await s.node("n1")
        sent = _count_requests(s)
        await s.pod("p")
        await s.bound("p")
        await s.until(lambda: s.events("Scheduled"), "the event")
        assert sent == {f"POST /api/v1/namespaces/{s.namespace}/pods/p/binding": 1} | {
            f"POST /apis/events.k8s.io/v1/namespaces/{s.namespace}/events": 1
        }


async def test_pods_beyond_the_limit_that_are_bound_meanwhile_are_not_reported(live: MakeLive) -> None:
    async with live() as s:
        s.scheduler.failures._bucket._tokens = -1000.0
        for number in range(3):
            await s.pod(f"p{number}", cpu="1")
        failures = s.scheduler.failures
        await s.until(lambda: len(failures._waiting) == 3, "three pods have failed")
        await s.client.delete(Pod, "p2", s.namespace, grace_period_seconds=0)
        await s.node("n1", cpu="1")
        await s.until(lambda: s.scheduler.snapshot.size == 1, "the node is known")
        bound = await s.until(lambda: _first_bound(s, "p0", "p1"), "one is bound")
        (other,) = {"p0", "p1"} - {bound}
        s.clock.advance(60.0)
        await s.refused(other)
        await s.until(lambda: not failures._waiting, "everything is reported")
        await s.scheduler.events.flush()
        events = await s.events("FailedScheduling")
        assert {each.involved_object.name for each in events if each.involved_object} == {other}
        pod = await s.get(bound)
        assert pod is not None
        condition = find_pod_condition(pod.status, "PodScheduled")
        assert condition is not None
        assert condition.status == "True"


async def _first_bound(s: Live, *names: str) -> str | None:
    for name in names:
        pod = await s.get(name)
        if pod is not None and pod.spec is not None and pod.spec.node_name:
            return name
    return None


async def test_a_pod_that_fits_nowhere_says_why_and_is_bound_when_a_node_comes(live: MakeLive) -> None:
    async with live() as s:
        await s.pod("p", cpu="2")
        await s.until(lambda: s.events("FailedScheduling"), "the event")
        events = await s.events("FailedScheduling")
        assert [each.message for each in events] == ["no nodes available to schedule pods"]
        await s.node("small", cpu="1")
        await s.node("tainted", taints=[Taint(key="k", value="v", effect="NoSchedule")])
        await s.node("cordoned", unschedulable=True)
        message = (
            "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), "
            "1 node(s) were unschedulable. no new claims to deallocate, preemption: 0/3 nodes are available: "
            "3 Preemption is not helpful for scheduling."
        )
        pod = await s.until(lambda: _refused_with(s, "p", message), message)
        condition = find_pod_condition(pod.status, "PodScheduled")
        assert (condition.status, condition.reason, condition.observed_generation) == ("False", "Unschedulable", 1)
        assert message in {each.message for each in await s.events("FailedScheduling")}
        await s.node("large", cpu="4")
        assert await s.bound("p") == "large"


async def test_events_that_cannot_help_do_not_wake_a_pod(live: MakeLive) -> None:
    async with live() as s:
        await s.node("n1", cpu="1")
        await s.pod("p", cpu="2")
        await s.refused("p")
        attempts = s.scheduler.metrics.attempts.value("unschedulable", "default-scheduler")
        await s.node("n2", cpu="1")
        node = await s.client.get(Node, "n1")
        node.metadata.labels = {"a": "b"}
        await s.client.update(node)
        await s.pod("other", cpu="100m")
        await s.bound("other")
        assert s.scheduler.metrics.attempts.value("unschedulable", "default-scheduler") == attempts


async def test_a_node_never_gets_more_than_it_has(live: MakeLive) -> None:
    async with live() as s:
        for name in ("n1", "n2"):
            await s.node(name, cpu="4")
        await asyncio.gather(*(s.pod(f"p{number}", cpu="1500m") for number in range(7)))
        await s.until(lambda: _number_bound(s, 4), "four pods are bound")
        await s.until(lambda: s.events("FailedScheduling"), "the others are reported")
        await asyncio.sleep(0.1)
        counts = Counter(each.spec.node_name for each in await _pods(s))
        assert counts == {"n1": 2, "n2": 2, None: 3}
        victim = next(each for each in await _pods(s) if each.spec.node_name)
        await s.client.delete(Pod, victim.metadata.name, s.namespace, grace_period_seconds=0)
        await s.until(lambda: _number_bound(s, 4), "one takes its place")


async def test_gates_keep_a_pod_and_their_end_lets_it_go(live: MakeLive) -> None:
    async with live() as s:
        await s.node("n1")
        await s.pod("p", scheduling_gates=[PodSchedulingGate(name="example.com/wait")])
        await s.pod("free")
        await s.bound("free")
        pod = await s.get("p")
        assert pod.spec.node_name is None
        assert find_pod_condition(pod.status, "PodScheduled").reason == "SchedulingGated"
        await s.client.patch(Pod, "p", {"spec": {"schedulingGates": None}}, s.namespace)
        await s.bound("p")


async def test_each_profile_serves_the_pods_that_name_it(live: MakeLive) -> None:
    text = """
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit}]}}
"""
    async with live(text) as s:
        for name in ("n1", "n2", "n3"):
            await s.node(name)
        for number in range(3):
            await s.pod(f"packed{number}", cpu="1", scheduler_name="packing")
            await s.bound(f"packed{number}")
        for number in range(3):
            await s.pod(f"spread{number}", cpu="1", memory="1Gi")
            await s.bound(f"spread{number}")
        await s.pod("nobodys", scheduler_name="somebody-else")
        packed = {await s.bound(f"packed{number}") for number in range(3)}
        assert len(packed) == 1
        events = await s.until(lambda: _when(s.events("Scheduled"), 6), "all events")
        names = Counter(each.reporting_component for each in events)
        assert names == {"packing": 3, "default-scheduler": 3}
        assert (await s.get("nobodys")).spec.node_name is None


async def test_a_pod_made_anew_under_the_same_name_is_another(live: MakeLive) -> None:
    async with live() as s:
        await s.node("n1", cpu="1")
        await s.pod("p", cpu="2")
        await s.refused("p")
        await s.client.delete(Pod, "p", s.namespace, grace_period_seconds=0)
        await s.pod("p", cpu="500m")
        assert await s.bound("p") == "n1"


async def test_tolerations_that_are_added_later_count(live: MakeLive) -> None:
    async with live() as s:
        await s.node("n1", taints=[Taint(key="k", effect="NoSchedule")])
        await s.pod("p")
        await s.refused("p")
        pod = await s.get("p")
        pod.spec.tolerations = [*(pod.spec.tolerations or ()), Toleration(key="k", operator="Exists")]
        await s.client.update(pod)
        assert await s.bound("p") == "n1"


# -- when things go wrong


async def test_a_restart_in_the_middle_binds_every_pod_once(live: MakeLive) -> None:
    async with live() as s:
        for number in range(4):
            await s.node(f"n{number}", cpu="64")
        creating = asyncio.gather(*(s.pod(f"p{number}", cpu="100m") for number in range(120)))
        await s.until(lambda: _number_bound(s, 10, at_least=True), "some are bound")
        # The first one runs on: two at once, as after a network partition.
        asked = await _another(s)
        await creating
        async with _another_scheduler(s):
            await s.until(lambda: _number_bound(s, 120), "all are bound")

            async def told() -> bool:
                """Who is ended in the middle of a binding does not tell of it."""
                names = {each.involved_object.name for each in await s.events("Scheduled")}
                return names | asked == {f"p{number}" for number in range(120)}

            await s.until(told, "an event for each")
        events = Counter(each.involved_object.name for each in await s.events("Scheduled"))
        assert set(events.values()) == {1}
        assert not await s.events("FailedScheduling")


async def test_two_schedulers_at_once_bind_every_pod_once_and_none_is_lost(live: MakeLive) -> None:
    async with live() as s:
        for number in range(3):
            await s.node(f"n{number}", cpu="64")
        async with _another_scheduler(s) as other:
            await asyncio.gather(*(s.pod(f"p{number}", cpu="100m") for number in range(60)))
            await s.until(lambda: _number_bound(s, 60), "all are bound")
            all_known = {"nodes": 3, "pods": 60, "assumed_pods": 0}
            for each in (s.scheduler, other):
                await s.until(lambda each=each: each.cache.sizes() == all_known, "all caches agree")
                await s.until(lambda each=each: not list(each.queue.pending()), "no pod waits")
        for pod in await _pods(s):
            assert find_pod_condition(pod.status, "PodScheduled").status == "True"


async def test_a_binding_whose_answer_is_lost_counts(live: MakeLive) -> None:
    async with live() as s:
        await s.node("n1")
        client = s.scheduler.client
        bind = client.bind

        async def lose(*args: Any, **more: Any) -> None:
            await bind(*args, **more)
            raise ConnectionResetError("the answer is lost")

        client.bind = lose
        await s.pod("p")
        await s.until(lambda: s.events("Scheduled"), "it is known to be bound")
        assert not await s.events("FailedScheduling")
        assert s.scheduler.metrics.attempts.value("scheduled", "default-scheduler") == 1


async def test_a_failing_server_is_asked_again_later_and_logged(live: MakeLive) -> None:
    async with live() as s:
        await s.node("n1")
        client = s.scheduler.client
        bind = client.bind
        failures = iter([errors.InternalError("boom"), OSError("no route")])

        async def fail(*args: Any, **more: Any) -> None:
            for failure in failures:
                raise failure
            await bind(*args, **more)

        client.bind = fail
        await s.pod("p")
        await s.until(lambda: s.events("FailedScheduling"), "it is reported")
        assert await s.until(lambda: _advance(s, "p"), "it is bound in the end") == "n1"
        message = (await s.events("FailedScheduling"))[0].message
        assert message.startswith('running Bind plugin "DefaultBinder": ')
        assert s.scheduler.cache.sizes()["pods"] == 1


class Holds(PermitPlugin):
    """Lets pods wait that ask for it."""

    name = "Holds"

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
        seconds = pod.labels.get("wait")
        return (Status(WAIT), float(seconds)) if seconds else (None, 0.0)


@pytest.fixture
def holds(monkeypatch: pytest.MonkeyPatch) -> str:
    known = registry.load
    monkeypatch.setattr(registry, "load", lambda name: Holds if name == "Holds" else known(name))
    return "profiles: [{schedulerName: default-scheduler, plugins: {permit: {enabled: [{name: Holds}]}}}]\n"


async def test_a_pod_waits_for_its_permit_and_keeps_its_room(live: MakeLive, holds: str) -> None:
    async with live(holds) as s:
        await s.node("n1", cpu="1")
        await s.pod("p", cpu="1", labels={"wait": "900"})
        waiting = await s.until(lambda: _waiting(s), "it waits")
        await s.pod("q", cpu="1")
        assert "Insufficient cpu" in await s.refused("q")
        pod = await s.until(lambda: _nominated(s, "p"), "others can see where it will go")
        assert (pod.status.nominated_node_name, pod.spec.node_name) == ("n1", None)
        assert waiting.pending_plugins == ["Holds"]
        waiting.allow("Holds")
        assert await s.bound("p") == "n1"


async def test_who_waits_too_long_is_refused_and_its_room_is_free(live: MakeLive, holds: str) -> None:
    async with live(holds) as s:
        await s.node("n1", cpu="1")
        await s.pod("p", cpu="1", labels={"wait": "60"})
        await s.until(lambda: _waiting(s), "it waits")
        await s.pod("q", cpu="1")
        await s.refused("q")
        s.clock.advance(61)
        assert await s.bound("q") == "n1"
        said = "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Holds."
        await s.until(lambda: _told(s, said), "the reason is reported")


async def test_a_node_that_disappears_before_the_binding_is_not_used(live: MakeLive, holds: str) -> None:
    async with live(holds) as s:
        await s.node("n1")
        await s.pod("p", labels={"wait": "900"})
        waiting = await s.until(lambda: _waiting(s), "it waits")
        await s.client.delete(Node, "n1")
        await s.until(lambda: "n1" not in _alive(s), "the node is gone")
        await s.node("n2")
        waiting.allow("Holds")
        again = await s.until(lambda: s.clock.advance(0.2) or _waiting(s, "n2"), "it is tried again")
        again.allow("Holds")
        assert await s.bound("p") == "n2"
        await s.until(lambda: _told(s, 'node "n1" not found'), "the reason is reported")


async def test_a_pod_deleted_while_it_waits_leaves_nothing_behind(live: MakeLive, holds: str) -> None:
    async with live(holds) as s:
        await s.node("n1", cpu="1")
        await s.pod("p", cpu="1", labels={"wait": "900"})
        await s.until(lambda: _waiting(s), "it waits")
        await s.client.delete(Pod, "p", s.namespace, grace_period_seconds=0)
        await s.until(lambda: not _waiting(s), "it waits no more")
        await s.pod("q", cpu="1")
        assert await s.bound("q") == "n1"
        await s.until(
            lambda: s.scheduler.cache.sizes() == {"nodes": 1, "pods": 1, "assumed_pods": 0}, "only q is there"
        )


async def test_a_pod_deleted_just_before_its_binding_leaves_nothing_behind(live: MakeLive) -> None:
    async with live() as s:
        await s.node("n1", cpu="1")
        client = s.scheduler.client
        bind, reached, go = client.bind, asyncio.Event(), asyncio.Event()

        async def slow(*args: Any, **more: Any) -> None:
            reached.set()
            await go.wait()
            await bind(*args, **more)

        client.bind = slow
        await s.pod("p", cpu="1")
        await asyncio.wait_for(reached.wait(), 30)
        await s.client.delete(Pod, "p", s.namespace, grace_period_seconds=0)
        go.set()
        await s.until(lambda: s.scheduler.cache.sizes()["pods"] == 0, "its room is free")
        assert not await s.events("FailedScheduling")
        await s.pod("q", cpu="1")
        assert await s.bound("q") == "n1"


# -- looking


def _count_requests(s: Live) -> dict[str, int]:
    sent: dict[str, int] = {}
    transport = s.scheduler.client.transport
    request = transport.request

    async def count(method: str, target: str, **more: Any) -> Any:
        sent[f"{method} {target}"] = sent.get(f"{method} {target}", 0) + 1
        return await request(method, target, **more)

    transport.request = count  # type: ignore[method-assign]
    return sent


async def _pods(s: Live) -> list[Any]:
    return list((await s.client.list(Pod, s.namespace)).items or ())


async def _number_bound(s: Live, number: int, at_least: bool = False) -> bool:
    bound = sum(bool(each.spec.node_name) for each in await _pods(s))
    return bound >= number if at_least else bound == number


async def _refused_with(s: Live, name: str, message: str) -> Any:
    pod = await s.get(name)
    condition = find_pod_condition(pod.status, "PodScheduled") if pod else None
    return pod if condition and condition.message == message else None


async def _when(found: Any, number: int) -> Any:
    items = await found
    return items if len(items) == number else None


async def _advance(s: Live, name: str) -> str | None:
    s.clock.advance(1.0)
    pod = await s.get(name)
    return pod.spec.node_name if pod and pod.spec else None


async def _nominated(s: Live, name: str) -> Any:
    pod = await s.get(name)
    return pod if pod and pod.status and pod.status.nominated_node_name else None


async def _told(s: Live, message: str) -> bool:
    return message in {each.message for each in await s.events("FailedScheduling")}


def _waiting(s: Live, node: str = "") -> Any:
    framework = s.scheduler.frameworks["default-scheduler"]
    return next((each for each in framework.waiting_pods() if node in ("", each.node_name)), None)


def _alive(s: Live) -> set[str]:
    snapshot = s.scheduler.snapshot
    return {name for name, row in snapshot.row_of.items() if snapshot.alive[row]}


@contextlib.asynccontextmanager
async def _another_scheduler(s: Live, asked: set[str] | None = None) -> Any:
    """A second scheduler of the same name, in this process; the names of pods that it asks to be bound."""
    async with Client(s.client.transport.config, program="kube-scheduler") as client:
        bind = client.bind

        async def noted(name: str, *args: Any, **more: Any) -> None:
            if asked is not None:
                asked.add(name)
            await bind(name, *args, **more)

        client.bind = noted  # type: ignore[method-assign]
        scheduler = Scheduler(client, InformerFactory(client, clock=s.clock), s.scheduler.spec, s.clock)
        task = asyncio.create_task(scheduler.run())
        try:
            await scheduler.started.wait()
            yield scheduler
        finally:
            task.cancel()
            await asyncio.wait([task])


async def _another(s: Live) -> set[str]:
    """A second scheduler that is started and ended while the first one works; whom it has asked to be bound."""
    asked: set[str] = set()
    async with _another_scheduler(s, asked):
        await asyncio.sleep(0.05)
    return asked
