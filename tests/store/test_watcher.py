"""When changes are handed to a watcher: a lone one at once, many that follow each other together."""

from __future__ import annotations

import asyncio

import pytest

from pybernetes.store import watchers as cache
from pybernetes.store.cache import Partition
from pybernetes.store.watchers import Change, Item, Watcher

PREFIX = "/registry/things/"


@pytest.fixture
def partition() -> Partition:
    return Partition(PREFIX)


def added(partition: Partition, scope: str = PREFIX) -> Watcher:
    watcher = Watcher(scope, lambda change: change.key.removeprefix(PREFIX).encode(), 0)
    partition.add(watcher)
    return watcher


def change(partition: Partition, *keys: str) -> None:
    for key in keys:
        revision = partition.changed + 1
        item = Item(PREFIX + key, b"{}", revision)
        partition.apply(Change(item.key, revision, item, None, {}, 2))


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_a_lone_change_is_taken_at_once(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "REST", 3600.0)
    watcher = added(partition)
    taking = asyncio.create_task(watcher.take())
    await turns()
    change(partition, "a/1")
    await turns()
    assert taking.done()
    assert taking.result() == [b"a/1"]


async def test_changes_right_behind_it_come_together_after_a_rest(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "REST", 0.05)
    watcher = added(partition)
    change(partition, "a/1")
    assert await watcher.take() == [b"a/1"]
    began = asyncio.get_running_loop().time()
    taking = asyncio.create_task(watcher.take())
    for name in ("a/2", "a/3", "a/4"):
        change(partition, name)
        await turns()
    assert not taking.done()
    assert await taking == [b"a/2", b"a/3", b"a/4"]
    assert asyncio.get_running_loop().time() - began >= 0.04
    await asyncio.wait_for(_rested(watcher), 10)
    change(partition, "a/5")
    assert await watcher.take() == [b"a/5"]


async def _rested(watcher: Watcher) -> None:
    while watcher._resting is not None:  # noqa: ASYNC110 - its timer has no event
        await asyncio.sleep(0.01)


async def test_rests_become_longer_while_changes_keep_coming_and_short_again_after_one_without(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "REST", 0.001)
    monkeypatch.setattr(cache, "LONGEST_REST", 0.004)
    watcher = added(partition)
    rests = []
    for number in range(5):
        change(partition, f"a/{number}")
        rests.append(watcher._rest)
        assert await asyncio.wait_for(watcher.take(), 10) == [f"a/{number}".encode()]
    assert rests == [0.001, 0.002, 0.004, 0.004, 0.004]
    await asyncio.wait_for(_rested(watcher), 10)
    assert watcher._rest == 0.001


async def test_changes_without_a_reader_are_kept(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "REST", 0.01)
    watcher = added(partition)
    change(partition, "a/1")
    assert await watcher.take() == [b"a/1"]
    change(partition, "a/2")
    await asyncio.wait_for(_rested(watcher), 10)
    assert await asyncio.wait_for(watcher.take(), 10) == [b"a/2"]
    await asyncio.wait_for(_rested(watcher), 10)
    watcher.wake()
    assert await asyncio.wait_for(watcher.take(), 10) == [], "a wake-up counts for the next who takes"
    taking = asyncio.create_task(watcher.take())
    await turns()
    assert not taking.done(), "and only for that one"
    taking.cancel()


async def test_the_end_does_not_wait(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "REST", 3600.0)
    watcher = added(partition)
    change(partition, "a/1")
    assert await watcher.take() == [b"a/1"]
    taking = asyncio.create_task(watcher.take())
    change(partition, "a/2")
    await turns()
    assert not taking.done()
    watcher.end(None)
    assert await asyncio.wait_for(taking, 10) == [b"a/2"]
    assert await asyncio.wait_for(watcher.take(), 10) == []


async def test_who_watches_one_name_is_offered_nothing_else(partition: Partition) -> None:
    seen: list[str] = []
    watcher = Watcher(PREFIX, lambda change: seen.append(change.key) or b"x", 0)  # type: ignore[func-returns-value]
    watcher.ending = "/one"
    partition.add(watcher)
    change(partition, "a/one", "a/other", "b/one", "one/other", "a/someone")
    assert seen == [f"{PREFIX}a/one", f"{PREFIX}b/one"]
    assert watcher.revision == 5
