"""Real programs on a mount: git, SQLite with and without its log."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from objectfs.databases import Database


def test_git_commits_clones_and_checks(mounts, clean, tmp_path):
    mounts.format()
    one = mounts.mount("one")
    settings = ["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "gc.auto=0"]

    def git(*words: str, cwd: Path = one) -> str:
        return subprocess.run(["git", *settings, *words], cwd=cwd, check=True, capture_output=True, text=True).stdout

    git("init", "-q", "work")
    work = one / "work"
    for number in range(3):
        for name in range(20):
            (work / f"file-{name}").write_text(f"{number} {name}\n" * 50)
        git("add", "-A", cwd=work)
        git("commit", "-q", "-m", f"commit {number}", cwd=work)
    git("clone", "-q", "work", "copy")
    git("repack", "-q", "-a", "-d", cwd=work)
    git("fsck", "--strict", cwd=work)
    assert git("log", "--format=%s", cwd=one / "copy").split("\n")[:3] == ["commit 2", "commit 1", "commit 0"]
    assert git("status", "--porcelain", cwd=work) == ""
    subprocess.run(["git", "clone", "-q", work, tmp_path / "outside"], check=True, capture_output=True)
    assert (tmp_path / "outside" / "file-7").read_bytes() == (work / "file-7").read_bytes()
    mounts.umount(one)
    clean()


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_sqlite_database_is_whole_after_many_writers_and_a_killed_server(mounts, clean, mode):
    mounts.format("--block-size", "64")
    one = mounts.mount("one")
    path = one / "data.db"
    with closing(sqlite3.connect(path)) as database:
        assert database.execute(f"PRAGMA journal_mode = {mode}").fetchone() == (mode,)
        database.execute("CREATE TABLE t (writer INTEGER, n INTEGER, text TEXT)")
        database.commit()
    failures: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            with closing(sqlite3.connect(path, timeout=60)) as database:
                for number in range(15):
                    with database:
                        database.execute("INSERT INTO t VALUES (?, ?, ?)", (writer, number, "x" * 500))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(each,)) for each in range(2)]
    for thread in threads:
        thread.start()
    os.kill(mounts.server(one), 9)
    for thread in threads:
        thread.join()
    assert failures == []
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*), count(DISTINCT writer * 100 + n) FROM t").fetchone() == (30, 30)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    mounts.umount(one)
    clean()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users reach, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="objectfs-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.soak
def test_postgres_keeps_every_commit_while_it_and_the_server_of_its_files_are_killed(open_folder, mounts, clean):
    mounts.folder, mounts.meta = open_folder, f"sqlite://{open_folder}/meta.db"
    mounts.format()
    one = mounts.mount("one")
    (one / "postgres").mkdir()
    database = Database("postgres", one / "postgres", fsync="on")
    try:
        database.start()
        url = database.fresh().replace("postgres://", "postgresql://")
        done = 0
        for _ in range(3):
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS t (n int PRIMARY KEY, text text)")
                for _ in range(40):
                    if done % 40 == 20:
                        os.kill(mounts.server(one), 9)
                    connection.execute("INSERT INTO t VALUES (%s, %s)", (done, "x" * 1000))
                    done += 1
            database.kill()
            database.start()
            with psycopg.connect(url) as connection:
                found = connection.execute("SELECT count(*), coalesce(max(n), 0) FROM t").fetchone()
            assert found == (done, done - 1)
    finally:
        database.stop()
    mounts.umount(one)
    clean()
