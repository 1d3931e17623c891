"""One worker for each pod: states only go forward, the newest news wins, failures are repeated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from kubelet.observed import pod

from pybernetes.api.core.v1 import PodStatus
from pybernetes.client.clock import JumpingClock
from pybernetes.kubelet.pod.workers import PodState, PodWork, PodWorkers, RetryLater, effective_grace
from pybernetes.kubelet.runtime.types import PodRef

ONE = "{containers: [{name: a, image: i}], terminationGracePeriodSeconds: 30}"
DELETED = "2026-01-01T00:00:00Z"


class Syncer:
    """Notes what is asked of it; answers as told."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.ended = False
        self.delay: float | None = None
        self.failures: list[Exception] = []
        self.late_failures: list[Exception] = []
        self.gate: asyncio.Event | None = None
        """While it is there, `terminating` waits for it."""
        self.hook: asyncio.Event | None = None
        """While it is there, `sync` waits for it."""

    async def sync(self, work: PodWork) -> tuple[bool, float | None]:
        self.calls.append("sync")
        if self.failures:
            raise self.failures.pop(0)
        if self.hook is not None:
            try:
                await self.hook.wait()
            except asyncio.CancelledError:
                self.calls.append("sync cancelled")
                raise
        return self.ended, self.delay

    async def terminating(self, work: PodWork) -> None:
        self.calls.append(f"terminating {work.grace}")
        if self.gate is not None:
            await self.gate.wait()

    async def terminated(self, work: PodWork) -> None:
        self.calls.append("terminated")
        if self.late_failures:
            raise self.late_failures.pop(0)

    async def cleanup(self, ref: PodRef) -> None:
        self.calls.append("cleanup")


@asynccontextmanager
async def workers() -> AsyncIterator[tuple[PodWorkers, Syncer, JumpingClock]]:
    syncer, clock = Syncer(), JumpingClock()
    subject = PodWorkers(syncer, clock)
    try:
        yield subject, syncer, clock
    finally:
        await subject.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)


async def test_a_new_pod_is_synced_and_again_when_woken() -> None:
    async with workers() as (subject, syncer, _):
        subject.update(pod(ONE))
        await until(lambda: syncer.calls == ["sync"])
        subject.wake("u")
        await until(lambda: syncer.calls == ["sync", "sync"])
        subject.wake("nobody")


async def test_a_pod_is_looked_at_now_and_then_although_nothing_was_heard() -> None:
    async with workers() as (subject, syncer, clock):
        subject.update(pod(ONE))
        await until(lambda: syncer.calls == ["sync"])
        clock.advance(100.0)
        await until(lambda: len(syncer.calls) == 2)


async def test_a_deletion_ends_the_pod_and_its_removal_the_worker() -> None:
    async with workers() as (subject, syncer, _):
        subject.update(pod(ONE))
        await until(lambda: syncer.calls == ["sync"])
        assert subject.may_be_running("u")
        subject.update(pod(ONE, deletionTimestamp=DELETED, deletionGracePeriodSeconds=7))
        await until(lambda: syncer.calls[-1] == "terminated")
        assert syncer.calls == ["sync", "terminating 7", "terminated"]
        await until(lambda: subject.get("u").state is PodState.FINISHED)  # type: ignore[union-attr]
        assert not subject.may_be_running("u")
        subject.removed("u")
        await until(lambda: subject.get("u") is None)
        assert syncer.calls[-1] == "cleanup"


async def test_a_pod_that_ended_by_itself_is_torn_down() -> None:
    async with workers() as (subject, syncer, _):
        syncer.ended = True
        subject.update(pod(ONE))
        await until(lambda: syncer.calls == ["sync", "terminating 30", "terminated"])
        subject.wake("u")
        await asyncio.sleep(0.01)
        assert syncer.calls[-1] == "terminated"  # once is enough


async def test_a_pod_that_had_ended_before_the_kubelet_came_is_not_started() -> None:
    async with workers() as (subject, syncer, _):
        ended = pod(ONE)
        ended.status = PodStatus(phase="Succeeded")
        subject.update(ended)
        await until(lambda: syncer.calls == ["terminating None", "terminated"])


async def test_a_shorter_grace_period_breaks_off_the_longer_one() -> None:
    async with workers() as (subject, syncer, _):
        syncer.gate = asyncio.Event()
        subject.update(pod(ONE, deletionTimestamp=DELETED, deletionGracePeriodSeconds=30))
        await until(lambda: syncer.calls == ["terminating 30"])
        subject.update(pod(ONE, deletionTimestamp=DELETED, deletionGracePeriodSeconds=1))
        await until(lambda: syncer.calls == ["terminating 30", "terminating 1"])
        syncer.gate.set()
        await until(lambda: syncer.calls[-1] == "terminated")


@pytest.mark.parametrize("how", ["deleted", "removed", "killed"])
async def test_an_order_to_end_cancels_the_sync_that_is_under_way(how: str) -> None:
    async with workers() as (subject, syncer, _):
        syncer.hook = asyncio.Event()
        subject.update(pod(ONE))
        await until(lambda: syncer.calls == ["sync"])
        if how == "deleted":
            subject.update(pod(ONE, deletionTimestamp=DELETED, deletionGracePeriodSeconds=1))
        elif how == "removed":
            subject.removed("u")
        else:
            await subject.kill("u", grace=1)
        await until(lambda: "terminated" in syncer.calls)
        assert syncer.calls[:2] == ["sync", "sync cancelled"]


async def test_a_change_of_the_pod_does_not_cancel_the_sync_that_is_under_way() -> None:
    async with workers() as (subject, syncer, _):
        syncer.hook = asyncio.Event()
        subject.update(pod(ONE))
        await until(lambda: syncer.calls == ["sync"])
        subject.update(pod(ONE))
        subject.wake("u")
        syncer.hook.set()
        await until(lambda: syncer.calls == ["sync", "sync"])


async def test_workers_that_are_closed_cancel_what_is_under_way_and_end_no_pod() -> None:
    async with workers() as (subject, syncer, _):
        syncer.hook = asyncio.Event()
        subject.update(pod(ONE))
        await until(lambda: syncer.calls == ["sync"])
        await subject.close()
        assert syncer.calls == ["sync", "sync cancelled"]


async def test_failures_are_repeated_later_and_later() -> None:
    async with workers() as (subject, syncer, clock):
        syncer.failures = [RuntimeError("one"), RuntimeError("two"), RetryLater(0.0)]
        subject.update(pod(ONE))
        await until(lambda: len(syncer.calls) == 1)
        clock.advance(0.8)
        await until(lambda: len(syncer.calls) == 2)
        clock.advance(1.6)
        await until(lambda: len(syncer.calls) == 4)


async def test_the_end_is_repeated_until_it_is_complete() -> None:
    async with workers() as (subject, syncer, clock):
        syncer.ended = True
        syncer.late_failures = [RuntimeError("volume busy")]
        subject.update(pod(ONE))
        await until(lambda: syncer.calls.count("terminated") == 1)
        clock.advance(1.0)
        await until(lambda: syncer.calls.count("terminated") == 2)
        assert syncer.calls.count("terminating 30") == 1


async def test_kill_returns_when_the_containers_have_ended() -> None:
    async with workers() as (subject, syncer, _):
        syncer.gate = asyncio.Event()
        subject.update(pod(ONE))
        await until(lambda: syncer.calls == ["sync"])
        done = subject.kill("u", grace=3)
        await until(lambda: syncer.calls[-1] == "terminating 3")
        assert not done.done()
        syncer.gate.set()
        await _within(done)
        await _within(subject.kill("nobody"))


async def test_unwanted_containers_of_the_runtime_are_ended() -> None:
    async with workers() as (subject, syncer, _):
        subject.orphan(PodRef("x", "ns", "p"))
        await until(lambda: subject.get("x") is None)
        assert syncer.calls == ["terminating 1", "terminated", "cleanup"]


@pytest.mark.parametrize(
    ("deletion", "own", "before", "override", "expected"),
    [
        (None, 30, None, None, 30),
        (7, 30, None, None, 7),
        (7, 30, None, 3, 3),
        (7, 30, 2, 3, 2),
        (0, 30, None, None, 1),  # deleted by force
        (0, 0, None, None, 1),
        (None, None, None, None, 1),
        (None, 30, None, 0, 1),
        (0, 30, 30, None, 1),
    ],
)
async def test_the_least_grace_period_counts(
    deletion: int | None, own: int | None, before: int | None, override: int | None, expected: int
) -> None:
    subject = pod(ONE)
    assert subject.metadata is not None
    assert subject.spec is not None
    subject.metadata.deletion_grace_period_seconds = deletion
    subject.spec.termination_grace_period_seconds = own
    assert effective_grace(PodWork(PodRef("u", "ns", "p"), subject, grace=before), override) == expected


async def _within(future: Awaitable[None]) -> None:
    async with asyncio.timeout(30):
        await future


async def test_a_pod_that_comes_back_while_it_is_being_ended_begins_anew_after_that() -> None:
    async with workers() as (subject, syncer, _):
        syncer.gate = asyncio.Event()
        subject.update(pod(ONE))
        await until(lambda: syncer.calls == ["sync"])
        subject.removed("u")
        await until(lambda: syncer.calls[-1] == "terminating 30")
        subject.update(pod(ONE))
        syncer.gate.set()
        await until(lambda: syncer.calls[-1] == "sync")
        assert syncer.calls == ["sync", "terminating 30", "terminated", "cleanup", "sync"]


async def test_a_pod_knows_who_has_its_name_before_it() -> None:
    async with workers() as (subject, syncer, _):
        syncer.gate = asyncio.Event()
        subject.update(pod(ONE, uid="old"))
        subject.update(pod(ONE, uid="new"))
        await until(lambda: len(syncer.calls) == 2)
        old, new = subject.get("old"), subject.get("new")
        assert old is not None
        assert new is not None
        assert subject.predecessor(new) is old
        subject.removed("old")
        syncer.gate.set()
        await until(lambda: subject.get("old") is None)
        assert subject.predecessor(new) is None
