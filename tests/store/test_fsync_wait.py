"""The loop waits a moment for lone writes; for many, and for those to a slow disk, it does not."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest
from store.test_sqlite import Disk, opened

from pybernetes.store import fsync_wait as module
from pybernetes.store import sqlite
from pybernetes.store.base import StoreUnavailable
from pybernetes.store.fsync_wait import APART, PUT_OFF, RARE, Patience
from pybernetes.store.sqlite import SQLiteStore

QUICK, SLOW = 0.0001, 0.01


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = 100.0
        monkeypatch.setattr(module, "monotonic", lambda: self.time)

    def lone_write(self, patience: Patience, seconds: float) -> bool:
        """Whether it was waited for."""
        self.time += 2 * APART
        waits = patience.has()
        self.time += seconds
        if waits:
            patience.waited(in_time=seconds < SLOW)
        patience.acknowledged()
        return waits


def test_a_write_right_behind_another_is_not_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, patience = Clock(monkeypatch), Patience(int)
    assert clock.lone_write(patience, QUICK)
    clock.time += APART / 2
    assert not patience.has()
    clock.time += APART
    assert patience.has()


def test_a_write_is_not_alone_while_others_write(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, patience = Clock(monkeypatch), Patience(lambda: 5)
    assert clock.lone_write(patience, QUICK)
    assert clock.lone_write(patience, QUICK)
    assert not clock.lone_write(patience, QUICK)
    clock.time += RARE  # who else is under way does not write
    assert clock.lone_write(patience, QUICK)


def test_one_who_writes_one_after_another_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, patience = Clock(monkeypatch), Patience(lambda: 1)
    assert all(clock.lone_write(patience, QUICK) for _ in range(10))


def test_a_server_without_rest_does_not_wait_for_one_write_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, patience = Clock(monkeypatch), Patience(lambda: 1)
    monkeypatch.setattr(module, "thread_time", lambda: clock.time)
    assert clock.lone_write(patience, QUICK)
    assert clock.lone_write(patience, QUICK)
    assert not clock.lone_write(patience, QUICK)
    clock.time += RARE  # a flood of reads is no reason
    assert clock.lone_write(patience, QUICK)


def test_one_client_who_keeps_the_server_at_work_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, patience = Clock(monkeypatch), Patience(lambda: 1)
    monkeypatch.setattr(module, "thread_time", lambda: 0.9 * clock.time)
    assert all(clock.lone_write(patience, QUICK) for _ in range(10))


def test_a_slow_disk_is_waited_for_now_and_then_only(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, patience = Clock(monkeypatch), Patience(int)
    assert all(clock.lone_write(patience, QUICK) for _ in range(100))
    waited = [clock.lone_write(patience, SLOW) for _ in range(20 * PUT_OFF)]
    assert sum(waited) < 30  # twice as many are not waited for each time
    waited = [clock.lone_write(patience, QUICK) for _ in range(2 * PUT_OFF)]
    assert all(waited[-10:])  # it is quick again


async def test_a_lone_write_waits_for_no_other_task(tmp_path: Path) -> None:
    async with opened(str(tmp_path / "store.db")) as store:
        rounds = []
        asyncio.get_running_loop().call_soon(rounds.append, 1)
        revision = await store.create("/a", b"1")
        assert not rounds
        assert (await store.get("/a")).revision == revision  # type: ignore[union-attr]


def noted(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of batches from now on."""
    batches: list[int] = []
    append = store._file.append
    monkeypatch.setattr(store._file, "append", lambda rows: (batches.append(len(rows)), append(rows)))
    return batches


async def test_a_lone_write_waits_for_who_has_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(str(tmp_path / "store.db")) as store:
        batches = noted(store, monkeypatch)
        async with store._writer:  # as a compaction does, whose thread writes to the file
            write = asyncio.ensure_future(store.create("/a", b""))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not batches
        await write
        assert batches == [1]


async def test_writes_at_once_gather(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)  # which stands still: each comes right behind the others
    async with opened(str(tmp_path / "store.db")) as store:
        await store.create("/first", b"")
        batches = noted(store, monkeypatch)
        await asyncio.gather(*(store.create(f"/{number}", b"") for number in range(100)))
        assert batches == [100]


async def test_writes_that_come_one_after_another_gather_while_more_are_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)
    async with opened(str(tmp_path / "store.db"), writing=lambda: 20) as store:
        for number in range(3):
            await store.create(f"/before/{number}", b"")
        monkeypatch.setattr(sqlite, "GATHER", 30.0)
        batches = noted(store, monkeypatch)
        writes = []
        for number in range(10):
            assert not batches
            writes.append(asyncio.ensure_future(store.create(f"/{number}", b"")))
            for _ in range(5):
                await asyncio.sleep(0)  # rounds of the loop, in each of which one begins
        await asyncio.wait_for(asyncio.gather(*writes), 30)
        assert batches == [10]


async def test_a_write_does_not_wait_long_for_those_who_do_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)
    async with opened(str(tmp_path / "store.db"), writing=lambda: 20) as store:
        for number in range(5):
            await asyncio.wait_for(store.create(f"/{number}", b""), 30)


async def test_a_lone_write_whose_sync_fails_is_no_success_and_ends_all_writing(tmp_path: Path) -> None:
    disk = Disk()
    async with opened(str(tmp_path / "store.db"), sync=disk) as store:
        first = await store.create("/a", b"1")
        await asyncio.sleep(2 * APART)
        disk.error = OSError(errno.EIO, "Input/output error")
        with pytest.raises(StoreUnavailable, match="Input/output error"):
            await store.update("/a", b"2", revision=first)
        for operation in (store.create("/c", b""), store.delete("/a", revision=first), store.check()):
            with pytest.raises(StoreUnavailable, match="restart"):
                await operation
        assert (await store.get("/a")).value == b"1"  # type: ignore[union-attr]
        assert await store.revision() == first


async def test_a_lone_write_that_the_disk_refuses_undoes_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(str(tmp_path / "store.db")) as store:
        append = store._file.append

        def full(_: object) -> None:
            raise StoreUnavailable("disk full")

        monkeypatch.setattr(store._file, "append", full)
        with pytest.raises(StoreUnavailable, match="disk full"):
            await store.create("/a", b"1")
        monkeypatch.setattr(store._file, "append", append)
        assert await store.get("/a") is None
        await store.create("/a", b"2")
        assert (await store.get("/a")).value == b"2"  # type: ignore[union-attr]
