"""Metadata in a SQLite file: one table of keys and values in WAL mode.

A commit is written to the log without waiting for the disk, so it survives a killed process; `sync` (fsync of a file)
waits for the disk. Several mounts on one machine may share the file; SQLite's own lock keeps writers apart.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pybernetes.objectfs.meta.engine import Result, Transaction, Unavailable
from pybernetes.objectfs.meta.optimistic import prefix_end

# How long a writer waits for another process's transaction.
BUSY_SECONDS = 30.0


class _Transaction:
    stripe = b""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute

    def get(self, key: bytes) -> bytes | None:
        row = self._execute("SELECT v FROM kv WHERE k = ?", (key,)).fetchone()
        return row[0] if row else None

    def get_many(self, keys: Iterable[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def put(self, key: bytes, value: bytes) -> None:
        self._execute("INSERT INTO kv VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v", (key, value))

    def delete(self, key: bytes) -> None:
        self._execute("DELETE FROM kv WHERE k = ?", (key,))

    def scan(self, prefix: bytes, limit: int = 0) -> list[tuple[bytes, bytes]]:
        return self._execute(
            "SELECT k, v FROM kv WHERE k >= ? AND k < ifnull(?, x'ffffffffff') ORDER BY k LIMIT ?",
            (prefix, prefix_end(prefix), limit or -1),
        ).fetchall()

    def glance(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        return self.scan(prefix)


class SQLiteEngine:
    """The embedded engine."""

    local = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False, cached_statements=64
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA cache_size = -32768")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            raise Unavailable(5, f"cannot open the metadata database {path}: {error}") from error
        self._log = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        self._transaction = _Transaction(self._connection)

    def transact(self, function: Callable[[Transaction], Result]) -> Result:
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    result = function(self._transaction)
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise Unavailable(5, f"metadata database {self._path}: {error}") from error
        return result

    def read(self, function: Callable[[Transaction], Result]) -> Result:
        """A transaction that only reads: it waits for no writer of another process."""
        with self._lock:
            try:
                try:
                    return function(self._transaction)
                except OSError:
                    # Between two looks another process may have renamed or removed: only one moment's answer counts.
                    self._connection.execute("BEGIN")
                    try:
                        return function(self._transaction)
                    finally:
                        self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise Unavailable(5, f"metadata database {self._path}: {error}") from error

    def scan(self, prefix: bytes, after: bytes = b"", limit: int = 1000) -> Iterator[tuple[bytes, bytes]]:
        start, end = max(prefix, after + b"\0" if after else b""), prefix_end(prefix)
        while True:
            with self._lock:
                rows = self._connection.execute(
                    "SELECT k, v FROM kv WHERE k >= ? AND k < ifnull(?, x'ffffffffff') ORDER BY k LIMIT ?",
                    (start, end, limit),
                ).fetchall()
            yield from rows
            if len(rows) < limit:
                return
            start = rows[-1][0] + b"\0"

    def sync(self) -> None:
        # The log is the database's newest part; what was moved out of it SQLite has synced before it reused the log.
        os.fdatasync(self._log)

    def close(self) -> None:
        with self._lock:
            self._connection.close()
            os.close(self._log)
