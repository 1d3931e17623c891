"""Pods that the node ends for its own needs, and what happens when their processes do not end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from kubelet.observed import pod

from pybernetes.api.core.v1 import Pod, PodStatus
from pybernetes.client.clock import JumpingClock
from pybernetes.client.events import EventRecorder
from pybernetes.kubelet.pod.evictor import Evicting, KillTimedOut
from pybernetes.kubelet.pod.workers import PodWorkers

ONE = "{containers: [{name: a, image: i}], terminationGracePeriodSeconds: 30}"


class Workers:
    """Ends pods when the test says so."""

    def __init__(self) -> None:
        self.killed: list[tuple[str, int | None]] = []
        self.ends: list[asyncio.Future[None]] = []

    def kill(
        self, uid: str, *, grace: int | None = None, status_change: Callable[[PodStatus], None] | None = None
    ) -> asyncio.Future[None]:
        self.killed.append((uid, grace))
        self.ends.append(asyncio.get_running_loop().create_future())
        return self.ends[-1]


class Recorder:
    """Keeps events."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def event(self, about: Pod, type: str, reason: str, message: str, *_: Any) -> None:
        self.reasons.append(reason)


def parts() -> tuple[Evicting, Workers, Recorder, JumpingClock]:
    workers, recorder, clock = Workers(), Recorder(), JumpingClock()
    return (
        Evicting(lambda: cast(PodWorkers, workers), cast(EventRecorder, recorder), clock),
        workers,
        recorder,
        clock,
    )


async def test_a_pod_that_ends_in_time_is_no_error() -> None:
    evicting, workers, recorder, clock = parts()
    task = asyncio.create_task(evicting.preempt(pod(ONE)))
    await asyncio.sleep(0)
    workers.ends[0].set_result(None)
    await task
    clock.advance(1000.0)
    assert recorder.reasons == ["Preempting"]


@pytest.mark.parametrize(("grace", "limit"), [(0.0, 10.0), (4.0, 10.0), (20.0, 30.0)])
async def test_the_end_of_a_pod_is_waited_for_half_as_long_again_as_its_grace_period(
    grace: float, limit: float
) -> None:
    evicting, workers, recorder, clock = parts()
    task = asyncio.create_task(evicting.end(pod(ONE), grace, "Evicted", "for a test", None))
    await asyncio.sleep(0)
    clock.advance(limit - 1.0)
    await asyncio.sleep(0)
    assert not task.done()
    clock.advance(1.0)
    with pytest.raises(KillTimedOut, match="timeout waiting to kill pod"):
        await task
    assert workers.killed == [("u", int(grace))]
    assert recorder.reasons == ["ExceededGracePeriod"]


async def test_a_cancelled_caller_gets_no_timeout() -> None:
    evicting, _, recorder, _ = parts()
    task = asyncio.create_task(evicting.end(pod(ONE), 0.0, "Evicted", "for a test", None))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorder.reasons == []
