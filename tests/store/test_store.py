"""What every store promises (`pybernetes.store.base`), on all three of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from store.tools import Clock, take

from pybernetes.store.base import (
    Compacted,
    Entry,
    Event,
    FutureRevision,
    KeyExists,
    RevisionMismatch,
    Store,
    StoreUnavailable,
)

Opened = Callable[[], contextlib.AbstractAsyncContextManager[Store]]


async def test_a_created_key_is_read_back_at_its_revision(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        before = await store.revision()
        revision = await store.create(prefix + "a", b"one")
        assert revision > before
        assert await store.get(prefix + "a") == Entry(prefix + "a", b"one", revision)
        assert await store.revision() == revision
        assert await store.get(prefix + "b") is None


async def test_a_new_store_has_a_revision_above_zero(opened: Opened) -> None:
    async with opened() as store:
        assert await store.revision() >= 1
        assert (await store.range("/nothing/")).revision >= 1


@pytest.mark.parametrize("value", [b"", b"\0", b"a\0b,c\0", bytes(range(256)), b"x" * 3_000_000, "ü€😀".encode()])
async def test_values_are_arbitrary_bytes(opened: Opened, prefix: str, value: bytes) -> None:
    if len(value) > 1_000_000 and (await _is_etcd(opened)):
        value = value[:1_000_000]  # etcd refuses requests above 1.5 MB unless told otherwise
    async with opened() as store:
        first = await store.create(prefix + "a", b"first")
        second = await store.create(prefix + "b/é😀", value)
        assert await store.get(prefix + "b/é😀") == Entry(prefix + "b/é😀", value, second)
        page = await store.range(prefix)
        assert page.entries == [Entry(prefix + "a", b"first", first), Entry(prefix + "b/é😀", value, second)]


async def _is_etcd(opened: Opened) -> bool:
    async with opened() as store:
        return not store.exclusive


async def test_create_refuses_an_existing_key(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        revision = await store.create(prefix + "a", b"one")
        with pytest.raises(KeyExists) as refused:
            await store.create(prefix + "a", b"two")
        assert refused.value.key == prefix + "a"
        assert await store.get(prefix + "a") == Entry(prefix + "a", b"one", revision)


async def test_a_deleted_key_can_be_created_again(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        first = await store.create(prefix + "a", b"one")
        deleted = await store.delete(prefix + "a", revision=first)
        assert await store.get(prefix + "a") is None
        again = await store.create(prefix + "a", b"two")
        assert first < deleted < again
        assert await store.get(prefix + "a") == Entry(prefix + "a", b"two", again)


async def test_update_and_delete_need_the_current_revision(opened: Opened, prefix: str) -> None:
    key = prefix + "a"
    async with opened() as store:
        first = await store.create(key, b"one")
        second = await store.update(key, b"two", revision=first)
        assert second > first
        for operation in (store.update(key, b"three", revision=first), store.delete(key, revision=first)):
            with pytest.raises(RevisionMismatch) as refused:
                await operation
            assert refused.value.current == Entry(key, b"two", second)
        assert await store.get(key) == Entry(key, b"two", second)
        await store.delete(key, revision=second)
        for operation in (store.update(key, b"three", revision=second), store.delete(key, revision=second)):
            with pytest.raises(RevisionMismatch) as refused:
                await operation
            assert refused.value.current is None


async def test_of_concurrent_updates_at_one_revision_exactly_one_wins_and_a_retry_sees_it(
    opened: Opened, prefix: str
) -> None:
    key = prefix + "counter"
    async with opened() as store:
        await store.create(key, b"0")

        async def increment() -> None:
            while True:
                entry = await store.get(key)
                assert entry is not None
                try:
                    await store.update(key, str(int(entry.value) + 1).encode(), revision=entry.revision)
                    return
                except RevisionMismatch as refused:
                    current = refused.current
                now = await store.get(key)
                assert current is not None
                assert now is not None
                assert now.revision >= current.revision > entry.revision

        await asyncio.gather(*(increment() for _ in range(20)))
        entry = await store.get(key)
        assert entry is not None
        assert entry.value == b"20"


async def test_of_concurrent_creates_exactly_one_wins(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        outcomes = await asyncio.gather(
            *(store.create(prefix + "a", b"%d" % i) for i in range(20)), return_exceptions=True
        )
        assert sum(isinstance(outcome, int) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, KeyExists) for outcome in outcomes) == 19
        assert await store.get(prefix + "a") is not None


async def test_range_is_ordered_and_stays_below_its_prefix(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        names = ["b", "a", "c/x", "c", "cc", "ß", "z\U0010fffd", "A"]
        for name in names:
            await store.create(prefix + name, name.encode())
        await store.create(prefix[:-1] + "0", b"after the prefix")
        await store.create(prefix[:-1] + ".", b"before the prefix")
        page = await store.range(prefix)
        assert [entry.key for entry in page.entries] == sorted(prefix + name for name in names)
        assert (page.remaining, page.revision) == (0, await store.revision())
        assert [entry.key for entry in (await store.range(prefix + "c")).entries] == [
            prefix + "c",
            prefix + "c/x",
            prefix + "cc",
        ]
        everything = [entry.key for entry in (await store.range("")).entries]
        assert {prefix + name for name in names} <= set(everything)
        assert everything == sorted(everything)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10, 11])
async def test_pages_at_one_revision_are_the_store_as_it_was_while_writes_go_on(
    opened: Opened, prefix: str, limit: int
) -> None:
    async with opened() as store:
        revisions = [await store.create(f"{prefix}{i:02}", b"old") for i in range(11)]
        await store.delete(f"{prefix}10", revision=revisions.pop())
        page = await store.range(prefix, limit=limit)
        at = page.revision
        entries = list(page.entries)
        number = 0
        while page.remaining:
            assert len(page.entries) == limit
            assert page.remaining == 10 - len(entries)
            await store.create(f"{prefix}{number:02}-new", b"new")
            await store.update(f"{prefix}{number:02}", b"new", revision=revisions[number])
            await store.delete(f"{prefix}{9 - number:02}", revision=revisions[9 - number])
            number = min(number + 1, 4) if number < 4 else 4
            page = await store.range(prefix, after=entries[-1].key, limit=limit, revision=at)
            assert page.revision == at
            entries += page.entries
            if number == 4:
                break
        rest = await store.range(prefix, after=entries[-1].key, revision=at)
        entries += rest.entries
        assert entries == [Entry(f"{prefix}{i:02}", b"old", revisions[i]) for i in range(10)]


async def test_after_skips_to_a_key_whether_it_exists_or_not(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        for name in "ace":
            await store.create(prefix + name, b"")
        for after, expected in [("", "ace"), ("a", "ce"), ("b", "ce"), ("e", ""), ("z", "")]:
            page = await store.range(prefix, after=prefix + after)
            assert "".join(entry.key[-1] for entry in page.entries) == expected
        assert len((await store.range(prefix, after="/")).entries) == 3


async def test_a_revision_that_has_not_happened_is_refused(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        now = await store.create(prefix + "a", b"")
        with pytest.raises(FutureRevision) as refused:
            await store.range(prefix, revision=now + 1000)
        assert (refused.value.revision, refused.value.current >= now) == (now + 1000, True)
        with pytest.raises(FutureRevision):
            await store.compact(now + 1000)


async def test_a_watch_from_the_past_replays_history_then_goes_on(opened: Opened, prefix: str) -> None:
    key = prefix + "a"
    async with opened() as store:
        start = await store.revision()
        first = await store.create(key, b"one")
        second = await store.update(key, b"two", revision=first)
        await store.create(prefix[:-1] + "0", b"elsewhere")
        third = await store.delete(key, revision=second)
        expected = [
            Event(key, b"one", first, None),
            Event(key, b"two", second, Entry(key, b"one", first)),
            Event(key, None, third, Entry(key, b"two", second)),
        ]
        watch = store.watch(prefix, after=start)
        assert await take(watch, 3) == expected
        fourth = await store.create(key, b"three")
        assert await take(watch, 1) == [Event(key, b"three", fourth, None)]
        for skipped, revision in enumerate([first, second, third], 1):
            other = store.watch(prefix, after=revision)
            assert await take(other, 4 - skipped) == [*expected[skipped:], Event(key, b"three", fourth, None)]
            await other.close()
        await watch.close()


async def test_a_watch_from_zero_sees_everything(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        with contextlib.suppress(Compacted):
            revisions = [await store.create(f"{prefix}{i}", b"") for i in range(3)]
            watch = store.watch(prefix, after=0)
            assert [event.revision for event in await take(watch, 3)] == revisions
            await watch.close()
            return
        assert not store.exclusive  # A shared etcd was compacted by another test: Compacted is the right answer.


async def test_a_watch_from_now_sees_only_what_comes(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        first = await store.create(prefix + "a", b"one")
        watch = store.watch(prefix, after=await store.revision())
        second = await store.update(prefix + "a", b"two", revision=first)
        assert [event.revision for event in await take(watch, 1)] == [second]
        await watch.close()


async def test_a_watch_from_the_future_begins_there(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        watch = store.watch(prefix, after=await store.revision() + 2)
        reader = asyncio.ensure_future(take(watch, 2))
        await asyncio.sleep(0.05)
        revisions = [await store.create(f"{prefix}{number}", b"") for number in range(4)]
        assert [event.revision for event in await reader] == revisions[2:]
        await watch.close()


async def test_a_closed_watch_ends_its_iteration(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        watch = store.watch(prefix, after=await store.revision())

        async def read() -> list[Event]:
            return [event async for batch in watch for event in batch]

        reader = asyncio.create_task(read())
        await store.create(prefix + "a", b"")
        await watch.close()
        assert len(await asyncio.wait_for(reader, 30)) <= 1


async def test_closing_the_store_ends_its_watches(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        watch = store.watch(prefix, after=await store.revision())

        async def read() -> None:
            async for _ in watch:
                pass

        reader = asyncio.create_task(read())
        await asyncio.sleep(0)
    with contextlib.suppress(StoreUnavailable):
        await asyncio.wait_for(reader, 30)


async def test_a_closed_store_refuses_to_watch(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        pass
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(take(store.watch(prefix, after=0), 1), 30)


@pytest.mark.parametrize(
    "operation",
    [
        lambda store, key, revision: store.create(f"{key}-other", b""),
        lambda store, key, revision: store.update(key, b"", revision=revision),
        lambda store, key, revision: store.delete(key, revision=revision),
        lambda store, key, revision: store.get(key),
        lambda store, key, revision: store.range(key),
        lambda store, key, revision: store.revision(),
        lambda store, key, revision: store.compact(revision),
        lambda store, key, revision: store.check(),
    ],
    ids=["create", "update", "delete", "get", "range", "revision", "compact", "check"],
)
async def test_a_closed_store_refuses_every_operation(opened: Opened, prefix: str, operation: Any) -> None:
    async with opened() as store:
        revision = await store.create(prefix + "a", b"1")
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(operation(store, prefix + "a", revision), 30)


async def test_a_slow_watch_gets_everything_in_order(
    opened: Opened, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pybernetes.store.feed.BACKLOG", 5)
    monkeypatch.setattr("pybernetes.store.feed.PAGE", 7)
    async with opened() as store:
        watch = store.watch(prefix, after=await store.revision())
        revisions = [await store.create(f"{prefix}first", b"")]
        await take(watch, 1)
        for i in range(40):
            revisions.append(await store.create(f"{prefix}{i}", b""))
        assert [event.revision for event in await take(watch, 40)] == revisions[1:]
        revisions = [await store.create(f"{prefix}b{i}", b"") for i in range(3)]
        assert [event.revision for event in await take(watch, 3)] == revisions
        await watch.close()


async def test_a_hundred_writers_get_distinct_revisions_and_the_watch_sees_just_those_in_order(
    opened: Opened, prefix: str
) -> None:
    async with opened() as store:
        watches = [store.watch(prefix, after=await store.revision()) for _ in range(2)]
        acknowledged: dict[int, tuple[str, bytes | None]] = {}

        async def write(name: str) -> None:
            key, last = prefix + name, 0
            for step in range(4):
                value = f"{name}-{step}".encode() if step < 3 else None
                if step == 0:
                    revision = await store.create(key, value or b"")
                elif value is None:
                    revision = await store.delete(key, revision=last)
                else:
                    revision = await store.update(key, value, revision=last)
                assert revision > last
                assert revision not in acknowledged
                acknowledged[revision] = key, value
                assert await store.revision() >= revision
                last = revision

        await asyncio.gather(*(write(f"{i:03}") for i in range(100)))
        for watch in watches:
            events = await take(watch, 400)
            seen = [event.revision for event in events]
            assert seen == sorted(set(seen))
            assert {event.revision: (event.key, event.value) for event in events} == acknowledged
            state: dict[str, Entry] = {}
            for event in events:
                assert event.previous == state.pop(event.key, None)
                if event.value is not None:
                    state[event.key] = Entry(event.key, event.value, event.revision)
            assert not state
            await watch.close()


async def test_compaction_forgets_the_past_and_keeps_the_present(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        kept = await store.create(prefix + "kept", b"kept")
        first = await store.create(prefix + "a", b"1")
        gone = await store.create(prefix + "gone", b"gone")
        await store.delete(prefix + "gone", revision=gone)
        second = await store.update(prefix + "a", b"2", revision=first)
        third = await store.update(prefix + "a", b"3", revision=second)
        await store.compact(second)
        for old in (first, gone):
            with pytest.raises(Compacted) as refused:
                await store.range(prefix, revision=old)
            assert refused.value.revision == old
            assert refused.value.compacted >= second
        with pytest.raises(Compacted):
            await take(store.watch(prefix, after=first), 1)
        expected = [Entry(prefix + "a", b"2", second), Entry(prefix + "kept", b"kept", kept)]
        assert (await store.range(prefix, revision=second)).entries == expected
        watch = store.watch(prefix, after=second)
        assert await take(watch, 1) == [Event(prefix + "a", b"3", third, Entry(prefix + "a", b"2", second))]
        await watch.close()
        assert (await store.range(prefix)).entries == [Entry(prefix + "a", b"3", third), expected[1]]
        assert await store.get(prefix + "kept") == expected[1]
        assert await store.get(prefix + "gone") is None
        await store.compact(second)
        await store.compact(third)
        with pytest.raises(Compacted):
            await store.range(prefix, revision=second)
        assert (await store.range(prefix)).entries == [Entry(prefix + "a", b"3", third), expected[1]]


async def test_compaction_beside_writers_loses_nothing(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        done = False

        async def write(name: str) -> int:
            last = await store.create(prefix + name, b"")
            for _ in range(30):
                last = await store.update(prefix + name, b"x" * 1000, revision=last)
            return last

        async def compact() -> None:
            while not done:
                await store.compact(await store.revision())
                assert len((await store.range(prefix)).entries) <= 20
                await asyncio.sleep(0)

        compactor = asyncio.create_task(compact())
        last = await asyncio.gather(*(write(f"{i:02}") for i in range(20)))
        done = True
        await compactor
        assert [entry.revision for entry in (await store.range(prefix)).entries] == last


async def test_a_key_with_ttl_is_deleted_with_an_event(opened: Opened, prefix: str, clock: Clock) -> None:
    async with opened() as store:
        watch = store.watch(prefix, after=await store.revision())
        kept = await store.create(prefix + "kept", b"", ttl=1)
        kept = await store.update(prefix + "kept", b"", revision=kept)
        first = await store.create(prefix + "a", b"1", ttl=1)
        events = await take(watch, 4)
        assert events[3].key == prefix + "a"
        assert events[3].value is None
        assert events[3].revision > first
        assert events[3].previous == Entry(prefix + "a", b"1", first)
        assert await store.get(prefix + "a") is None
        assert await store.get(prefix + "kept") == Entry(prefix + "kept", b"", kept)
        again = await store.create(prefix + "a", b"2")
        assert await store.get(prefix + "a") == Entry(prefix + "a", b"2", again)
        await watch.close()


async def test_closing_while_writers_wait_acknowledges_or_refuses_each_of_them(
    opened: Opened, kind: str, prefix: str
) -> None:
    async with opened() as store:
        writers = [asyncio.create_task(store.create(f"{prefix}{i:03}", b"x" * 1000)) for i in range(300)]
        await asyncio.sleep(0)
    _, waiting = await asyncio.wait(writers, timeout=30)
    assert not waiting
    acknowledged = {}
    for i, writer in enumerate(writers):
        if isinstance(error := writer.exception(), StoreUnavailable):
            continue
        assert error is None
        acknowledged[f"{prefix}{i:03}"] = writer.result()
    for operation in (store.create(prefix + "late", b""), store.get(prefix + "late"), store.check()):
        with pytest.raises(StoreUnavailable):
            await operation
    if kind == "memory":
        return
    async with opened() as again:
        found = {entry.key: entry.revision for entry in (await again.range(prefix)).entries}
        assert acknowledged.items() <= found.items()


async def test_a_durable_store_comes_back_with_everything(opened: Opened, kind: str, prefix: str) -> None:
    if kind == "memory":
        pytest.skip("forgets by design")
    async with opened() as store:
        start = await store.revision()
        first = await store.create(prefix + "a", b"1")
        second = await store.update(prefix + "a", b"2", revision=first)
        gone = await store.create(prefix + "b", b"")
        last = await store.delete(prefix + "b", revision=gone)
    async with opened() as store:
        assert await store.revision() >= last
        assert (await store.range(prefix)).entries == [Entry(prefix + "a", b"2", second)]
        assert (await store.range(prefix, revision=first)).entries == [Entry(prefix + "a", b"1", first)]
        watch = store.watch(prefix, after=start)
        assert [event.revision for event in await take(watch, 4)] == [first, second, gone, last]
        await watch.close()
        with pytest.raises(KeyExists):
            await store.create(prefix + "a", b"")
        assert await store.create(prefix + "b", b"") > last


async def test_a_cancelled_caller_leaves_the_store_working(opened: Opened, prefix: str) -> None:
    async with opened() as store:
        writers = [asyncio.create_task(store.create(f"{prefix}{i}", b"")) for i in range(10)]
        await asyncio.sleep(0)
        for writer in writers[::2]:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
        revision = await store.create(prefix + "after", b"")
        assert (await store.get(prefix + "after")) == Entry(prefix + "after", b"", revision)
        assert all([await store.get(f"{prefix}{i}") for i in range(1, 10, 2)])


async def test_check_passes_on_a_healthy_store(opened: Opened) -> None:
    async with opened() as store:
        await store.check()
