"""The event loop's watchdog names what held the loop."""

import asyncio
import logging
import time

import pytest

from pybernetes.component.watchdog import LoopWatchdog


def holds_the_loop(until: float) -> None:
    while time.monotonic() < until:
        time.sleep(0.01)


def test_a_blocked_loop_is_counted_and_what_ran_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> LoopWatchdog:
        watchdog = LoopWatchdog(limit=0.05, period=0.01)
        watchdog.start()
        await asyncio.sleep(0.02)
        deadline = time.monotonic() + 10
        while "holds_the_loop" not in caplog.text and time.monotonic() < deadline:
            holds_the_loop(time.monotonic() + 0.15)
            await asyncio.sleep(0.03)
        watchdog.stop()
        return watchdog

    with caplog.at_level(logging.WARNING):
        watchdog = asyncio.run(main())
    assert watchdog.stalls >= 1
    assert watchdog.take_max_lag() > 0.05
    assert watchdog.max_lag == 0.0
    assert "the event loop was blocked for" in caplog.text
    assert "holds_the_loop" in caplog.text


def test_a_loop_that_runs_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> int:
        watchdog = LoopWatchdog(limit=5.0, period=0.005)
        watchdog.start()
        for _ in range(20):
            await asyncio.sleep(0.005)
        watchdog.stop()
        return watchdog.stalls

    assert asyncio.run(main()) == 0
    assert caplog.text == ""


def test_nothing_is_measured_after_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> int:
        watchdog = LoopWatchdog(limit=0.02, period=0.01)
        watchdog.start()
        watchdog.stop()
        holds_the_loop(time.monotonic() + 0.1)
        await asyncio.sleep(0.03)
        return watchdog.stalls

    assert asyncio.run(main()) == 0
    assert caplog.text == ""
