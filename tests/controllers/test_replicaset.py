"""ReplicaSets and ReplicationControllers on a real API server: the behaviours that upstream documents, one by one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from controllers.conftest import Harness, MakeHarness
from controllers.workloads import LABELS, SELECTOR, bare_pod, template

from pybernetes.api import errors
from pybernetes.api.apps.v1 import ReplicaSet, ReplicaSetSpec
from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.core.v1.replicationcontroller import ReplicationController, ReplicationControllerSpec
from pybernetes.api.meta.v1.objectmeta import ObjectMeta
from pybernetes.client.keys import controller_of, is_controlled_by, uid_of
from pybernetes.controllers.common.meta import annotations_of
from pybernetes.controllers.common.pod_control import slow_start
from pybernetes.controllers.common.pod_ranks import DELETION_COST
from pybernetes.controllers.replicaset import ReplicaController


def replicaset(h: Harness, replicas: int, name: str = "web", **spec: Any) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name=name, namespace=h.namespace),
        spec=ReplicaSetSpec(replicas=replicas, selector=SELECTOR, template=spec.pop("template", template()), **spec),
    )


async def has_status(h: Harness, **counts: int | None) -> bool:
    found = await h.get(ReplicaSet, "web")
    assert found is not None
    assert found.status is not None
    assert found.metadata is not None
    if found.status.observed_generation != found.metadata.generation:
        return False
    return all((getattr(found.status, name) or 0) == value for name, value in counts.items())


async def scale(h: Harness, replicas: int) -> None:
    await h.client.patch(ReplicaSet, "web", {"spec": {"replicas": replicas}}, h.namespace)


async def test_it_makes_as_many_pods_as_asked_and_reports_them(harness: MakeHarness) -> None:
    async with harness("replicaset-controller") as h:
        made = await h.client.create(replicaset(h, 3))
        await h.until(
            lambda: has_status(h, replicas=3, fully_labeled_replicas=3, ready_replicas=3, available_replicas=3)
        )
        pods = await h.list(Pod)
        assert len(pods) == 3
        for pod in pods:
            assert pod.metadata is not None
            assert pod.metadata.generate_name == "web-"
            assert pod.metadata.labels == LABELS
            reference = controller_of(pod)
            assert reference is not None
            assert (reference.kind, reference.name, reference.uid) == ("ReplicaSet", "web", uid_of(made))
            assert reference.block_owner_deletion is True
        await h.settled()
        assert len(await h.list(Pod)) == 3
        events = await h.events("SuccessfulCreate")
        assert sorted(event.message or "" for event in events) == [
            f"Created pod: {pod.metadata.name}" for pod in pods if pod.metadata
        ]


async def test_a_deleted_pod_is_replaced_before_it_is_gone(harness: MakeHarness) -> None:
    async with harness("replicaset-controller") as h:
        await h.client.create(replicaset(h, 2, template=template(told={"fake-kubelet/stuck": "true"}, node_name="n1")))
        await h.until(lambda: has_status(h, ready_replicas=2))
        victim = h.live(Pod)[0]
        assert victim.metadata is not None
        await h.client.delete(Pod, victim.metadata.name or "", h.namespace)
        await h.until(lambda: has_status(h, replicas=2, ready_replicas=2, terminating_replicas=1))
        assert len(h.live(Pod)) == 2
        assert len(h.cached(Pod)) == 3
        await h.client.delete(Pod, victim.metadata.name or "", h.namespace, grace_period_seconds=0)
        await h.until(lambda: has_status(h, terminating_replicas=0))


async def test_failed_pods_are_replaced_and_stay_for_inspection(harness: MakeHarness) -> None:
    async with harness("replicaset-controller") as h:
        await h.client.create(replicaset(h, 1))
        first = await h.until(lambda: h.live(Pod))
        name = (first[0].metadata or ObjectMeta()).name or ""
        await h.client.patch(Pod, name, {"metadata": {"annotations": {"fake-kubelet/exit-code": "1"}}}, h.namespace)
        await h.until(lambda: len(h.live(Pod)) == 2, "a replacement")
        await h.until(lambda: {pod.status.phase for pod in h.live(Pod) if pod.status} == {"Failed", "Running"})
        await h.until(lambda: has_status(h, replicas=1, ready_replicas=1))


async def test_scaling_down_deletes_unready_and_cheap_pods_first(harness: MakeHarness) -> None:
    async with harness("replicaset-controller") as h:
        await h.client.create(replicaset(h, 4))
        await h.until(lambda: has_status(h, ready_replicas=4))
        names = [(pod.metadata or ObjectMeta()).name or "" for pod in h.live(Pod)]
        for name, cost in zip(names, ("5", "-5", "5", "5"), strict=True):
            notes = {DELETION_COST: cost}
            if name == names[3]:
                notes["fake-kubelet/ready"] = "false"
            await h.client.patch(Pod, name, {"metadata": {"annotations": notes}}, h.namespace)
        await h.until(lambda: has_status(h, ready_replicas=3))
        await scale(h, 2)
        await h.until(lambda: has_status(h, replicas=2))
        assert [(pod.metadata or ObjectMeta()).name for pod in h.live(Pod)] == [names[0], names[2]]
        deleted = await h.events("SuccessfulDelete")
        assert sorted(event.message or "" for event in deleted) == [
            f"Deleted pod: {names[1]}",
            f"Deleted pod: {names[3]}",
        ]


async def test_orphans_that_match_are_adopted_and_count(harness: MakeHarness) -> None:
    async with harness("replicaset-controller") as h:
        for name in ("a", "b", "c"):
            await h.client.create(bare_pod(name, h.namespace))
        await h.caught_up()
        made = await h.client.create(replicaset(h, 2))
        await h.until(lambda: has_status(h, replicas=2, ready_replicas=2))
        pods = h.live(Pod)
        assert {(pod.metadata or ObjectMeta()).name for pod in pods} < {"a", "b", "c"}
        assert all(is_controlled_by(pod, made) for pod in pods)
        await h.client.create(bare_pod("late", h.namespace))
        await h.settled()
        await h.until(lambda: len(h.live(Pod)) == 2, "the surplus is gone")


async def test_a_pod_that_is_relabelled_is_released_and_replaced(harness: MakeHarness) -> None:
    async with harness("replicaset-controller") as h:
        await h.client.create(replicaset(h, 1))
        await h.until(lambda: has_status(h, ready_replicas=1))
        name = (h.live(Pod)[0].metadata or ObjectMeta()).name or ""
        await h.client.patch(Pod, name, {"metadata": {"labels": {"app": "other"}}}, h.namespace)
        await h.until(lambda: len(h.live(Pod)) == 2, "a replacement")

        async def released() -> bool:
            pod = await h.client.get(Pod, name, h.namespace)
            return controller_of(pod) is None

        await h.until(released)


async def test_pods_of_others_are_left_alone(harness: MakeHarness) -> None:
    async with harness("replicaset-controller") as h:
        await h.client.create(replicaset(h, 1))
        await h.client.create(replicaset(h, 2, "other"))
        await h.until(lambda: len(h.live(Pod)) == 3)
        await h.settled()
        assert len(h.live(Pod)) == 3
        await h.client.delete(ReplicaSet, "other", h.namespace, propagation_policy="Orphan")
        await h.settled()
        assert len(h.live(Pod)) == 3


async def test_min_ready_seconds_delay_availability(harness: MakeHarness) -> None:
    async with harness("replicaset-controller") as h:
        await h.client.create(replicaset(h, 2, min_ready_seconds=600))
        await h.until(lambda: has_status(h, ready_replicas=2, available_replicas=0))
        h.clock.advance(300)
        await h.settled()
        assert await has_status(h, available_replicas=0)
        h.clock.advance(301)
        await h.until(lambda: has_status(h, available_replicas=2))


async def test_a_quota_becomes_a_condition_an_event_and_a_retry(
    harness: MakeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with harness("replicaset-controller") as h:
        controller = h.controller("replicaset-controller")
        refuse = True
        create = controller.client.create
        calls = 0

        async def limited(obj: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if refuse and calls > 3:
                raise errors.Forbidden("", "pods", "web-x", "exceeded quota: few")
            return await create(obj, **options)

        monkeypatch.setattr(controller.client, "create", limited)
        await h.client.create(replicaset(h, 20))

        async def failed() -> Any:
            found = await h.get(ReplicaSet, "web")
            assert found is not None
            assert found.status is not None
            return found.status.conditions

        conditions = await h.until(failed)
        assert conditions[0].type == "ReplicaFailure"
        assert (conditions[0].status, conditions[0].reason) == ("True", "FailedCreate")
        assert conditions[0].message == 'pods "web-x" is forbidden: exceeded quota: few'
        assert (await h.events("FailedCreate"))[0].type == "Warning"
        refuse = False
        await h.until(lambda: has_status(h, replicas=20))
        await h.until(lambda: _no_conditions(h))
        await h.settled()
        assert len(h.live(Pod)) == 20


async def _no_conditions(h: Harness) -> bool:
    found = await h.get(ReplicaSet, "web")
    return found is not None and found.status is not None and not found.status.conditions


async def test_a_burst_is_limited_and_the_rest_follows(harness: MakeHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReplicaController, "burst", 4)
    async with harness("replicaset-controller") as h:
        await h.client.create(replicaset(h, 11))
        await h.until(lambda: has_status(h, replicas=11, ready_replicas=11))
        await scale(h, 0)
        await h.until(lambda: has_status(h, replicas=0))
        await h.until(lambda: not h.cached(Pod))


async def test_a_set_that_is_being_deleted_makes_no_pods(harness: MakeHarness) -> None:
    async with harness("replicaset-controller") as h:
        made = replicaset(h, 2)
        assert made.metadata is not None
        made.metadata.finalizers = ["example.com/hold"]
        await h.client.create(made)
        await h.until(lambda: has_status(h, ready_replicas=2))
        await h.client.delete(ReplicaSet, "web", h.namespace)
        await h.caught_up()
        name = (h.live(Pod)[0].metadata or ObjectMeta()).name or ""
        await h.client.delete(Pod, name, h.namespace)
        await h.until(lambda: has_status(h, replicas=1))
        await h.settled()
        assert len(h.live(Pod)) == 1


async def test_a_replication_controller_does_the_same(harness: MakeHarness) -> None:
    async with harness("replicationcontroller-controller") as h:
        await h.client.create(
            ReplicationController(
                metadata=ObjectMeta(name="web", namespace=h.namespace),
                spec=ReplicationControllerSpec(replicas=2, selector=dict(LABELS), template=template()),
            )
        )

        async def available(number: int) -> bool:
            found = await h.client.get(ReplicationController, "web", h.namespace)
            assert found.status is not None
            return (found.status.replicas, found.status.available_replicas or 0) == (number, number)

        await h.until(lambda: available(2))
        assert {(controller_of(pod) or Pod()).kind for pod in h.live(Pod)} == {"ReplicationController"}
        await h.client.patch(ReplicationController, "web", {"spec": {"replicas": 1}}, h.namespace)
        await h.until(lambda: available(1))
        sources = {event.source.component for event in await h.events("SuccessfulCreate") if event.source}
        assert sources == {"replication-controller"}


@pytest.mark.parametrize(
    ("count", "fail_at", "calls", "successes"),
    [(0, None, 0, 0), (1, None, 1, 1), (10, None, 10, 10), (10, 0, 1, 0), (10, 1, 3, 2), (10, 5, 7, 6), (10, 9, 10, 9)],
)
def test_slow_start_doubles_and_stops_after_the_first_failing_batch(
    count: int, fail_at: int | None, calls: int, successes: int
) -> None:
    seen: list[int] = []

    async def call(number: int) -> None:
        seen.append(number)
        if number == fail_at:
            raise errors.Forbidden("", "pods", "", "no")

    done, failure = asyncio.run(slow_start(count, call))
    assert (seen, done) == (list(range(calls)), successes)
    assert (failure is None) == (fail_at is None)


async def test_no_pod_is_made_twice_while_the_cache_lags(harness: MakeHarness) -> None:
    async with harness("replicaset-controller") as h:
        with h.behind(Pod):
            await h.client.create(replicaset(h, 3))
            await h.until(lambda: _number(h, 3))
            await h.client.patch(ReplicaSet, "web", {"metadata": {"annotations": {"woken": "yes"}}}, h.namespace)
            await h.until(lambda: "woken" in annotations_of(h.live(ReplicaSet)[0]))
            await h.settled()
            assert await _number(h, 3)
        await h.until(lambda: has_status(h, ready_replicas=3))
        assert await _number(h, 3)


async def _number(h: Harness, count: int) -> bool:
    return len(await h.list(Pod)) == count
