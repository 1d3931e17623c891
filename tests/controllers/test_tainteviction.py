"""Pods leave nodes with NoExecute taints that they do not tolerate, when their time is over."""

from __future__ import annotations

import pytest
from controllers.cluster_nodes import nodes_of, pod_on, taint, tolerates
from controllers.conftest import Harness, MakeHarness

from pybernetes.api.core.v1 import Pod, Taint, Toleration
from pybernetes.controllers.tainteviction import tolerated_seconds

NAME = "taint-eviction-controller"
A, B = taint("a"), taint("b")


@pytest.mark.parametrize(
    ("taints", "tolerations", "seconds"),
    [
        ([], [], None),
        ([A], [], 0),
        ([A], [tolerates("b")], 0),
        ([A], [tolerates("a")], None),
        ([A], [tolerates("a", 60)], 60),
        ([A], [tolerates("a", 0)], 0),
        ([A], [tolerates("a", -5)], 0),
        ([A, B], [tolerates("a", 60), tolerates("b", 20)], 20),
        ([A, B], [tolerates("a"), tolerates("b", 20)], 20),
        ([A, B], [tolerates("a", 60)], 0),
        ([A], [tolerates("a", 60), tolerates("a", 20)], 60),  # the first that matches
        ([A], [Toleration(operator="Exists")], None),
    ],
)
def test_how_long_a_pod_bears_taints(taints: list[Taint], tolerations: list[Toleration], seconds: float | None) -> None:
    assert tolerated_seconds(taints, tolerations) == seconds


def pods(h: Harness) -> set[str]:
    return {each.metadata.name or "" for each in h.live(Pod) if each.metadata}


async def test_what_does_not_tolerate_goes_at_once_what_does_stays(harness: MakeHarness) -> None:
    async with harness(NAME) as h, nodes_of(h) as nodes:
        name = await nodes.add()
        await h.client.create(pod_on(h, "bears", name, tolerates("a")))
        await h.client.create(pod_on(h, "elsewhere", "other"))
        victim = pod_on(h, "bears-not", name)
        assert victim.spec
        victim.spec.termination_grace_period_seconds = 30
        assert victim.metadata
        victim.metadata.annotations = {"fake-kubelet/stuck": "true"}
        await h.client.create(victim)
        await h.until(lambda: len(pods(h)) == 3)
        await nodes.set_taints(name, A)
        await h.until(lambda: pods(h) == {"bears", "elsewhere"})
        found = await h.get(Pod, "bears-not")
        assert found
        assert found.status
        marks = [
            (each.status, each.reason, each.message)
            for each in found.status.conditions or ()
            if each.type == "DisruptionTarget"
        ]
        assert marks == [("True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")]
        (event,) = await h.events("TaintManagerEviction")
        assert event.message == f"Marking for deletion Pod {h.namespace}/bears-not"
        assert event.source
        assert event.source.component == NAME


async def test_no_schedule_taints_evict_no_pod(harness: MakeHarness) -> None:
    async with harness(NAME) as h, nodes_of(h) as nodes:
        name = await nodes.add()
        await h.client.create(pod_on(h, "p", name))
        await nodes.set_taints(name, taint("a", "NoSchedule"))
        await h.until(lambda: pods(h) == {"p"})
        await h.settled()
        assert pods(h) == {"p"}


async def test_a_pod_stays_as_long_as_it_tolerates(harness: MakeHarness) -> None:
    async with harness(NAME) as h, nodes_of(h) as nodes:
        name = await nodes.add()
        await nodes.set_taints(name, A)
        await h.client.create(pod_on(h, "long", name, tolerates("a", 300)))
        await h.client.create(pod_on(h, "short", name, tolerates("a", 100)))
        await h.until(lambda: len(pods(h)) == 2)
        await h.settled()
        h.clock.advance(90)
        await h.settled()
        assert pods(h) == {"long", "short"}
        h.clock.advance(20)
        await h.until(lambda: pods(h) == {"long"})
        h.clock.advance(200)
        await h.until(lambda: not pods(h))


async def test_the_eviction_is_cancelled_when_the_taint_goes(harness: MakeHarness) -> None:
    async with harness(NAME) as h, nodes_of(h) as nodes:
        name = await nodes.add()
        await nodes.set_taints(name, A)
        await h.client.create(pod_on(h, "p", name, tolerates("a", 100)))
        controller = h.controller(NAME)
        await h.until(lambda: controller.scheduled)  # type: ignore[attr-defined]
        await nodes.set_taints(name)
        await h.until(lambda: not controller.scheduled)  # type: ignore[attr-defined]
        h.clock.advance(200)
        await h.settled()
        assert pods(h) == {"p"}
        (event,) = await h.events("TaintManagerEviction")
        assert event.message == f"Cancelling deletion of Pod {h.namespace}/p"


async def test_another_taint_makes_it_shorter_and_time_served_counts(harness: MakeHarness) -> None:
    async with harness(NAME) as h, nodes_of(h) as nodes:
        name = await nodes.add()
        await nodes.set_taints(name, A)
        await h.client.create(pod_on(h, "p", name, tolerates("a", 1000), tolerates("b", 100)))
        controller = h.controller(NAME)
        await h.until(lambda: controller.scheduled)  # type: ignore[attr-defined]
        h.clock.advance(60)
        (eviction,) = controller.scheduled.values()  # type: ignore[attr-defined]
        await nodes.set_taints(name, A, B)
        await h.until(lambda: next(iter(controller.scheduled.values())) is not eviction)  # type: ignore[attr-defined]
        h.clock.advance(30)
        await h.settled()
        assert pods(h) == {"p"}
        h.clock.advance(20)
        await h.until(lambda: not pods(h))


async def test_longer_tolerations_save_a_pod(harness: MakeHarness) -> None:
    async with harness(NAME) as h, nodes_of(h) as nodes:
        name = await nodes.add()
        await nodes.set_taints(name, A)
        made = await h.client.create(pod_on(h, "p", name, tolerates("a", 100)))
        controller = h.controller(NAME)
        await h.until(lambda: controller.scheduled)  # type: ignore[attr-defined]
        wanted = [*((made.spec and made.spec.tolerations) or ()), Toleration(operator="Exists")]
        await h.client.patch(Pod, "p", {"spec": {"tolerations": wanted}}, h.namespace)
        h.clock.advance(10)
        await h.settled()
        assert controller.scheduled  # type: ignore[attr-defined]  # the first that matches still says 100 s


async def test_a_pod_that_comes_to_a_tainted_node_goes_and_one_that_is_deleted_is_forgotten(
    harness: MakeHarness,
) -> None:
    async with harness(NAME) as h, nodes_of(h) as nodes:
        name = await nodes.add()
        await nodes.set_taints(name, A)
        await h.client.create(pod_on(h, "waits", name, tolerates("a", 100)))
        controller = h.controller(NAME)
        await h.until(lambda: controller.scheduled)  # type: ignore[attr-defined]
        await h.client.create(pod_on(h, "comes", name))
        await h.until(lambda: pods(h) == {"waits"})
        await h.client.delete(Pod, "waits", h.namespace, grace_period_seconds=0)
        await h.until(lambda: not controller.scheduled)  # type: ignore[attr-defined]
