"""One pod, node or claim that the scheduler cannot deal with does not keep others from being placed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from scheduler.live.test_volumes_and_devices import claim, device_class, storage_class, using

from pybernetes.api.core.v1 import Node, Pod, PodResourceClaim
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.resource.v1 import (
    Device,
    DeviceAttribute,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from pybernetes.component import tasks
from pybernetes.scheduler import scheduler as scheduler_module
from pybernetes.scheduler.framework.queued import QueuedPodInfo

if TYPE_CHECKING:
    from conftest import MakeLive


async def test_pods_that_wait_for_their_volumes_do_not_stop_the_others(
    live: MakeLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_module, "MAX_BINDINGS", 2)
    async with live() as running:
        await running.node("a")
        disks = await storage_class(running, "disks.example.com")
        for number in range(3):
            await claim(running, f"data-{number}", disks)
            await running.pod(f"waits-{number}", volumes=using(f"data-{number}"))

        def all_wait() -> bool:
            return running.scheduler.cache.sizes()["assumed_pods"] == 3

        await running.until(all_wait, "three pods wait for volumes without a provisioner")
        await running.pod("plain")
        assert await running.bound("plain") == "a"
        assert all_wait()


async def test_a_pod_whose_attempt_ends_with_an_internal_error_is_tried_again_after_its_backoff(
    live: MakeLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live() as running:
        await running.node("a")
        schedule, attempts = running.scheduler.schedule_one, list[float]()

        async def broken(queued: QueuedPodInfo) -> None:
            if queued.info.name == "unlucky":
                attempts.append(running.clock.monotonic())
                if len(attempts) < 3:
                    raise RuntimeError("a mistake in the scheduler")
            await schedule(queued)

        monkeypatch.setattr(running.scheduler, "schedule_one", broken)
        before = tasks.failures["scheduling cycle"]
        await running.pod("unlucky")
        await running.until(lambda: len(attempts) == 1, "it was tried")
        await running.pod("other")
        assert await running.bound("other") == "a"
        assert len(attempts) == 1, "it waits for its back-off"

        async def placed() -> bool:
            running.clock.advance(1)
            pod = await running.get("unlucky")
            return bool(pod and pod.spec and pod.spec.node_name)

        await running.until(placed, "the pod is placed in the end")
        assert len(attempts) == 3
        assert attempts[1] - attempts[0] >= 1
        assert attempts[2] - attempts[1] >= 2
        assert tasks.failures["scheduling cycle"] == before + 2


async def test_a_pod_that_is_deleted_after_an_internal_error_is_forgotten(
    live: MakeLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live() as running:
        await running.node("a")
        gone, tried = asyncio.Event(), asyncio.Event()

        async def broken(queued: QueuedPodInfo) -> None:
            tried.set()
            await gone.wait()
            raise RuntimeError("a mistake in the scheduler")

        monkeypatch.setattr(running.scheduler, "schedule_one", broken)
        pod = await running.pod("unlucky")
        await tried.wait()
        await running.client.delete(Pod, "unlucky", running.namespace, grace_period_seconds=0)
        queue = running.scheduler.queue
        await running.until(lambda: not running.scheduler.handlers.pod(_key(pod)), "the deletion is seen")
        gone.set()
        await running.until(lambda: pod.metadata and pod.metadata.uid not in queue.in_flight, "the attempt is over")
        assert not list(queue.pending())


def _key(pod: Pod) -> Any:
    from pybernetes.client.keys import key_of

    return key_of(pod)


async def test_a_node_with_more_of_everything_than_can_be_counted_does_not_stop_placing(live: MakeLive) -> None:
    huge = str(2**63 - 1)
    async with live() as running:
        await running.node("plain")
        await running.node("huge", cpu=huge, memory=huge, pods=huge, **{"ephemeral-storage": huge})
        await running.pod("one", cpu="1", memory="1Gi")
        assert await running.bound("one") in ("plain", "huge")
        await running.pod("greedy", cpu=huge, memory=huge)
        await running.pod("two", cpu="1")
        assert await running.bound("two") in ("plain", "huge")


async def test_an_event_that_could_not_be_taken_is_taken_later_and_the_state_is_right(
    live: MakeLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live() as running:
        cache = running.scheduler.cache
        set_node, add_pod, failures = cache.set_node, cache.add_pod, {"node": 2, "pod": 2}

        def broken_set_node(node: Node) -> None:
            set_node(node)
            if node.metadata and node.metadata.name == "a" and failures["node"]:
                failures["node"] -= 1
                raise RuntimeError("a mistake in the snapshot")

        def broken_add_pod(pod: Pod) -> None:
            if failures["pod"]:
                failures["pod"] -= 1
                raise RuntimeError("a mistake in the cache")
            add_pod(pod)

        monkeypatch.setattr(cache, "set_node", broken_set_node)
        monkeypatch.setattr(cache, "add_pod", broken_add_pod)
        await running.client.create(Node(metadata=_meta("a")))
        await running.until(lambda: failures["node"] < 2, "the scheduler could not take the node")
        assert "a" not in running.scheduler.snapshot.row_of, "half of a node is not used"

        def known() -> bool:
            running.clock.advance(1)
            return "a" in running.scheduler.snapshot.row_of

        await running.until(known, "the node is delivered again")
        pod = await running.pod("there", cpu="1", node_name="a")
        uid = (pod.metadata and pod.metadata.uid) or ""
        await running.until(lambda: failures["pod"] < 2, "the scheduler could not take the pod")

        def counted() -> bool:
            running.clock.advance(1)
            return cache.get(uid) is not None

        await running.until(counted, "the pod is delivered again")
        row = running.scheduler.snapshot.row_of["a"]
        assert running.scheduler.snapshot.requested("cpu")[row] == 1000


def _meta(name: str) -> ObjectMeta:
    return ObjectMeta(name=name)


async def test_a_claim_that_takes_long_to_search_for_keeps_no_other_pod_waiting(live: MakeLive) -> None:
    async with live() as running:
        await running.node("a")
        kind = await device_class(running)
        found = [Device(name=f"d{index}", attributes={"n": DeviceAttribute(int_=index % 6)}) for index in range(40)]
        pool = ResourcePool(name=running.namespace, generation=1, resource_slice_count=1)
        spec = ResourceSliceSpec(driver="gpu.example.com", pool=pool, node_name="a", devices=found)
        await running.client.create(ResourceSlice(metadata=_meta(running.namespace), spec=spec))
        exactly = ExactDeviceRequest(device_class_name=kind, count=7)
        different = DeviceConstraint(distinct_attribute="gpu.example.com/n")
        devices = DeviceClaim(requests=[DeviceRequest(name="r", exactly=exactly)], constraints=[different])
        metadata = ObjectMeta(name="hopeless", namespace=running.namespace)
        await running.client.create(ResourceClaim(metadata=metadata, spec=ResourceClaimSpec(devices=devices)))
        pod = await running.pod("waits", resource_claims=[PodResourceClaim(name="r", resource_claim_name="hopeless")])
        plugin: Any = next(
            each
            for each in running.scheduler.frameworks["default-scheduler"].pre_binds
            if each.name == "DynamicResources"
        )
        uid = (pod.metadata and pod.metadata.uid) or ""
        await running.until(lambda: plugin._background.get(uid), "the search goes on in the background")
        for number in range(5):
            await running.pod(f"other-{number}")
        for number in range(5):
            assert await running.bound(f"other-{number}") == "a"
        assert plugin._background.get(uid).running, "all others were placed before it ended"
        assert "devices are being searched for" in await running.refused("waits")
