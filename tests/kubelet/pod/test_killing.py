"""How containers end: hooks, grace periods, order."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from kubelet.observed import observed, pod

from pybernetes.api.core.v1 import LifecycleHandler, Pod
from pybernetes.client.clock import JumpingClock
from pybernetes.client.events import EventRecorder
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime
from pybernetes.kubelet.container.hooks import HookFailed, Hooks
from pybernetes.kubelet.pod.actions import LIVENESS_PROBE, STARTUP_PROBE, UNKNOWN
from pybernetes.kubelet.pod.killing import Killer, KillFailed, grace_period
from pybernetes.kubelet.runtime.types import find_container


class World:
    """A runtime, hooks and a recorder that note what is asked of them."""

    def __init__(self) -> None:
        self.clock = JumpingClock()
        self.calls: list[str] = []
        self.events: list[str] = []
        self.failures: dict[str, CRIError] = {}
        self.hook_takes = 0.0
        self.hook_fails = False
        self.hooked = asyncio.Event()
        self.killer = Killer(cast(Runtime, self), cast(Hooks, self), cast(EventRecorder, self), self.clock)

    async def stop_container(self, request: Any) -> None:
        self.calls.append(f"stop {request.container_id} {request.timeout}")
        await asyncio.sleep(0)
        if request.container_id in self.failures:
            raise self.failures[request.container_id]

    async def stop_pod_sandbox(self, request: Any) -> None:
        self.calls.append(f"sandbox {request.pod_sandbox_id}")

    async def run(self, pod: Pod, container: Any, id: str, handler: LifecycleHandler, ip: str) -> None:
        self.calls.append(f"hook {id} {ip}")
        self.hooked.set()
        if self.hook_takes:
            await self.clock.sleep(self.hook_takes)
        if self.hook_fails:
            raise HookFailed("no")

    def event(self, obj: Any, type: str, reason: str, message: str, annotations: object = None) -> None:
        self.events.append(f"{reason} {message}")


ONE = "{terminationGracePeriodSeconds: 20, containers: [{name: a, image: i}]}"
HOOKED = ONE.replace("image: i", "image: i, lifecycle: {preStop: {exec: {command: [x]}}}")


async def test_containers_end_first_and_the_sandbox_after_them() -> None:
    world, subject = World(), pod(ONE)
    await world.killer.kill_pod(subject, observed(subject, "a running"))
    assert world.calls == ["stop a-0 20", "sandbox s0"]
    assert world.events == ["Killing Stopping container a"]


async def test_what_has_ended_is_left_alone() -> None:
    world, subject = World(), pod(ONE)
    await world.killer.kill_pod(subject, observed(subject, "a exited 1"))
    assert world.calls == ["sandbox s0"]


async def test_every_container_gets_two_seconds() -> None:
    world, subject = World(), pod(ONE)
    await world.killer.kill_pod(subject, observed(subject, "a running"), 0)
    assert world.calls[0] == "stop a-0 2"


async def test_a_hook_is_part_of_the_grace_period() -> None:
    world, subject = World(), pod(HOOKED)
    world.hook_takes = 15.0
    task = asyncio.create_task(world.killer.kill_pod(subject, observed(subject, "a running")))
    await world.hooked.wait()
    world.clock.advance(15.0)
    await task
    assert world.calls[:2] == ["hook a-0 10.0.0.5", "stop a-0 5"]


async def test_a_hook_that_takes_too_long_is_broken_off() -> None:
    world, subject = World(), pod(HOOKED)
    world.hook_takes = 1000.0
    task = asyncio.create_task(world.killer.kill_pod(subject, observed(subject, "a running")))
    await world.hooked.wait()
    world.clock.advance(20.0)
    await task
    assert world.calls[1] == "stop a-0 2"


async def test_a_failed_hook_is_reported_without_its_output() -> None:
    world, subject = World(), pod(HOOKED)
    world.hook_fails = True
    await world.killer.kill_pod(subject, observed(subject, "a running"))
    assert "FailedPreStopHook PreStopHook failed" in world.events
    assert world.calls[1] == "stop a-0 20"


async def test_without_a_grace_period_there_is_no_time_for_a_hook() -> None:
    world, subject = World(), pod(HOOKED)
    await world.killer.kill_pod(subject, observed(subject, "a running"), 0)
    assert world.calls[0] == "stop a-0 2"


async def test_sidecars_end_last_and_in_the_other_order() -> None:
    side = "{name: %s, image: i, restartPolicy: Always}"
    world = World()
    subject = pod(f"{{initContainers: [{side % 's1'}, {side % 's2'}], containers: [{{name: a, image: i}}]}}")
    await world.killer.kill_pod(subject, observed(subject, "a running", "s2 running", "s1 running"))
    assert [each.split()[1] for each in world.calls] == ["a-0", "s2-0", "s1-0", "s0"]


async def test_what_is_gone_already_is_no_failure_and_what_is_stuck_is_one() -> None:
    world, subject = World(), pod(ONE)
    world.failures["a-0"] = CRIError("NotFound", "gone")
    await world.killer.kill_pod(subject, observed(subject, "a running"))
    world.failures["a-0"] = CRIError("Unknown", "stuck")
    with pytest.raises(KillFailed, match="stuck"):
        await world.killer.kill_pod(subject, observed(subject, "a running"))
    assert world.calls[-1] == "sandbox s0"


async def test_containers_that_the_pod_does_not_know_end_too() -> None:
    world, subject = World(), pod(ONE)
    other = pod("{containers: [{name: b, image: i}]}")
    await world.killer.kill_pod(subject, observed(other, "b running"))
    assert world.calls == ["stop b-0 2", "sandbox s0"]


@pytest.mark.parametrize(
    ("reason", "deletion", "expected"),
    [(UNKNOWN, None, 20), (LIVENESS_PROBE, None, 3), (STARTUP_PROBE, None, 4), (LIVENESS_PROBE, 9, 9)],
)
def test_a_probe_may_have_its_own_grace_period(reason: str, deletion: int | None, expected: int) -> None:
    probes = (
        "image: i, livenessProbe: {exec: {command: [x]}, terminationGracePeriodSeconds: 3}, "
        "startupProbe: {exec: {command: [x]}, terminationGracePeriodSeconds: 4}"
    )
    subject = pod(ONE.replace("image: i", probes))
    assert subject.metadata is not None
    subject.metadata.deletion_grace_period_seconds = deletion
    container = find_container(subject, "a")
    assert container is not None
    assert grace_period(subject, container, reason) == expected
