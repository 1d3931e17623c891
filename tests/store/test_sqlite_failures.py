"""The SQLite store on disks that are full or refuse, and on files that are damaged, foreign, locked or old."""

# ruff: noqa: ASYNC240 - looking at files from a test stalls no other task
from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from store import tools
from store.test_sqlite import opened
from store.tools import take, until

from pybernetes.store import sqlite as module
from pybernetes.store.base import Entry, StoreUnavailable
from pybernetes.store.sqlite import SQLiteStore
from pybernetes.store.sqlite_file import end_of


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with tools.small_disk(tmp_path / "small", 24) as folder:
        yield folder


FULL = "full|No space left on device"


async def has_room(store: SQLiteStore) -> bool:
    try:
        await store.check()
    except StoreUnavailable:
        return False
    return True


async def fill_and_free(store: SQLiteStore, free: Callable[[], None]) -> None:
    """Write until the disk refuses, and show that this is reported, undone, and over when there is room again."""
    known = {}
    refused = []
    for number in range(4000):
        key = f"/{number:05}"
        try:
            known[key] = await store.create(key, b"x" * 10_000)
        except StoreUnavailable as error:
            refused.append((key, str(error)))
            if len(refused) == 3:
                break
    assert re.search(FULL, refused[0][1])
    with pytest.raises(StoreUnavailable, match=FULL):
        await store.check()
    assert {entry.key: entry.revision for entry in (await store.range("/")).entries} == known
    free()
    for _ in range(3000):  # a copy of the log into the database may take the room first, and give it back
        if await has_room(store):
            break
        await asyncio.sleep(0.01)
    await store.check()
    for key, _ in refused:
        known[key] = await store.create(key, b"again")
    assert {entry.key: entry.revision for entry in (await store.range("/")).entries} == known
    assert sorted(known.values())[-1] == await store.revision()


async def test_a_full_disk_refuses_and_recovers(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(8 << 20))
    async with opened(str(small_disk / "store.db")) as store:
        await fill_and_free(store, ballast.unlink)
        revision = await store.revision()
        count = len((await store.range("/")).entries)
    async with opened(str(small_disk / "store.db")) as store:
        assert await store.revision() == revision
        assert len((await store.range("/")).entries) == count


async def test_a_full_database_refuses_and_recovers(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FOLD_AFTER", 500_000)
    monkeypatch.setattr(module, "LOG_LIMIT", 5_000_000)
    async with opened(path) as store:

        def limit(pages: int) -> None:
            for connection in store._file._connections:
                connection.execute(f"PRAGMA max_page_count={pages}")

        limit(200)
        await fill_and_free(store, lambda: limit(100_000))


async def test_a_failed_batch_undoes_only_itself(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path) as store:
        first = await store.create("/a", b"1")
        store._patience = None  # so that two are a batch, whatever the time
        append = store._file.append

        def refuse(rows: list[object]) -> None:
            monkeypatch.setattr(store._file, "append", append)
            raise StoreUnavailable("full")

        monkeypatch.setattr(store._file, "append", refuse)
        watch = store.watch("/", after=first)
        outcomes = await asyncio.gather(
            store.update("/a", b"2", revision=first), store.create("/b", b""), return_exceptions=True
        )
        assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
        assert await store.get("/a") == Entry("/a", b"1", first)
        second = await store.update("/a", b"3", revision=first)
        third = await store.create("/b", b"")
        assert [event.revision for event in await take(watch, 2)] == [second, third]


async def test_a_file_in_use_is_refused_by_name(path: str) -> None:
    async with opened(path):
        second = SQLiteStore(path)
        with pytest.raises(StoreUnavailable, match=r"store\.db is in use by another process"):
            await second.start()
        await second.close()
    async with opened(path) as store:
        await store.check()


async def test_a_database_that_another_program_locks_takes_what_was_written_meanwhile_later(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLD_AFTER", 100)
    async with opened(path) as store:
        first = await store.create("/a", b"1" * 100)
        await until(lambda: store._folded == first)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            revisions = [await store.create(f"/{number}", b"2" * 100) for number in range(3)]
            await until(lambda: store._put_off is not None)
            with pytest.raises(StoreUnavailable, match=r"store\.db is locked by another process"):
                await store.compact(revisions[-1])
            other.execute("ROLLBACK")
        await store.compact(revisions[-1])
        assert store._folded == revisions[-1]
        assert len((await store.range("/")).entries) == 4


async def test_a_database_that_another_program_has_locked_is_refused_by_name(path: str) -> None:
    async with opened(path):
        pass
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        store = SQLiteStore(path)
        with pytest.raises(StoreUnavailable, match=r"store\.db is locked by another process"):
            await store.start()
        await store.close()


async def test_what_was_not_folded_at_the_end_is_there_at_the_next_start(path: str) -> None:
    store = SQLiteStore(path)
    await store.start()
    first = await store.create("/a", b"1")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await store.close()
    async with opened(path) as store:
        assert await store.get("/a") == Entry("/a", b"1", first)


@pytest.mark.parametrize("damage", ["garbage", "header", "pages", "short", "no text", "foreign", "newer"])
async def test_a_damaged_or_foreign_file_is_refused_and_left_as_it_was(path: str, damage: str) -> None:
    async with opened(path) as store:
        for number in range(300):
            await store.create(f"/registry/pods/default/{number}", b"x" * 500)
    content = bytearray(Path(path).read_bytes())
    match damage:
        case "garbage":
            content[:] = os.urandom(len(content))
        case "header":
            content[:16] = bytes(16)
        case "pages":
            content[4096:] = os.urandom(len(content) - 4096)
        case "short":
            del content[len(content) // 3 :]
        case "no text":
            content[:] = content.replace(b"/registry/pods/default/299", b"/registry/pods/default/\xea99")
        case "foreign" | "newer":
            with contextlib.closing(sqlite3.connect(path)) as connection:
                name = "application_id" if damage == "foreign" else "user_version"
                connection.execute(f"PRAGMA {name}=77")
                connection.commit()
            content[:] = Path(path).read_bytes()
    Path(path).write_bytes(content)
    store = SQLiteStore(path)
    with pytest.raises(StoreUnavailable, match=r"store\.db"):
        await store.start()
    await store.close()
    assert Path(path).read_bytes() == bytes(content)


@pytest.mark.parametrize("layout", [1, 2])
async def test_a_file_of_an_older_layout_is_read_and_brought_up_to_date(path: str, layout: int) -> None:
    async with opened(path) as store:
        first = await store.create("/a", b"1")
        await store.update("/a", b"2", revision=first)
        await store.create("/b", b"3")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM meta WHERE name IN ('folded', 'identity')")
        connection.execute("INSERT INTO meta VALUES ('touched', 5)")
        if layout == 1:
            connection.execute("CREATE INDEX kv_key ON kv (key, revision, deleted, expires)")
        connection.execute(f"PRAGMA user_version={layout}")
        connection.commit()
    for _ in range(2):
        async with opened(path) as store:
            assert await store.revision() == first + 2
            assert [(entry.key, entry.value) for entry in (await store.range("/")).entries] == [
                ("/a", b"2"),
                ("/b", b"3"),
            ]
    async with opened(path) as store:
        assert await store.create("/c", b"") == first + 3
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql <> ''").fetchall() == []
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        assert dict(connection.execute("SELECT name, value FROM meta"))["folded"] == first + 3


async def test_a_collection_taken_page_by_page_is_that_of_its_first_page(path: str) -> None:
    async with opened(path) as store:
        revisions = {f"/k/{number:02}": await store.create(f"/k/{number:02}", b"old") for number in range(20)}
        await store.create("/other", b"x")
        page = await store.range("/k/", limit=5)
        seen, at, after = page.entries, page.revision, page.entries[-1].key
        assert page.remaining == 15
        for number in range(0, 20, 2):
            await store.delete(f"/k/{number:02}", revision=revisions[f"/k/{number:02}"])
            await store.create(f"/k/{number:02}", b"new")
        await store.update("/k/19", b"new", revision=revisions["/k/19"])
        await store.create("/k/99", b"new")
        while page.remaining:
            page = await store.range("/k/", after=after, limit=5, revision=at)
            seen += page.entries
            after = page.entries[-1].key
        assert {entry.key: entry.revision for entry in seen} == revisions
        assert {entry.value for entry in seen} == {b"old"}
        store._views.clear()  # as for a client that comes back when the view was dropped
        page = await store.range("/k/", after="/k/04", limit=5, revision=at)
        assert page.entries == seen[5:10]


async def test_a_refused_file_with_a_log_beside_it_is_left_as_it_was(path: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with opened(path) as store:
        await store.create("/a", b"x" * 500)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version=77")
        for suffix in ("", "-wal", "-log0"):
            shutil.copy(path + suffix, str(copy) + suffix)
    files = [Path(f"{copy}{suffix}").read_bytes() for suffix in ("", "-wal", "-log0")]
    store = SQLiteStore(str(copy))
    with pytest.raises(StoreUnavailable, match=r"copy\.db has layout 77"):
        await store.start()
    await store.close()
    assert [Path(f"{copy}{suffix}").read_bytes() for suffix in ("", "-wal", "-log0")] == files


async def test_a_folder_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in ("missing", "file"):
        store = SQLiteStore(str(tmp_path / folder / "store.db"))
        with pytest.raises(StoreUnavailable, match=rf"{folder}/store\.db"):
            await store.start()
        await store.close()
    (tmp_path / "closed").mkdir(mode=0o500)
    if not os.access(tmp_path / "closed", os.W_OK):
        with pytest.raises(StoreUnavailable, match="Permission denied"):
            await SQLiteStore(str(tmp_path / "closed" / "store.db")).start()


async def test_the_files_are_for_their_owner_only(path: str) -> None:
    async with opened(path) as store:
        await store.create("/a", b"")
        for suffix in ("", "-wal", "-shm", "-log0", ".lock"):
            assert os.stat(path + suffix).st_mode & 0o077 == 0


@pytest.mark.parametrize("leftover", ["empty", "no tables"])
async def test_a_file_whose_making_was_interrupted_is_made(path: str, leftover: str) -> None:
    Path(path).touch()
    if leftover == "no tables":
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    async with opened(path) as store:
        assert await store.create("/a", b"") == 2


async def test_a_path_with_characters_of_urls_works(tmp_path: Path) -> None:
    path = str(tmp_path / "a ?#%41.db")
    async with opened(path) as store:
        await store.create("/a", b"")
    assert os.path.exists(path)


@pytest.mark.parametrize(
    ("prefix", "end"),
    [("", b""), ("/a", "/b"), ("a\U0010ffff", "b"), ("\U0010ffff", b""), ("\ud7ff", "\ue000")],
)
def test_the_end_of_a_prefix(prefix: str, end: str | bytes) -> None:
    assert end_of(prefix) == end
