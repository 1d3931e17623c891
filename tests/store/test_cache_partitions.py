"""Partitions come and go while the cache follows the store."""

from __future__ import annotations

import asyncio
from typing import Any

from pybernetes.store.base import Compacted, Page
from pybernetes.store.cache import Cache
from pybernetes.store.memory import MemoryStore
from pybernetes.store.watchers import Change, Watcher

PREFIX = "/registry/example.com/widgets/"


def value(number: int) -> bytes:
    return b'{"kind":"W","apiVersion":"v1","metadata":{"name":"%d"}}' % number


async def opened() -> tuple[MemoryStore, Cache]:
    store = MemoryStore()
    await store.start()
    cache = Cache(store, ["/registry/pods/"])
    await cache.start()
    return store, cache


async def test_a_partition_that_comes_later_holds_what_was_and_what_comes_meanwhile() -> None:
    store, cache = await opened()
    await store.create("/registry/pods/default/a", value(0))
    revisions = [await store.create(f"{PREFIX}default/{number:03}", value(number)) for number in range(50)]
    slow = asyncio.Event()
    read = store.range

    async def late(*arguments: Any, **more: Any) -> Page:
        page = await read(*arguments, **more)
        await slow.wait()  # the world moves on between the reading and the answer
        return page

    store.range = late  # type: ignore[method-assign]
    await cache.wait_for(await store.revision())
    adding = asyncio.create_task(cache.add_partition(PREFIX))
    await asyncio.sleep(0)
    for number in range(50, 60):
        await store.create(f"{PREFIX}default/{number:03}", value(number))
    await store.delete(f"{PREFIX}default/000", revision=revisions[0])
    await store.update(f"{PREFIX}default/001", value(999), revision=revisions[1])
    await cache.wait_for(await store.revision())
    slow.set()
    partition = await adding
    assert partition.keys == [f"{PREFIX}default/{number:03}" for number in range(1, 60)]
    assert b'"999"' in partition.items[f"{PREFIX}default/001"].raw
    assert await cache.add_partition(PREFIX) is partition
    seen: list[str] = []

    def view(change: Change) -> bytes:
        seen.append(change.key)
        return b"x"

    watcher = Watcher(PREFIX, view, cache.revision)
    partition.add(watcher)
    revision = await store.create(f"{PREFIX}default/new", value(1))
    await cache.wait_for(revision)
    assert seen == [f"{PREFIX}default/new"]
    cache.remove_partition(PREFIX)
    assert watcher.closed
    assert watcher.ended is None
    assert cache.partition_of(f"{PREFIX}default/new") is None
    again = await cache.add_partition(PREFIX)
    assert len(again.items) == 60
    await cache.close()
    await store.close()


async def test_a_revision_that_was_compacted_meanwhile_is_read_again() -> None:
    store, cache = await opened()
    await store.create(f"{PREFIX}default/a", value(1))
    await cache.wait_for(await store.revision())
    read, refusals = store.range, [Compacted(1, 2), Compacted(1, 2)]

    async def refusing(*arguments: Any, **more: Any) -> Page:
        if refusals:
            raise refusals.pop()
        return await read(*arguments, **more)

    store.range = refusing  # type: ignore[method-assign]
    partition = await cache.add_partition(PREFIX)
    assert list(partition.items) == [f"{PREFIX}default/a"]
    await cache.close()
    await store.close()


async def test_several_who_want_the_same_partition_get_the_same() -> None:
    store, cache = await opened()
    await store.create(f"{PREFIX}default/a", value(1))
    await cache.wait_for(await store.revision())
    first, second = await asyncio.gather(cache.add_partition(PREFIX), cache.add_partition(PREFIX))
    assert first is second
    await cache.close()
    await store.close()
