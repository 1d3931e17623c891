"""The log in front of the database, read again after every way in which it can have been broken off."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybernetes.store import log as module
from pybernetes.store.base import StoreUnavailable
from pybernetes.store.log import Damaged, Log, Row
from pybernetes.store.sqlite import SQLiteStore

IDENTITY = b"0123456789abcdef"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILL", 4096)


def row(revision: int) -> Row:
    return (revision, f"/key/{revision}", 0, False, None, b"value %d" % revision * (revision % 3 + 1))


@pytest.fixture
def log(path: str) -> Iterator[Log]:
    log = begun(path)
    yield log
    log.close(remove=False)


def begun(path: str, folded: int = 1, identity: bytes = IDENTITY) -> Log:
    log = Log(path, identity)
    log.read(folded)
    log.open()
    return log


def found(path: str, folded: int = 1, identity: bytes = IDENTITY) -> list[int]:
    return [each[0] for each in Log(path, identity).read(folded)]


def test_what_was_appended_is_found_behind_what_the_database_holds(path: str, log: Log) -> None:
    log.append([row(2), row(3)])
    log.append([(4, "/key/é", 3, True, 1.5, None)])
    assert Log(path, IDENTITY).read(1) == [row(2), row(3), (4, "/key/é", 3, True, 1.5, None)]
    assert found(path, folded=2) == [3, 4], "the database may hold a part of a record"
    assert found(path, folded=3) == [4]
    assert found(path, folded=4) == []


def test_a_record_that_is_torn_anywhere_is_not_read_and_those_before_it_are(path: str, log: Log) -> None:
    log.append([row(2), row(3)])
    before = log.size
    log.append([row(4)])
    whole = Path(path + "-log0").read_bytes()
    for torn in range(before, log.size):
        Path(path + "-log0").write_bytes(whole[:torn] + bytes(len(whole) - torn))
        assert found(path) == [2, 3], torn
        Path(path + "-log0").write_bytes(whole[:torn])
        assert found(path) == [2, 3], torn
        Path(path + "-log0").write_bytes(whole[:torn] + bytes([whole[torn] ^ 0x40]) + whole[torn + 1 :])
        assert found(path) == [2, 3], torn
    Path(path + "-log0").write_bytes(whole)
    assert found(path) == [2, 3, 4]


def test_a_record_for_which_there_was_no_room_is_refused_and_the_next_takes_its_place(
    path: str, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append([row(2)])
    with monkeypatch.context() as full:
        full.setattr(os, "pwritev", lambda file, parts, offset: os.pwrite(file, b"".join(parts)[:20], offset))
        with pytest.raises(OSError, match="No space left"):
            log.append([row(3)])
    log.append([row(4)])
    assert found(path) == [2, 4]


def test_a_disk_that_is_almost_full_is_not_filled_with_zeros(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, offset: write(file, data[:100], offset))
    log = begun(path)
    assert os.path.getsize(path + "-log0") == 0
    log.append([row(2)])
    assert found(path) == [2]
    log.close(remove=False)


def test_two_files_are_written_in_turn_and_begin_anew_when_the_database_has_them(path: str, log: Log) -> None:
    log.append([row(2)])
    log.lay_out()
    log.turn()
    log.append([row(3)])
    log.turn()  # The database does not have the first yet.
    log.append([row(4)])
    assert found(path) == [2, 3, 4]
    log.folded()
    log.turn()
    log.append([row(5)])
    assert found(path, folded=2) == [3, 4, 5], "what the first held is overwritten"
    log.folded()
    assert found(path, folded=4) == [5]


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize(("folded", "left"), [(1, [2, 3]), (2, [3])])
def test_a_log_that_was_broken_off_goes_on_behind_its_last_record(
    path: str, log: Log, turns: int, folded: int, left: list[int]
) -> None:
    log.append([row(2)])
    if turns:
        log.lay_out()
        log.turn()
    log.append([row(3)])
    log.append([row(4)])
    log.close(remove=False)
    torn = Path(f"{path}-log{turns}")
    torn.write_bytes(torn.read_bytes().replace(b"value 4", b"value ?"))
    again = begun(path, folded=folded)
    again.append([row(5)])
    assert found(path, folded=folded) == [*left, 5]
    again.lay_out()
    again.turn()
    again.append([row(6)])
    assert found(path, folded=folded) == [*left, 5, 6], "what the database does not have is not overwritten"
    again.close(remove=False)


def test_what_an_earlier_turn_left_behind_the_last_record_is_not_read(path: str, log: Log) -> None:
    for revision in (3, 6, 9):
        log.append([row(revision)])  # of one length
    log.close(remove=False)
    again = begun(path, folded=9)
    again.append([row(12)])
    assert found(path, folded=9) == [12]
    again.append([row(15)])
    assert found(path, folded=9) == [12, 15]
    again.close(remove=False)


def test_a_record_that_is_missing_in_the_middle_is_reported(path: str, log: Log) -> None:
    log.append([row(2)])
    log.append([row(3)])
    log.lay_out()
    log.turn()
    log.append([row(4)])
    content = bytearray(Path(path + "-log0").read_bytes())
    content[log.size // 2] ^= 1
    Path(path + "-log0").write_bytes(content)
    with pytest.raises(Damaged, match="behind revision 3 and not 2"):
        found(path)
    assert found(path, folded=3) == [4]
    os.unlink(path + "-log0")
    with pytest.raises(Damaged, match="behind revision 3 and not 1"):
        found(path)


def test_the_log_of_another_database_is_not_read(path: str, log: Log) -> None:
    log.append([row(2)])
    assert found(path, identity=b"another") == []


def test_a_file_that_became_long_is_cut_when_it_begins_anew(
    path: str, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMIT", 10_000)
    log.append([(2, "/large", 0, False, None, bytes(20_000))])
    log.lay_out()
    log.turn()
    log.lay_out()
    assert os.path.getsize(path + "-log0") > 20_000, "the database does not have it yet"
    log.folded()
    log.lay_out()
    assert os.path.getsize(path + "-log0") == 4096


async def test_a_store_whose_log_has_lost_something_is_refused_by_name(path: str, tmp_path: Path) -> None:
    store = SQLiteStore(path)
    await store.start()
    await store.create("/a", b"1")
    shutil.copytree(tmp_path, tmp_path / "copy")
    await store.close()
    damaged = tmp_path / "copy" / "store.db"
    log = Log(str(damaged), _identity(damaged))
    log.open()
    log._last = 7
    log.append([row(8)])
    log.close(remove=False)
    again = SQLiteStore(str(damaged))
    with pytest.raises(StoreUnavailable, match=r"store\.db is damaged: .* behind revision 7 and not 1"):
        await again.start()
    await again.close()


async def test_a_log_that_was_folded_and_left_brings_nothing_back(path: str, tmp_path: Path) -> None:
    """As after a power failure behind the fold and before the log began anew."""
    store = SQLiteStore(path)
    await store.start()
    first = await store.create("/a", b"1")
    last = await store.delete("/a", revision=first)
    shutil.copy(path + "-log0", tmp_path / "kept")
    await store.compact(last)
    await store.close()
    shutil.copy(tmp_path / "kept", path + "-log0")
    store = SQLiteStore(path)
    await store.start()
    assert (await store.range("/")).entries == []
    assert await store.revision() == last
    assert await store.create("/a", b"2") == last + 1
    await store.close()


def _identity(path: Path) -> bytes:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        value = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()[0]
    return bytes(value)
