"""Long-lived tasks: restarted, counted, and named by the health check when they stay down."""

import asyncio
import logging

import pytest
from waiting import wait_for

from pybernetes.component import tasks
from pybernetes.component.tasks import TOLERATED_FAILURES, Tasks


async def no_wait(_seconds: float) -> None:
    await asyncio.sleep(0)


def test_a_task_that_fails_is_logged_counted_and_run_again(caplog: pytest.LogCaptureFixture) -> None:
    runs = []

    async def work() -> None:
        runs.append(len(runs))
        if len(runs) < 3:
            raise ValueError("year 0 is out of range")

    async def main() -> None:
        group = Tasks("apiserver", no_wait)
        await group.start("replication", work)
        assert group.check() == ""

    before = tasks.failures["replication"]
    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert len(runs) == 3
    assert tasks.failures["replication"] == before + 2
    assert "apiserver: task replication failed, restarting in 0.1 s" in caplog.text
    assert "Traceback" in caplog.text
    assert "year 0 is out of range" in caplog.text


def test_a_task_that_is_not_restarted_fails_the_health_check_by_name() -> None:
    async def work() -> None:
        raise ValueError("cannot go on")

    async def main() -> str:
        group = Tasks("apiserver", no_wait)
        await group.start("identity", work, restart=False)
        return group.check()

    assert asyncio.run(main()) == "task identity: cannot go on"


def test_a_task_that_keeps_failing_fails_the_health_check_until_it_is_steady() -> None:
    async def main() -> None:
        healthy = asyncio.Event()
        runs = 0

        async def work() -> None:
            nonlocal runs
            runs += 1
            if not healthy.is_set():
                raise ValueError("no")
            await asyncio.Event().wait()

        group = Tasks("kubelet", no_wait, steady_after=0.01)
        group.start("pods", work)
        await wait_for(lambda: group.failed, "the task counts as failed")
        assert runs >= TOLERATED_FAILURES
        assert group.check() == "task pods: no"
        healthy.set()
        await wait_for(lambda: not group.failed, "the task is steady")
        await group.stop()

    asyncio.run(asyncio.wait_for(main(), 10))


def test_back_off_doubles_to_its_maximum_and_begins_anew_after_a_steady_run() -> None:
    async def main() -> list[float]:
        delays: list[float] = []
        done = asyncio.Event()

        async def sleep(seconds: float) -> None:
            delays.append(seconds)
            await asyncio.sleep(0)

        async def work() -> None:
            if len(delays) == 10:
                await asyncio.sleep(0.02)
            if len(delays) == 11:
                done.set()
            raise ValueError("no")

        group = Tasks("kubelet", sleep, steady_after=0.01)
        group.start("pods", work)
        await done.wait()
        await group.stop()
        return delays[:11]

    delays = asyncio.run(asyncio.wait_for(main(), 10))
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 0.1]


def test_stop_ends_all_tasks_and_a_stopped_group_starts_none() -> None:
    async def main() -> None:
        group = Tasks("kubelet")
        task = group.start("pods", asyncio.Event().wait)
        await asyncio.sleep(0)
        await group.stop()
        assert task.cancelled()
        with pytest.raises(RuntimeError, match="kubelet is stopped"):
            group.start("more", asyncio.Event().wait)

    asyncio.run(asyncio.wait_for(main(), 10))
