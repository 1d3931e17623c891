"""Syncing a file in a thread, for which the event loop waits a moment at most."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from store.test_sqlite import Disk, opened

from pybernetes.store.syncing import Syncer

LONG = 20.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Disk, int]]:
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield Disk(), file
    os.close(file)


async def test_syncs_one_after_another_are_done_beside_the_loop(disk: tuple[Disk, int]) -> None:
    slow, file = disk
    syncer = Syncer(lambda: slow(file))
    for _ in range(20):
        slow.hold()
        done = syncer.sync()
        await asyncio.to_thread(slow.waiting.wait, LONG)
        assert not done.done()
        slow.go.set()
        await asyncio.wait_for(done, LONG)
    syncer.stop()


async def test_the_loop_waits_for_a_quick_disk(disk: tuple[Disk, int]) -> None:
    quick, file = disk
    syncer = Syncer(lambda: quick(file))
    for _ in range(50):
        assert syncer.sync(LONG).done()
    syncer.stop()


async def test_the_loop_does_not_wait_for_a_slow_disk(disk: tuple[Disk, int]) -> None:
    slow, file = disk
    syncer = Syncer(lambda: slow(file))
    slow.hold()
    done = syncer.sync(0.001)
    assert not done.done()
    await asyncio.sleep(0)  # the loop goes on
    slow.go.set()
    await asyncio.wait_for(done, LONG)
    syncer.stop()


@pytest.mark.parametrize("within", [0.0, LONG])
async def test_a_sync_that_fails_says_why(disk: tuple[Disk, int], within: float) -> None:
    broken, file = disk
    broken.error = OSError("Input/output error")
    syncer = Syncer(lambda: broken(file))
    with pytest.raises(OSError, match="Input/output error"):
        await asyncio.wait_for(syncer.sync(within), LONG)
    broken.error = None
    await asyncio.wait_for(syncer.sync(within), LONG)
    syncer.stop()


async def test_no_outcome_is_lost_whenever_the_loop_stops_waiting() -> None:
    syncer = Syncer(lambda: None)
    for number in range(3000):
        await asyncio.wait_for(syncer.sync(number % 30 * 1e-6 + 1e-9), LONG)
    syncer.stop()


async def test_a_disk_that_needs_a_second_does_not_hold_up_the_loop(path: str) -> None:
    async with opened(path) as store:
        await store.create("/quick", b"")
        going, slow = threading.Event(), threading.Event()

        def sync(descriptor: int) -> None:
            going.set()
            slow.wait(LONG)
            os.fdatasync(descriptor)

        store._file._sync = sync
        await asyncio.sleep(0.001)
        began = time.monotonic()
        writing = asyncio.ensure_future(store.create("/slow", b""))
        await asyncio.to_thread(going.wait, LONG)
        assert not writing.done()
        assert await store.get("/quick") is not None
        assert await store.get("/slow") is None, "it is not durable"
        more = [asyncio.ensure_future(store.create(f"/more/{number}", b"")) for number in range(10)]
        await asyncio.sleep(0)
        assert time.monotonic() - began < LONG / 2, "the loop went on"
        slow.set()
        await asyncio.wait_for(asyncio.gather(writing, *more), LONG)
        assert len((await store.range("/")).entries) == 12


async def test_what_an_earlier_process_wrote_and_did_not_sync_is_synced_before_it_is_shown(path: str) -> None:
    unsynced = Disk()
    async with opened(path, sync=unsynced) as store:
        await store.create("/a", b"1")
        unsynced.error = OSError("died before its sync")
        with pytest.raises(Exception, match="died before its sync"):
            await store.create("/b", b"2")
    synced: list[int] = []

    def sync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        os.fdatasync(descriptor)

    logs = {file.stat().st_ino for file in Path(path).parent.glob("*-log?")}
    async with opened(path, sync=sync) as store:
        assert set(synced) & logs
        assert [entry.key for entry in (await store.range("/")).entries] == ["/a", "/b"]
