"""One client, one follower or one stored value that is bad does not end the cache's work for all others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest
from store.tools import until

from pybernetes.component import tasks
from pybernetes.store.base import Event, Store
from pybernetes.store.cache import Cache
from pybernetes.store.memory import MemoryStore
from pybernetes.store.watchers import Change, Watcher

Opened = Callable[[], contextlib.AbstractAsyncContextManager[Store]]
PREFIX = "/registry/things/"


def value(name: str) -> bytes:
    return b'{"kind":"Thing","apiVersion":"v1","metadata":{"name":"%b"}}' % name.encode()


def key_of(change: Change) -> str:
    return change.key


def fails(change: Change) -> str:
    raise ValueError("Year 0 is out of range")


async def opened_cache() -> tuple[MemoryStore, Cache]:
    store = MemoryStore()
    await store.start()
    cache = Cache(store, [PREFIX, "/registry/others/"])
    await cache.start()
    return store, cache


async def test_a_watcher_whose_selection_fails_is_ended_alone() -> None:
    store, cache = await opened_cache()
    bad, good = Watcher(PREFIX, fails, 0), Watcher(PREFIX, key_of, 0)
    cache.partitions[PREFIX].add(bad)
    cache.partitions[PREFIX].add(good)
    for name in "ab":
        assert await cache.wait_for(await store.create(PREFIX + name, value(name)), 10)
    assert isinstance(bad.ended, ValueError)
    assert await good.take() == [f"{PREFIX}a", f"{PREFIX}b"]
    assert cache.check() == ""
    await cache.close()


async def test_a_follower_that_fails_does_not_keep_changes_from_the_next_one() -> None:
    store, cache = await opened_cache()
    seen: list[Change | None] = []

    def fail(change: Change | None) -> None:
        raise ValueError("not this one")

    cache.partitions[PREFIX].followers += [fail, seen.append]
    assert await cache.wait_for(await store.create(f"{PREFIX}a", value("a")), 10)
    assert len(seen) == 1
    assert cache.check() == ""
    await cache.close()


@pytest.mark.parametrize(
    "foreign",
    [
        b"",
        b"hello",
        b"\x00\xff\xfe",
        b"{",
        b"[]",
        b"5",
        b'{"metadata":{}}',
        b'{"kind":"Thing","metadata":{"name":5}}',
        b'{"kind":"Thing","metadata":{"name":"b"',
        b"k8s\x00\n\x0c\n\x02v1\x12\x06Secret",
    ],
)
@pytest.mark.parametrize("kind", ["sqlite", "etcd"])
async def test_bytes_that_are_no_object_are_set_aside_alone(opened: Opened, foreign: bytes, prefix: str) -> None:
    async with opened() as store:
        await store.create(f"{prefix}before", foreign)
        await store.create(f"{prefix}a", value("a"))
        cache = Cache(store, [prefix, "/registry/others/"], essential=[prefix])
        await cache.start()
        partition = cache.partitions[prefix]
        assert (partition.keys, list(partition.foreign)) == ([f"{prefix}a"], [f"{prefix}before"])
        watcher = Watcher(prefix, key_of, cache.revision)
        partition.add(watcher)
        if not store.exclusive or b'"metadata":{' not in foreign:  # an exclusive store has no other writer
            await store.create(f"{prefix}later", foreign)
        assert await cache.wait_for(await store.create(f"{prefix}b", value("b")), 10)
        assert partition.keys == [f"{prefix}a", f"{prefix}b"]
        assert await watcher.take() == [f"{prefix}b"]
        assert watcher.ended is None
        assert cache.check() == ""
        await cache.close()


async def test_an_object_that_is_overwritten_with_foreign_bytes_is_gone_until_it_is_written_again() -> None:
    store, cache = await opened_cache()
    partition, key = cache.partitions[PREFIX], f"{PREFIX}a"
    seen: list[tuple[str, bool]] = []
    created = await store.create(key, value("a"))
    assert await cache.wait_for(created, 10)
    partition.add(Watcher(PREFIX, lambda change: seen.append((change.key, change.item is None)), created))
    overwritten = await store.update(key, b"hello", revision=created)
    assert await cache.wait_for(overwritten, 10)
    assert (partition.keys, list(partition.foreign), seen) == ([], [key], [(key, True)])
    assert await cache.wait_for(await store.update(key, value("a"), revision=overwritten), 10)
    assert (partition.keys, partition.foreign, seen[1:]) == ([key], {}, [(key, False)])
    await cache.close()


async def test_the_task_that_follows_the_store_begins_again_after_a_fault_and_fails_health_if_it_cannot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "MAX_BACKOFF", 0.01)
    store, cache = await opened_cache()
    watcher = Watcher(PREFIX, key_of, 0)
    cache.partitions[PREFIX].add(watcher)
    apply, broken = cache._apply, True

    def faulty(event: Event) -> None:
        if broken and event.key.endswith("bad"):
            raise AssertionError("a fault of ours")
        apply(event)

    monkeypatch.setattr(cache, "_apply", faulty)
    await store.create(f"{PREFIX}bad", value("bad"))
    revision = await store.create(f"{PREFIX}a", value("a"))
    assert await cache.wait_for(revision, 10), "everything was read anew"
    assert cache.partitions[PREFIX].keys == [f"{PREFIX}a", f"{PREFIX}bad"]
    assert watcher.ended is not None, "who watched lists again"
    load = cache._load

    async def cannot() -> None:
        raise AssertionError("nor can it be read anew")

    monkeypatch.setattr(cache, "_load", cannot)
    await store.create(f"{PREFIX}another-bad", value("another-bad"))
    await until(lambda: "watch-cache-replication" in cache.check())
    monkeypatch.setattr(cache, "_load", load)
    broken = False
    assert await cache.wait_for(await store.create(f"{PREFIX}b", value("b")), 10)
    await asyncio.wait_for(cache.close(), 10)
