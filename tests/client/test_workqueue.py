"""The promises of the work queue, by example and by random histories."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pybernetes.client.backoff import ItemBackoff
from pybernetes.client.clock import FakeClock
from pybernetes.client.metrics import Registry
from pybernetes.client.workqueue import Dirty, ShutDown, WorkQueue


def make(clock: FakeClock | None = None, metrics: Registry | None = None) -> WorkQueue[str]:
    return WorkQueue("test", clock or FakeClock(), metrics=metrics)


async def test_items_come_in_the_order_in_which_they_were_added_and_once() -> None:
    queue = make()
    for item in "abcab":
        queue.add(item)
    assert [await queue.get() for _ in range(3)] == ["a", "b", "c"]
    assert len(queue) == 0


async def test_an_item_added_while_it_is_worked_on_comes_once_more_and_not_before_that_is_done() -> None:
    queue = make()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not second.done()
    queue.done("a")
    assert await second == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_a_delayed_item_comes_at_the_earliest_of_its_times() -> None:
    clock = FakeClock()
    queue = make(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 30)
    queue.add_after("b", 10)
    queue.add_after("b", 5)
    assert queue.delayed == 2
    clock.advance(5)
    assert [await queue.get(), len(queue)] == ["b", 0]
    clock.advance(4.99)
    assert len(queue) == 0
    clock.advance(0.01)
    assert await queue.get() == "a"
    clock.advance(100)
    assert len(queue) == 0


@pytest.mark.parametrize("seconds", [0, -1])
async def test_no_delay_is_now(seconds: float) -> None:
    queue = make()
    queue.add_after("a", seconds)
    assert len(queue) == 1


async def test_failures_double_the_delay_up_to_a_limit_and_success_forgets_them() -> None:
    backoff: ItemBackoff[str] = ItemBackoff()
    delays = [backoff.when("a") for _ in range(20)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[-1] == 1000
    assert backoff.when("b") == 0.005
    backoff.forget("a")
    assert backoff.when("a") == 0.005
    for _ in range(5000):  # no overflow
        backoff.when("c")


async def test_rate_limited_items_come_later_and_later() -> None:
    clock = FakeClock()
    queue = make(clock)
    for milliseconds in (5, 10, 20):
        queue.add_rate_limited("a")
        clock.advance(milliseconds / 1000 - 0.001)
        assert len(queue) == 0
        clock.advance(0.001)
        queue.done(await queue.get())
    assert queue.failures("a") == 3
    queue.forget("a")
    assert queue.failures("a") == 0


async def test_after_shut_down_what_is_queued_is_handed_out_and_nothing_is_accepted() -> None:
    queue = make()
    queue.add("a")
    queue.add_after("late", 10)
    queue.shut_down()
    queue.add("b")
    queue.add_after("c", 1)
    assert queue.delayed == 0
    assert await queue.get() == "a"
    with pytest.raises(ShutDown):
        await queue.get()


async def test_shut_down_wakes_all_who_wait() -> None:
    queue = make()
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.shut_down()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(result, ShutDown) for result in results)


async def test_drain_waits_for_the_work_in_progress_also_for_what_was_added_meanwhile() -> None:
    queue = make()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    drained = asyncio.create_task(queue.drain())
    await asyncio.sleep(0)
    queue.done("a")
    assert await queue.get() == "a"
    await asyncio.sleep(0)
    assert not drained.done()
    queue.done("a")
    await drained


async def test_a_worker_that_is_cancelled_in_the_moment_it_is_woken_does_not_lose_the_item() -> None:
    queue = make()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 30) == "a"


async def test_many_workers_never_share_an_item_and_all_items_are_worked_on() -> None:
    queue: WorkQueue[int] = WorkQueue("test", FakeClock())
    busy: set[int] = set()
    counts = dict.fromkeys(range(20), 0)
    all_done = asyncio.Event()

    async def worker() -> None:
        while True:
            try:
                item = await queue.get()
            except ShutDown:
                return
            assert item not in busy
            busy.add(item)
            await asyncio.sleep(0)
            counts[item] += 1
            if counts[item] < 5:
                queue.add(item)
            busy.remove(item)
            queue.done(item)
            if min(counts.values()) == 5:
                all_done.set()

    workers = [asyncio.create_task(worker()) for _ in range(7)]
    for item in counts:
        queue.add(item)
    await asyncio.wait_for(all_done.wait(), 30)
    await queue.drain()
    await asyncio.gather(*workers)
    assert set(counts.values()) == {5}


async def test_the_numbers_tell_what_happened() -> None:
    clock, metrics = FakeClock(), Registry()
    queue = make(clock, metrics)
    queue.add("a")
    queue.add("b")
    clock.advance(0.5)
    item = await queue.get()
    clock.advance(2)
    assert queue.longest_running() == queue.unfinished_work() == 2
    text = metrics.render().decode()
    assert 'workqueue_depth{name="test"} 1' in text
    assert 'workqueue_adds_total{name="test"} 2' in text
    assert 'workqueue_unfinished_work_seconds{name="test"} 2' in text
    queue.add_rate_limited(item)
    queue.done(item)
    text = metrics.render().decode()
    assert 'workqueue_queue_duration_seconds_sum{name="test"} 0.5' in text
    assert 'workqueue_work_duration_seconds_sum{name="test"} 2' in text
    assert 'workqueue_retries_total{name="test"} 1' in text


class Histories(RuleBasedStateMachine):
    """Random adds, takes and dones against a model: per item, how much is owed."""

    def __init__(self) -> None:
        super().__init__()
        self.core: Dirty[int] = Dirty()
        self.owed: set[int] = set()  # added since last handed out
        self.busy: set[int] = set()

    @rule(item=st.integers(0, 5))
    def add(self, item: int) -> None:
        assert self.core.add(item) == (item not in self.owed)
        self.owed.add(item)

    @rule()
    def take(self) -> None:
        if self.core.queue:
            item = self.core.pop()
            assert item in self.owed
            assert item not in self.busy
            self.owed.remove(item)
            self.busy.add(item)

    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        if self.busy:
            item = data.draw(st.sampled_from(sorted(self.busy)))
            self.core.done(item)
            self.busy.remove(item)

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        assert sorted(self.core.queue) == sorted(self.owed - self.busy)
        assert self.core.dirty == self.owed
        assert self.core.processing == self.busy


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
