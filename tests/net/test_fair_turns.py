"""Large pieces of work: one in a round of the loop, those who ask by turns."""

from __future__ import annotations

import asyncio
import socket
from itertools import pairwise

from pybernetes.net.fair_turns import Pace


async def test_a_single_request_is_not_behind_those_of_a_busy_client() -> None:
    pace = Pace(asyncio.get_running_loop())
    order: list[str] = []
    for number in range(50):
        pace.ask("flood", lambda number=number: order.append(f"flood {number}"))
    pace.ask("quiet", lambda: order.append("quiet"))
    await pace.turn("flood")
    assert order.index("quiet") == 1
    assert [each for each in order if each != "quiet"] == [f"flood {number}" for number in range(50)]


async def test_between_two_pieces_others_are_served() -> None:
    loop = asyncio.get_running_loop()
    pace = Pace(loop)
    order: list[str] = []
    ours, theirs = socket.socketpair()

    def piece() -> None:
        order.append("piece")
        theirs.send(b"!")  # a request comes while it is worked on

    def other() -> None:
        order.append("other")
        ours.recv(1)

    with ours, theirs:
        loop.add_reader(ours, other)
        for _ in range(3):
            pace.ask("flood", piece)
        await pace.turn("flood")
        loop.remove_reader(ours)
    assert order == ["piece", "other"] * 3


async def test_a_cancelled_request_holds_up_no_other() -> None:
    pace = Pace(asyncio.get_running_loop())
    gone = asyncio.create_task(pace.turn("a"))
    await asyncio.sleep(0)
    gone.cancel()
    async with asyncio.timeout(30):
        await pace.turn("a")


async def test_a_gap_is_kept_between_two_pieces_and_before_none() -> None:
    loop = asyncio.get_running_loop()
    pace = Pace(loop, gap=0.02)
    began = [loop.time()]
    for _ in range(3):
        pace.ask("a", lambda: began.append(loop.time()))
    await pace.turn("a")
    first, *others = (after - before for before, after in pairwise(began))
    assert first < 0.02
    assert all(each >= 0.019 for each in others)


async def test_a_piece_that_fails_does_not_stop_the_others() -> None:
    loop = asyncio.get_running_loop()
    seen: list[object] = []
    loop.set_exception_handler(lambda _, context: seen.append(context["exception"]))
    pace = Pace(loop)
    pace.ask("a", lambda: 1 / 0)
    await pace.turn("a")
    assert [type(each) for each in seen] == [ZeroDivisionError]
