"""A reader with a function of its own gets changes at once, before the write returns."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest
from store.tools import until

from pybernetes.store.base import Event, Store
from pybernetes.store.cache import Cache

Opened = Callable[[], contextlib.AbstractAsyncContextManager[Store]]
in_this_process = pytest.mark.parametrize("kind", ["memory", "sqlite"])


class Reader:
    """Notes what it was given, and what it found by itself."""

    def __init__(self, store: Store, after: int) -> None:
        self.given: list[str] = []
        self.found: list[str] = []
        self.refuses = False
        self._watch = store.watch("/", after=after, receive=self._receive)
        self._task = asyncio.ensure_future(self._read())

    def _receive(self, batch: list[Event]) -> None:
        if self.refuses:
            raise ValueError("not now")
        self.given += [event.key for event in batch]

    async def _read(self) -> None:
        async for batch in self._watch:
            self.found += [event.key for event in batch]

    async def close(self) -> None:
        await self._watch.close()
        await self._task


@in_this_process
async def test_what_was_before_is_found_and_what_comes_is_given_each_once_and_in_order(opened: Opened) -> None:
    async with opened() as store:
        first = await store.create("/a", b"")
        reader = Reader(store, first - 1)
        await until(lambda: reader.found == ["/a"])
        for _ in range(5):
            await asyncio.sleep(0)  # it waits by now
        await store.create("/b", b"")
        assert reader.given == ["/b"]
        reader.refuses = True
        await store.create("/c", b"")
        await until(lambda: reader.found == ["/a", "/c"])
        reader.refuses = False
        await asyncio.gather(*(store.create(f"/x{number}", b"") for number in range(20)))
        await until(lambda: len(reader.given) + len(reader.found) == 23)
        assert reader.given + reader.found == list(dict.fromkeys(reader.given + reader.found))
        await reader.close()


@in_this_process
async def test_who_wrote_finds_it_in_the_cache_without_waiting(opened: Opened) -> None:
    async with opened() as store:
        cache = Cache(store, ["/registry/things/"])
        await cache.start()
        for _ in range(5):
            await asyncio.sleep(0)
        value = b'{"kind":"Thing","apiVersion":"v1","metadata":{"name":"a"}}'
        revision = await store.create("/registry/things/a", value)
        assert cache.revision == revision
        assert "/registry/things/a" in cache.partitions["/registry/things/"].items
        await cache.close()
