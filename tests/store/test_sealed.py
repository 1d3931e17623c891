"""Objects without their key, in the cache: known by name, harmless to others, and back with their key."""

from __future__ import annotations

import pytest

from pybernetes.store.base import Ciphertext, Compacted
from pybernetes.store.cache import Cache, Sealed
from pybernetes.store.memory import MemoryStore
from pybernetes.store.watchers import Change, Watcher

PREFIX = "/registry/secrets/"
CIPHERTEXT = b"k8s:enc:aesgcm:v1:lost:xyz"
WHY = Ciphertext.why


def value(name: str) -> bytes:
    return b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"%b"}}' % name.encode()


async def opened(*keys: str, essential: tuple[str, ...] = ()) -> tuple[MemoryStore, Cache]:
    """A store with encrypted values at some keys, and the cache above it."""
    store = MemoryStore()
    await store.start()
    for key in keys:
        await store.create(key, CIPHERTEXT)
    cache = Cache(store, [PREFIX, "/registry/pods/"], essential)
    await cache.start()
    return store, cache


def view(change: Change) -> bytes | None:
    return change.key.encode()


async def test_what_is_sealed_is_not_among_the_items() -> None:
    store, cache = await opened(f"{PREFIX}default/a")
    partition = cache.partitions[PREFIX]
    await store.create(f"{PREFIX}default/b", value("b"))
    await cache.wait_for(await store.revision())
    assert partition.sealed == {f"{PREFIX}default/a": WHY}
    assert partition.keys == [f"{PREFIX}default/b"]
    await cache.close()


async def test_what_becomes_sealed_ends_those_who_watch_and_what_can_be_read_again_is_back() -> None:
    store, cache = await opened()
    partition, key = cache.partitions[PREFIX], f"{PREFIX}default/a"
    followed: list[Change | None] = []
    partition.followers.append(followed.append)
    created = await store.create(key, value("a"))
    await cache.wait_for(created)
    watcher, other = Watcher(PREFIX, view, created), Watcher("/registry/pods/", view, created)
    partition.add(watcher)
    cache.partitions["/registry/pods/"].add(other)
    sealed = await store.update(key, CIPHERTEXT, revision=created)
    await cache.wait_for(sealed)
    assert (partition.items, partition.sealed, followed[-1]) == ({}, {key: WHY}, None)
    assert isinstance(watcher.ended, Compacted)
    assert other.ended is None
    written = await store.update(key, value("a"), revision=sealed)
    await cache.wait_for(written)
    assert (partition.keys, partition.sealed) == ([key], {})
    await cache.close()


async def test_a_key_that_was_given_back_opens_what_it_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = f"{PREFIX}default/a", f"{PREFIX}default/b"
    store, cache = await opened(one, two)
    partition = cache.partitions[PREFIX]
    await cache.unseal(partition)
    assert partition.sealed == {one: WHY, two: WHY}
    read = store.get

    async def opens(key: str) -> object:
        entry = await read(key)
        assert entry is not None
        return type(entry)(key, value(key[-1]), entry.revision) if key == one else entry

    monkeypatch.setattr(store, "get", opens)
    await cache.unseal(partition)
    assert (partition.keys, partition.sealed) == ([one], {two: WHY})
    assert partition.floor == cache.revision, "who watched before must list again"
    await cache.close()


async def test_a_partition_that_comes_later_knows_what_is_sealed() -> None:
    store, cache = await opened()
    await store.create("/registry/example.com/widgets/default/a", CIPHERTEXT)
    await cache.wait_for(await store.revision())
    partition = await cache.add_partition("/registry/example.com/widgets/")
    assert partition.sealed == {"/registry/example.com/widgets/default/a": WHY}
    await cache.close()


async def test_without_what_is_essential_there_is_no_cache() -> None:
    with pytest.raises(Sealed, match=f'unable to transform key "{PREFIX}default/a": {WHY}'):
        await opened(f"{PREFIX}default/a", essential=(PREFIX,))
