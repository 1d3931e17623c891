"""Blocking calls end only those who wait for them."""

import asyncio
import threading

import pytest
from waiting import wait_for

from pybernetes.component import offload as shared
from pybernetes.component.offload import Offload, Overdue


def test_a_call_returns_what_the_function_returns_or_raises() -> None:
    async def main() -> None:
        offload = Offload()
        assert await offload.run("pod", 10, max, 1, 2) == 2
        with pytest.raises(ValueError, match="invalid literal"):
            await offload.run("pod", 10, int, "x")
        assert offload.unfinished("pod") == 0
        assert await shared.run("pod", 10, max, 1, 2) == 2

    asyncio.run(main())


def test_a_call_that_hangs_is_overdue_and_its_owner_alone_is_refused_more() -> None:
    async def main() -> None:
        release = threading.Event()
        offload = Offload(limit=2)
        for _ in range(2):
            with pytest.raises(Overdue, match=r"pod a: Event.wait did not return within 0.01 s"):
                await offload.run("pod a", 0.01, release.wait)
        with pytest.raises(Overdue, match="pod a: 2 calls have not returned"):
            await offload.run("pod a", 10, release.wait)
        assert await offload.run("pod b", 10, abs, -1) == 1
        release.set()
        await wait_for(lambda: not offload.unfinished("pod a"), "the calls have returned")
        assert await offload.run("pod a", 10, abs, -1) == 1

    asyncio.run(asyncio.wait_for(main(), 20))


def test_all_owners_together_are_bounded() -> None:
    async def main() -> None:
        release = threading.Event()
        offload = Offload(limit=1, total=3)
        for number in range(3):
            with pytest.raises(Overdue):
                await offload.run(f"pod {number}", 0.01, release.wait)
        with pytest.raises(Overdue, match="is not tried"):
            await offload.run("another pod", 10, abs, -1)
        release.set()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_owners_whose_calls_hang_leave_room_for_others() -> None:
    async def main() -> None:
        release = threading.Event()
        offload = Offload(limit=4, total=8)
        for number in (0, 1, 2, 3):
            with pytest.raises(Overdue, match="did not return"):
                await offload.run(f"hung pod {number % 2}", 0.01, release.wait)
        with pytest.raises(Overdue, match="4 calls of all are left behind, abs is not tried"):
            await offload.run("hung pod 0", 10, abs, -1)
        assert await offload.run("another pod", 10, abs, -1) == 1
        release.set()
        await wait_for(
            lambda: not (offload.unfinished("hung pod 0") or offload.unfinished("hung pod 1")), "they return"
        )
        assert await offload.run("hung pod 0", 10, abs, -1) == 1

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_cancelled_caller_leaves_the_call_behind() -> None:
    async def main() -> None:
        release = threading.Event()
        offload = Offload()
        waiting = asyncio.ensure_future(offload.run("pod", 60, release.wait))
        await wait_for(lambda: offload.unfinished("pod"), "the call has begun")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert offload.unfinished("pod") == 1
        release.set()
        await wait_for(lambda: not offload.unfinished("pod"), "the calls have returned")

    asyncio.run(asyncio.wait_for(main(), 20))


def test_more_calls_than_an_owner_may_run_wait_for_their_turn() -> None:
    async def main() -> None:
        offload = Offload(limit=2)
        most = 0

        def work() -> int:
            nonlocal most
            most = max(most, offload.unfinished("pod"))
            return 1

        assert sum(await asyncio.gather(*(offload.run("pod", 30, work) for _ in range(50)))) == 50
        assert most == 2
        assert offload.unfinished("pod") == 0

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_call_whose_turn_does_not_come_is_overdue() -> None:
    async def main() -> None:
        release = threading.Event()
        offload = Offload(limit=1)
        first = asyncio.ensure_future(offload.run("pod", 60, release.wait))
        await wait_for(lambda: offload.unfinished("pod"), "the call has begun")
        with pytest.raises(Overdue, match="pod: 1 calls have not returned, abs is not tried"):
            await offload.run("pod", 0.01, abs, -1)
        second = asyncio.ensure_future(offload.run("pod", 60, abs, -1))
        await asyncio.sleep(0)
        release.set()
        assert await first
        assert await second == 1

    asyncio.run(asyncio.wait_for(main(), 60))


def test_one_call_that_was_left_behind_leaves_its_owner_another_one_at_a_time() -> None:
    async def main() -> None:
        hung, release = threading.Event(), threading.Event()
        offload = Offload(limit=2)
        with pytest.raises(Overdue):
            await offload.run("pod", 0.01, hung.wait)
        first = asyncio.ensure_future(offload.run("pod", 60, release.wait))
        await wait_for(lambda: offload.unfinished("pod") == 2, "the call has begun")
        second = asyncio.ensure_future(offload.run("pod", 60, abs, -1))
        await asyncio.sleep(0)
        assert not second.done()
        release.set()
        assert await first
        assert await second == 1
        hung.set()

    asyncio.run(asyncio.wait_for(main(), 60))
