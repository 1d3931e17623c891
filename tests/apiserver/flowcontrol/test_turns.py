"""Who begins when: flows take turns, and a flow alone has everything."""

from __future__ import annotations

import asyncio

from pybernetes.apiserver.flowcontrol.turns import Turns


class Run:
    """Requests that are served one after another on the loop, with what began in which order."""

    def __init__(self, **settings: int) -> None:
        self.turns = Turns(asyncio.get_running_loop(), **settings)
        self.order: list[str] = []
        self.running: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def request(self, flow: str, rounds: int = 1) -> None:
        if not self.turns.begin(flow):
            await self.turns.wait(flow)
        self.order.append(flow)
        self.running[flow] = self.running.get(flow, 0) + 1
        self.most[flow] = max(self.most.get(flow, 0), self.running[flow])
        for _ in range(rounds):
            await asyncio.sleep(0)
        self.running[flow] -= 1
        self.turns.end(flow)


async def test_another_flow_begins_at_once_in_a_flood() -> None:
    run = Run()
    flood = [asyncio.create_task(run.request("flood")) for _ in range(200)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    before = len(run.order)
    await run.request("quiet")
    assert run.order.index("quiet") - before <= 3
    await asyncio.gather(*flood)
    assert len(run.order) == 201


async def test_flows_alternate() -> None:
    run = Run()
    tasks = [asyncio.create_task(run.request(flow)) for flow in ("a",) * 50 + ("b",) * 50]
    await asyncio.gather(*tasks)
    first = run.order[:60]
    assert abs(first.count("a") - first.count("b")) <= 2


async def test_a_flow_among_others_has_only_so_many_under_way() -> None:
    run = Run(at_once=4)
    await run.request("other")
    tasks = [asyncio.create_task(run.request("a", rounds=20)) for _ in range(30)]
    await asyncio.gather(*tasks)
    assert run.most["a"] == 4
    assert len(run.order) == 31


async def test_a_flow_alone_is_not_limited() -> None:
    run = Run(at_once=4)
    run.turns._last = "a"
    tasks = [asyncio.create_task(run.request("a", rounds=100)) for _ in range(30)]
    await asyncio.gather(*tasks)
    assert run.most["a"] == 30


async def test_who_goes_away_while_waiting_takes_no_turn() -> None:
    run = Run(at_once=1)
    await run.request("other")
    first = asyncio.create_task(run.request("a", rounds=5))
    gone = asyncio.create_task(run.request("a"))
    last = asyncio.create_task(run.request("a"))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(first, last)
    assert run.order == ["other", "a", "a"]
    assert not run.turns._running
    assert not run.turns._waiting
