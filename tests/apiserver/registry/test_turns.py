"""Those who change one object take turns, and the store does not wait for who has to wait for it."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

from pybernetes.apiserver.options import parse
from pybernetes.apiserver.registry.resource_store import Turn
from pybernetes.apiserver.server import APIServer
from pybernetes.store.cache import Cache
from pybernetes.store.memory import MemoryStore


async def test_turns_are_in_order_and_a_cancelled_one_holds_up_no_other() -> None:
    cache = Cache(MemoryStore(), [])
    queues: dict[str, deque[asyncio.Future[None]]] = {}
    order: list[int] = []
    go_on = asyncio.Event()

    async def change(number: int, key: str) -> None:
        async with Turn(queues, key, cache):
            order.append(number)
            await go_on.wait()

    tasks = [asyncio.create_task(change(number, "/a")) for number in range(5)]
    other = asyncio.create_task(change(9, "/b"))
    await asyncio.sleep(0)
    assert order == [0, 9]
    assert cache.queued == 4
    tasks[2].cancel()
    await asyncio.wait([tasks[2]])
    assert cache.queued == 3
    go_on.set()
    await asyncio.wait([*tasks, other])
    assert order == [0, 9, 1, 3, 4]
    assert (cache.queued, queues) == (0, {})


async def test_who_waits_for_a_turn_is_not_expected_by_the_store(tmp_path: Path) -> None:
    server = APIServer(parse(["--etcd-servers", f"sqlite://{tmp_path}/x.db", "--cert-dir", str(tmp_path)]))
    store: Any = server.store
    server._limited.writing, server.cache.queued = 32, 31
    assert store._patience._writing() == 1
