"""Statuses reach the API server, and a pod whose end is reported is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from kubelet.conftest import Connect

from pybernetes.api import errors
from pybernetes.api.core.v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock, FakeClock, JumpingClock, SystemClock
from pybernetes.client.keys import copy, uid_of
from pybernetes.kubelet.status.manager import MAKING, StatusManager


class Kubelet:
    """What a status manager asks its kubelet."""

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self.pods: dict[str, Pod] = {}
        self.running = True
        self.statuses = StatusManager(client, clock or SystemClock(), self.pods.get, lambda _: self.running)

    def see(self, pod: Pod) -> Pod:
        assert pod.metadata is not None
        self.pods[pod.metadata.uid or ""] = pod
        return pod


async def make(client: Client, namespace: str, name: str = "p") -> Pod:
    spec = PodSpec(node_name="n", containers=[Container(name="a", image="i")])
    return await client.create(Pod(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec))


def status(phase: str, ready: str = "True") -> PodStatus:
    running = ContainerState(running=ContainerStateRunning(started_at="2026-01-01T00:00:00Z"))
    return PodStatus(
        phase=phase,
        qos_class="BestEffort",  # as the server completes it: otherwise an answer seems to be what another has changed
        conditions=[PodCondition(type="Ready", status=ready)],
        container_statuses=[
            ContainerStatus(
                name="a",
                image="i",
                image_id="",
                ready=True,
                restart_count=0,
                state=running,
                last_state=ContainerState(),
            )
        ],
    )


def waiting(reason: str) -> PodStatus:
    found = status("Pending", ready="False")
    for each in found.container_statuses or ():
        each.ready, each.state = False, ContainerState(waiting=ContainerStateWaiting(reason=reason))
    return found


async def until(condition: Callable[[Pod], bool], client: Client, pod: Pod) -> Pod:
    assert pod.metadata is not None
    async with asyncio.timeout(30):
        while True:
            found = await client.get(Pod, pod.metadata.name or "", pod.metadata.namespace or "")
            if condition(found):
                return found
            await asyncio.sleep(0.01)


def phase(wanted: str) -> Callable[[Pod], bool]:
    return lambda pod: pod.status is not None and pod.status.phase == wanted


async def running(client: Client, namespace: str) -> tuple[Kubelet, Pod]:
    """A kubelet that has said that a pod runs, and the pod as it was before."""
    pod = await make(client, namespace)
    kubelet = Kubelet(client)
    kubelet.see(pod)
    kubelet.statuses.set(pod, status("Running"))
    await until(phase("Running"), client, pod)
    return kubelet, pod


async def test_a_status_is_sent_and_others_conditions_stay(connect: Connect) -> None:
    async with connect() as (client, namespace):
        pod = await make(client, namespace)
        others = {"conditions": [{"type": "x.io/mine", "status": "True"}]}
        pod = await client.patch(Pod, "p", {"status": others}, namespace, type="strategic", subresource="status")
        kubelet = Kubelet(client)
        kubelet.see(pod)
        kubelet.statuses.set(pod, status("Running"))
        found = await until(phase("Running"), client, pod)
        assert found.status is not None
        assert {each.type for each in found.status.conditions or ()} == {"x.io/mine", "Ready"}
        assert found.status.start_time
        version = found.metadata.resource_version  # type: ignore[union-attr]
        kubelet.statuses.set(pod, status("Running"))  # nothing new
        kubelet.see(found)
        kubelet.statuses.pod_changed(pod.metadata.uid or "")  # type: ignore[union-attr]
        await asyncio.sleep(0.1)
        again = await client.get(Pod, "p", namespace)
        assert again.metadata.resource_version == version  # type: ignore[union-attr]
        await kubelet.statuses.stop()


async def test_a_pending_status_is_sent_only_if_the_start_takes_a_while(connect: Connect) -> None:
    async with connect() as (client, namespace):
        clock = JumpingClock()
        kubelet = Kubelet(client, clock)
        quick, slow = await make(client, namespace, "quick"), await make(client, namespace, "slow")
        for each in (quick, slow):
            kubelet.statuses.set(kubelet.see(each), waiting("ContainerCreating"))
        kubelet.statuses.set(quick, status("Running"))
        version = quick.metadata.resource_version  # type: ignore[union-attr]
        async with client.watch(Pod, namespace, resource_version=version or "") as events:
            first = await anext(event.object async for event in events if event.type == "MODIFIED")
        assert phase("Running")(first)
        assert _reason(await client.get(Pod, "slow", namespace)) is None
        clock.advance(MAKING)
        await until(lambda pod: _reason(pod) == "ContainerCreating", client, slow)
        kubelet.statuses.set(slow, status("Running"))
        await until(phase("Running"), client, slow)
        await kubelet.statuses.stop()


async def test_a_failed_start_is_reported_at_once(connect: Connect) -> None:
    async with connect() as (client, namespace):
        kubelet = Kubelet(client, FakeClock())
        pod = kubelet.see(await make(client, namespace))
        kubelet.statuses.set(pod, waiting("ContainerCreating"))
        kubelet.statuses.set(pod, waiting("ErrImagePull"))
        await until(lambda pod: _reason(pod) == "ErrImagePull", client, pod)
        await kubelet.statuses.stop()


async def test_a_status_overwritten_by_another_client_is_restored(connect: Connect) -> None:
    async with connect() as (client, namespace):
        kubelet, pod = await running(client, namespace)
        changed = await client.patch(
            Pod, "p", {"status": {"phase": "Pending"}}, namespace, type="strategic", subresource="status"
        )
        kubelet.see(changed)
        kubelet.statuses.pod_changed(pod.metadata.uid or "")  # type: ignore[union-attr]
        await until(phase("Running"), client, pod)
        await kubelet.statuses.stop()


async def test_what_another_has_changed_that_was_not_heard_of_yet_is_written_over(connect: Connect) -> None:
    async with connect() as (client, namespace):
        kubelet, pod = await running(client, namespace)
        kubelet.see(await until(phase("Running"), client, pod))
        unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await client.patch(Pod, "p", unready, namespace, type="strategic", subresource="status")
        restarted = status("Running")
        restarted.container_statuses[0].restart_count = 1  # type: ignore[index]
        kubelet.statuses.set(pod, restarted)

        def ready_again(pod: Pod) -> bool:
            assert pod.status is not None
            (ready,) = pod.status.conditions or ()
            (container,) = pod.status.container_statuses or ()
            return ready.status == "True" and container.restart_count == 1

        await until(ready_again, client, pod)
        await kubelet.statuses.stop()


async def test_a_pod_is_called_ended_when_nothing_runs_and_deleted_after_that(connect: Connect) -> None:
    async with connect() as (client, namespace):
        kubelet, pod = await running(client, namespace)
        await client.delete(Pod, "p", namespace, grace_period_seconds=30)
        pod = kubelet.see(await client.get(Pod, "p", namespace))
        kubelet.statuses.set(pod, status("Failed", ready="False"))
        found = await until(lambda pod: _ready(pod) == "False", client, pod)
        assert found.status is not None
        assert found.status.phase == "Running"
        kubelet.running = False
        kubelet.statuses.terminate(pod)
        with pytest.raises(errors.NotFound):
            await until(lambda _: False, client, pod)
        last = kubelet.statuses.get(pod.metadata.uid or "")  # type: ignore[union-attr]
        assert last is not None
        (container,) = last.container_statuses or ()
        assert container.state is not None
        assert container.state.terminated is not None
        assert container.state.terminated.reason == "ContainerStatusUnknown"  # its end was not seen
        # Until its cache shows that the pod is gone, the kubelet has no more to ask for.
        asked: list[object] = []

        async def note(*words: object, **_: object) -> None:
            asked.append(words)

        client.patch = client.delete = note  # type: ignore[assignment,method-assign]
        kubelet.statuses.set(pod, status("Failed"))
        kubelet.statuses.pod_changed(pod.metadata.uid or "")  # type: ignore[union-attr]
        async with asyncio.timeout(30):
            while kubelet.statuses._tasks:
                await asyncio.gather(*kubelet.statuses._tasks.values())
        assert not asked
        await kubelet.statuses.stop()


async def test_a_deletion_that_is_shown_while_the_last_status_is_being_sent_is_completed(connect: Connect) -> None:
    async with connect() as (client, namespace):
        kubelet, pod = await running(client, namespace)
        kubelet.running = False
        patch, deleted = client.patch, asyncio.Event()

        async def patch_and_show(*args: Any, **more: Any) -> Any:
            """The deletion is written after the status, and shown before the answer is here."""
            answer = await patch(*args, **more)
            if answer.status.phase != "Failed":
                return answer
            shown = copy(answer)
            shown.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
            shown.metadata.resource_version = str(int(shown.metadata.resource_version) + 1)
            kubelet.see(shown)
            kubelet.statuses.pod_changed(uid_of(pod))
            client.patch = answer_as_shown  # type: ignore[method-assign]
            return answer

        async def answer_as_shown(*_: Any, **__: Any) -> Any:
            return kubelet.pods[uid_of(pod)]

        async def delete(*_: Any, **__: Any) -> None:
            deleted.set()

        client.patch, client.delete = patch_and_show, delete  # type: ignore[method-assign,assignment]
        kubelet.statuses.terminate(pod)
        await asyncio.wait_for(deleted.wait(), 10)
        await kubelet.statuses.stop()


async def test_a_pod_of_the_same_name_does_not_get_the_status_of_the_one_before_it(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect() as (client, namespace):
        old = await make(client, namespace)
        kubelet = Kubelet(client)
        kubelet.see(old)
        await client.delete(Pod, "p", namespace, grace_period_seconds=0)
        new = await make(client, namespace)
        kubelet.statuses.set(copy(old), status("Running"))
        async with asyncio.timeout(30):
            while "field is immutable" not in caplog.text:  # noqa: ASYNC110 - the server's answer to a status of another UID
                await asyncio.sleep(0.01)
        found = await client.get(Pod, "p", namespace)
        assert found.metadata.uid == new.metadata.uid  # type: ignore[union-attr]
        assert found.status is not None
        assert found.status.phase == "Pending"
        await kubelet.statuses.stop()


def _reason(pod: Pod) -> str | None:
    for each in (pod.status.container_statuses if pod.status else None) or ():
        if each.state and each.state.waiting:
            return each.state.waiting.reason
    return None


def _ready(pod: Pod) -> str | None:
    conditions = (pod.status.conditions if pod.status else None) or ()
    return next((each.status for each in conditions if each.type == "Ready"), None)
