"""The SQLite store beyond what all stores share: durability, folding, compaction."""

# ruff: noqa: ASYNC220, ASYNC240 - looking at files from a test stalls no other task
from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from store.tools import Clock, take, until

from pybernetes.store import sqlite as module
from pybernetes.store import sqlite_file
from pybernetes.store.base import Compacted, Entry, Event, KeyExists, RevisionMismatch, StoreUnavailable
from pybernetes.store.log import Row
from pybernetes.store.sqlite import SQLiteStore
from pybernetes.store.sqlite_file import SQLiteFile


@contextlib.asynccontextmanager
async def opened(path: str, **options: object) -> AsyncIterator[SQLiteStore]:
    store = SQLiteStore(path, **options)  # type: ignore[arg-type]
    await store.start()
    try:
        yield store
    finally:
        await store.close()


class Disk:
    """An `fdatasync` that a test can hold up or break."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.error: OSError | None = None
        self.waiting = threading.Event()

    def __call__(self, descriptor: int) -> None:
        self.waiting.set()
        assert self.go.wait(20)
        if self.error is not None:
            raise self.error
        os.fdatasync(descriptor)

    def hold(self) -> None:
        self.waiting.clear()
        self.go.clear()


# -- durability --


async def test_nothing_is_acknowledged_or_visible_before_the_sync(path: str) -> None:
    disk = Disk()
    async with opened(path, sync=disk) as store:
        first = await store.create("/a", b"1")
        watch = store.watch("/", after=first)
        event = asyncio.ensure_future(take(watch, 1))
        await asyncio.sleep(0)
        disk.hold()
        writer = asyncio.ensure_future(store.create("/b", b"2"))
        await until(disk.waiting.is_set)
        await asyncio.sleep(0.05)
        assert not writer.done()
        assert not event.done()
        assert await store.get("/b") is None
        assert await store.revision() == first
        assert [entry.key for entry in (await store.range("/")).entries] == ["/a"]
        disk.go.set()
        revision = await writer
        assert (await event)[0].revision == revision
        assert await store.get("/b") == Entry("/b", b"2", revision)


async def test_a_watch_that_begins_while_a_batch_is_being_synced_sees_that_batch(path: str) -> None:
    disk = Disk()
    async with opened(path, sync=disk) as store:
        first = await store.create("/a", b"1")
        disk.hold()
        writer = asyncio.ensure_future(store.update("/a", b"2", revision=first))
        await until(disk.waiting.is_set)
        watch = store.watch("/", after=first)
        events = asyncio.ensure_future(take(watch, 1))
        await until(lambda: not watch._behind)  # type: ignore[attr-defined]
        disk.go.set()
        assert await events == [Event("/a", b"2", await writer, Entry("/a", b"1", first))]


async def test_a_refusal_because_of_a_write_under_way_waits_until_that_write_is_durable(path: str) -> None:
    disk = Disk()
    async with opened(path, sync=disk) as store:
        first = await store.create("/a", b"1")
        disk.hold()
        winner = asyncio.ensure_future(store.update("/a", b"2", revision=first))
        new = asyncio.ensure_future(store.create("/b", b""))
        await until(disk.waiting.is_set)
        losers = [
            asyncio.ensure_future(store.update("/a", b"3", revision=first)),
            asyncio.ensure_future(store.delete("/a", revision=first)),
            asyncio.ensure_future(store.create("/b", b"")),
        ]
        await asyncio.sleep(0.05)
        assert not any(loser.done() for loser in losers)
        disk.go.set()
        second = await winner
        await new
        for loser in losers[:2]:
            with pytest.raises(RevisionMismatch) as refused:
                await loser
            assert refused.value.current == Entry("/a", b"2", second)
        with pytest.raises(KeyExists):
            await losers[2]


async def test_a_failed_sync_is_no_success_and_ends_all_writing_until_a_restart(path: str) -> None:
    disk = Disk()
    async with opened(path, sync=disk) as store:
        first = await store.create("/a", b"1")
        disk.hold()
        disk.error = OSError(errno.EIO, "Input/output error")
        under_way = asyncio.ensure_future(store.update("/a", b"2", revision=first))
        await until(disk.waiting.is_set)
        queued = [asyncio.ensure_future(store.create(f"/{number}", b"")) for number in range(3)]
        behind = asyncio.ensure_future(store.update("/a", b"3", revision=first))
        await asyncio.sleep(0)
        disk.go.set()
        for write in [under_way, behind, *queued]:
            with pytest.raises(StoreUnavailable, match="Input/output error"):
                await write
        disk.error = None
        for operation in (store.create("/c", b""), store.delete("/a", revision=first), store.check()):
            with pytest.raises(StoreUnavailable, match="restart"):
                await operation
        assert await store.get("/a") == Entry("/a", b"1", first)
        assert await store.revision() == first
    async with opened(path) as store:
        await store.check()
        entry = await store.get("/a")
        assert entry is not None
        assert entry.value in (b"1", b"2")
        assert await store.create("/c", b"") > first


async def test_what_was_acknowledged_is_in_the_files_as_they_were_at_its_sync(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are copied inside the sync: what is acknowledged by then must be found in them alone."""
    monkeypatch.setattr(module, "FOLD_AFTER", 100_000)
    folding = threading.Lock()
    fold = SQLiteFile.fold

    def fold_alone(file: SQLiteFile, rows: list[Row]) -> None:
        with folding:  # Two files of SQLite cannot be copied at one moment.
            fold(file, rows)

    monkeypatch.setattr(SQLiteFile, "fold", fold_alone)
    acknowledged: dict[str, int] = {}
    copies: list[tuple[Path, dict[str, int]]] = []
    syncs: list[int] = []

    def sync(descriptor: int) -> None:
        os.fdatasync(descriptor)
        syncs.append(descriptor)
        if len(syncs) % 8 == 0:
            folder = tmp_path / f"copy{len(copies)}"
            folder.mkdir()
            known = dict(acknowledged)
            with folding:
                for suffix in ("-log0", "-log1", "-wal", ""):
                    with contextlib.suppress(FileNotFoundError):
                        shutil.copy(path + suffix, folder / f"store.db{suffix}")
            copies.append((folder, known))

    async with opened(path, sync=sync) as store:

        async def write(name: str) -> None:
            for number in range(60):
                key = f"/{name}/{number:03}"
                acknowledged[key] = await store.create(key, os.urandom(2000))

        await asyncio.gather(*(write(str(number)) for number in range(5)))
    assert len(copies) > 3
    assert (copies[-1][0] / "store.db-log1").exists()
    for folder, known in copies:
        async with opened(str(folder / "store.db")) as store:
            found = {entry.key: entry.revision for entry in (await store.range("/")).entries}
            assert known.items() <= found.items()
            assert await store.revision() >= max(known.values(), default=0)


WRITER = """
import asyncio, os, sys
from pybernetes.store import sqlite, sqlite_file
sqlite.FOLD_AFTER = 100_000

async def main():
    store = sqlite.SQLiteStore(sys.argv[1])
    await store.start()
    os.write(1, b"revision %d\\n" % await store.revision())

    async def write(name):
        number = 0
        while True:
            number += 1
            key = f"/{sys.argv[2]}/{name}/{number}"
            revision = await store.create(key, os.urandom(1500))
            os.write(1, b"create %s %d\\n" % (key.encode(), revision))
            if number % 3 == 0:
                revision = await store.delete(key, revision=revision)
                os.write(1, b"delete %s %d\\n" % (key.encode(), revision))
            if number % 20 == 0:
                await store.compact(revision - 10)

    await asyncio.gather(*(write(name) for name in range(8)))

asyncio.run(main())
"""


async def test_what_was_acknowledged_survives_sigkill(path: str) -> None:
    present: dict[str, int] = {}
    gone: set[str] = set()
    highest = 1
    for round_ in range(12):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path, str(round_)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]
        deadline = time.monotonic() + random.uniform(0.02, 0.25)
        while time.monotonic() < deadline:
            lines.append(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        lines += writer.stdout.readlines()
        writer.wait()
        writer.stdout.close()
        started = int(lines[0].split()[1])
        assert started >= highest, "revisions went back"
        for line in lines[1:]:
            what, key, revision = line.decode().split()
            assert int(revision) > started
            highest = max(highest, int(revision))
            if what == "create":
                present[key] = int(revision)
            else:
                del present[key]
                gone.add(key)
        async with opened(path) as store:
            found = {entry.key: entry.revision for entry in (await store.range("/")).entries}
            # A deletion may have reached the disk without having been acknowledged: at most one for each writer.
            missing = present.keys() - found.keys()
            assert len(missing) <= 8
            assert all(int(key.rsplit("/", 1)[1]) % 3 == 0 for key in missing)
            for key in missing:
                del present[key]
            assert present.items() <= found.items()
            assert not gone & found.keys()
            highest = await store.revision()
            present = found
    assert len(present) > 100


# -- the log and compaction --


async def test_the_log_is_folded_into_the_database_while_writers_go_on(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLD_AFTER", 500_000)
    async with opened(path) as store:

        async def write(name: str) -> None:
            for number in range(100):
                await store.create(f"/{name}/{number}", b"x" * 5000)

        await asyncio.gather(*(write(str(number)) for number in range(20)))
        await until(lambda: store._folder is None)
        assert os.path.getsize(path) > 5_000_000
        assert os.path.getsize(path + "-log0") + os.path.getsize(path + "-log1") < 12_000_000
        assert sum(len(row[5] or b"") for row in store._fresh.values()) < 5_000_000
        assert len((await store.range("/")).entries) == 2000
    assert sorted(os.listdir(os.path.dirname(path))) == ["store.db", "store.db.lock"]


async def test_a_fold_that_failed_half_way_is_taken_up_there(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "STEP", 1000)
    async with opened(path) as store:
        revisions = [await store.create(f"/{number}", b"x" * 400) for number in range(20)]
        step = store._file._insert_step
        steps = 0

        def fail_once(rows: list[Row]) -> None:
            nonlocal steps
            steps += 1
            if steps == 3:
                raise sqlite3.OperationalError("disk I/O error")
            step(rows)

        monkeypatch.setattr(store._file, "_insert_step", fail_once)
        with pytest.raises(StoreUnavailable, match="disk I/O error"):
            await store.compact(revisions[-1])
        assert [entry.revision for entry in (await store.range("/")).entries] == sorted(
            revisions, key=lambda revision: f"/{revisions.index(revision)}"
        )
        await store.compact(revisions[-1])
        assert (store._folded, store._fresh) == (revisions[-1], {})
        assert len((await store.range("/")).entries) == 20


async def test_a_database_that_refused_is_asked_again_when_the_log_has_grown_by_as_much(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLD_AFTER", 5000)
    async with opened(path) as store:
        fold, asked = store._file.fold, 0

        def refuse(rows: list[Row]) -> None:
            nonlocal asked
            asked += 1
            raise StoreUnavailable("no room")

        monkeypatch.setattr(store._file, "fold", refuse)
        for times in (1, 2):
            await store.create(f"/large/{times}", b"x" * 6000)
            await until(lambda times=times: asked == times and store._folder is None)  # type: ignore[misc]
            for number in range(5):
                await store.create(f"/small/{times}/{number}", b"x")
                assert store._folder is None
        monkeypatch.setattr(store._file, "fold", fold)


async def test_compaction_removes_rows_and_an_interrupted_one_is_taken_up(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PURGE_STEP", 5)
    async with opened(path) as store:
        revision = await store.create("/a", b"0")
        for number in range(1, 30):
            revision = await store.update("/a", b"%d" % number, revision=revision)
        gone = await store.create("/gone", b"")
        last = await store.delete("/gone", revision=gone)

        def fail(begin: int, end: int) -> None:
            raise StoreUnavailable("no room")

        purge = store._file.purge
        monkeypatch.setattr(store._file, "purge", lambda begin, end: (purge if end <= 10 else fail)(begin, end))
        with pytest.raises(StoreUnavailable):
            await store.compact(last)
        with pytest.raises(Compacted):
            await store.range("/", revision=revision)
    async with opened(path) as store:
        assert await store.revision() == last
        with pytest.raises(Compacted):
            await store.range("/", revision=revision)
        await store.compact(last)
        assert await store.get("/a") == Entry("/a", b"29", revision)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT key FROM kv").fetchall() == [("/a",)]
    async with opened(path) as store:
        assert await store.revision() == last, "the last revision was that of a deletion, now forgotten"
        assert await store.create("/b", b"") == last + 1


async def test_a_large_range_at_an_old_revision_while_writers_go_on(path: str) -> None:
    async with opened(path) as store:
        made = await asyncio.gather(*(store.create(f"/{number:05}", b"old") for number in range(2500)))
        at = await store.revision()
        changes = asyncio.gather(
            *(store.update(f"/{number:05}", b"new", revision=made[number]) for number in range(2500))
        )
        page = await store.range("/", revision=at)
        assert [entry.value for entry in page.entries] == [b"old"] * 2500
        await changes
        page = await store.range("/", revision=at, limit=1200)
        assert ({entry.value for entry in page.entries}, page.remaining) == ({b"old"}, 1300)
        page = await store.range("/", revision=at, limit=2000, after=page.entries[-1].key)
        assert (len(page.entries), page.remaining) == (1300, 0)


# -- time to live --


async def test_a_time_to_live_goes_on_over_a_restart(path: str, clock: Clock) -> None:
    async with opened(path, clock=clock) as store:
        await store.create("/short", b"", ttl=100)
        await store.create("/long", b"", ttl=10_000)
        kept = await store.create("/kept", b"", ttl=100)
        last = await store.update("/kept", b"", revision=kept)
    clock.offset += 200
    async with opened(path, clock=clock) as store:
        events = await take(store.watch("/", after=last), 1)
        assert (events[0].key, events[0].value) == ("/short", None)
        assert [entry.key for entry in (await store.range("/")).entries] == ["/kept", "/long"]


async def test_an_expiry_that_the_disk_refused_is_tried_again(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_EXPIRY", 0.05)
    async with opened(path) as store:
        await store.create("/a", b"", ttl=1)
        append = store._file.append
        refusals = 0

        def refuse(rows: list[object]) -> None:
            nonlocal refusals
            refusals += 1
            raise StoreUnavailable("full")

        monkeypatch.setattr(store._file, "append", refuse)
        await until(lambda: refusals > 1)
        monkeypatch.setattr(store._file, "append", append)
        await until(lambda: "/a" not in store._index)


async def test_values_that_are_too_large_for_one_result_are_read_in_parts(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's limit of 10^9 bytes for a result is lowered here to 1 MB."""
    monkeypatch.setattr(sqlite_file, "CHUNK_SIZE", 500_000)
    values = {f"/registry/p/{number:03d}": bytes([65 + number % 26]) * (20_000 + number) for number in range(200)}
    values["/registry/p/large"] = b"L" * 900_000
    store = SQLiteStore(path)
    await store.start()
    await asyncio.gather(*(store.create(key, value) for key, value in values.items()))
    await store.close()
    store = SQLiteStore(path)
    await store.start()
    store._file._reader.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
    page = await store.range("/registry/")
    assert {entry.key: entry.value for entry in page.entries} == values
    await store.close()
