"""Clocks that tests can move."""

from __future__ import annotations

import asyncio

from pybernetes.client.clock import FakeClock, JumpingClock, SystemClock


def test_a_fake_clock_calls_what_becomes_due_in_the_order_of_time_and_at_its_time() -> None:
    clock = FakeClock()
    seen: list[tuple[str, float]] = []

    def note(name: str) -> None:
        seen.append((name, clock.monotonic()))

    clock.call_later(3, note, "c")
    clock.call_later(1, note, "a")
    clock.call_later(1, note, "b")
    clock.call_later(2, note, "never").cancel()
    clock.call_later(1, lambda: clock.call_later(1, note, "chained"))
    assert clock.timers == 4
    clock.advance(2)
    assert seen == [("a", 1), ("b", 1), ("chained", 2)]
    clock.advance(5)
    assert seen[-1] == ("c", 3)
    assert clock.monotonic() == 7


async def test_sleeping_by_a_fake_clock_ends_when_it_is_moved() -> None:
    clock = FakeClock()
    sleeping = asyncio.create_task(clock.sleep(60))
    await asyncio.sleep(0)
    clock.advance(59)
    await asyncio.sleep(0)
    assert not sleeping.done()
    clock.advance(1)
    await sleeping


async def test_a_cancelled_sleep_leaves_no_timer() -> None:
    clock = FakeClock()
    sleeping = asyncio.create_task(clock.sleep(60))
    await asyncio.sleep(0)
    sleeping.cancel()
    await asyncio.gather(sleeping, return_exceptions=True)
    assert clock.timers == 0


async def test_a_jumping_clock_flows_and_jumps() -> None:
    clock = JumpingClock()
    seen: list[str] = []
    clock.call_later(3600, seen.append, "late")
    clock.call_later(60, seen.append, "early")
    await clock.sleep(0.01)
    before = clock.now()
    clock.advance(7200)
    assert seen == ["early", "late"]
    assert 7200 <= clock.now() - before < 7260
    await clock.sleep(0.001)
    assert seen == ["early", "late"]


async def test_the_system_clock_calls_later_too() -> None:
    done = asyncio.Event()
    SystemClock().call_later(-1, done.set)
    await asyncio.wait_for(done.wait(), 30)
    await SystemClock().sleep(0)
