"""A priority level: seats are taken, waited for and given back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pybernetes.api.flowcontrol.v1 import (
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationSpec,
    QueuingConfiguration,
)
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.apiserver.flowcontrol.estimating import ONE
from pybernetes.apiserver.flowcontrol.levels import Asked, Level, Rejected
from pybernetes.net.http import Request

ASKED = Asked(Request(None, "GET", "/", "", {}, b""), "schema", "user", ONE, 1.0)  # type: ignore[arg-type]


def make(limit: int, queues: int = 0, length: int = 50, patience: float = 10.0) -> Level:
    level = Level("test", asyncio.get_running_loop(), patience)
    queuing = QueuingConfiguration(queues=queues, hand_size=1, queue_length_limit=length) if queues else None
    response = LimitResponse(type="Queue" if queues else "Reject", queuing=queuing)
    limited = LimitedPriorityLevelConfiguration(nominal_concurrency_shares=1, limit_response=response)
    spec = PriorityLevelConfigurationSpec(type="Limited", limited=limited)
    level.configure(PriorityLevelConfiguration(metadata=ObjectMeta(name="test", uid="u"), spec=spec))
    level.limit = limit
    return level


async def test_without_queues_there_is_no_waiting() -> None:
    level = make(2)
    assert level.enter(1)
    assert level.enter(1)
    assert not level.enter(1)
    with pytest.raises(Rejected, match="concurrency-limit"):
        await level.wait("a", ASKED)
    level.leave(1)
    assert level.enter(1)


async def test_who_waits_is_let_in_when_seats_are_free() -> None:
    level = make(1, queues=1)
    assert level.enter(1)
    waiting = asyncio.create_task(level.wait("a", ASKED))
    await asyncio.sleep(0)
    assert not level.enter(1)  # no request overtakes
    level.leave(1)
    queue = await waiting
    assert level.executing == 1
    level.leave(1, queue, 0.001)
    assert level.executing == 0
    assert level.enter(1)


async def test_a_wide_request_waits_until_it_fits_and_fits_when_alone() -> None:
    level = make(4, queues=1)
    assert level.enter(3)
    assert not level.enter(2)
    level.leave(3)
    assert level.enter(100)


async def test_a_full_queue_and_a_long_wait_are_refused() -> None:
    level = make(1, queues=1, length=1, patience=0.01)
    assert level.enter(1)
    waiting = asyncio.create_task(level.wait("a", ASKED))
    await asyncio.sleep(0)
    with pytest.raises(Rejected, match="queue-full"):
        await level.wait("a", ASKED)
    with pytest.raises(Rejected, match="time-out"):
        await waiting
    assert level.queues is not None
    assert level.queues.waiting == 0


async def test_who_leaves_while_waiting_holds_nothing() -> None:
    level = make(1, queues=1)
    assert level.enter(1)
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(level.wait("a", ASKED)) for _ in range(2)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    level.leave(1)
    await tasks[1]
    assert level.executing == 1


async def test_a_level_without_seats_admits_no_request() -> None:
    level = make(0, queues=1)
    assert not level.enter(1)
    level.dispatch()
    assert level.executing == 0


async def test_seats_are_held_while_watch_events_are_sent() -> None:
    level = make(2, queues=1)
    assert level.enter(2)
    level.later(0.01, 2, None, 0.0)
    assert not level.enter(1)
    async with asyncio.timeout(30):
        await level.wait("a", ASKED)
    assert level.executing == 1
