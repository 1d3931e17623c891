"""The SQLite file under the embedded store: its layout, its connections, and how it reaches the disk.

Nothing here knows about asyncio. Three connections, each used by one thread at a time: `_main` (the event loop's
thread: inserts, single reads), `_reader` (a worker: ranges), `_upkeep` (a worker: checkpoints, compaction).
The caller lets at most one of `_main` and `_upkeep` write at a time.

Layout: `kv` is an append-only log, one row a change, the revision its key; `previous` is the revision it superseded (0:
the key was created), `value` is NULL for a deletion. There is no index by key: names are random, so each row would cost
a page of such an index, as much as half a dozen rows themselves; the caller keeps in memory which revision each key is
at, and what it was at before is found by undoing the changes since then (`undone`). Compaction deletes the rows that
`previous` names, so its cost is that of the changes since the last one, not that of the whole table.

Why an acknowledged write survives a power failure:
- A batch is one transaction; its COMMIT appends frames to the write-ahead log (`-wal`) with `synchronous=NORMAL`, that
  is without a sync. `sync()` then calls `fdatasync` on that file: frames, and the file's size if it grew, are on disk.
  Only then does the caller acknowledge. Recovery replays frames up to the last whole, checksummed commit.
- The log is one inode from `open` to `close`: SQLite deletes it only when the last connection closes, and never
  renames it. So one descriptor, opened once, names the right file. Its directory entry, and that of the database, is
  synced once at `open`, after both exist.
- A checkpoint (`synchronous=NORMAL`) syncs the log, copies pages into the database, syncs the database, and only then
  says so in the shared index. The log starts again from its beginning only after a full checkpoint; SQLite then writes
  a header with new salts and syncs it BEFORE any frame. So at no moment do old frames pass as new: with the old header
  they replay what the database already holds, with the new one they do not match its salts.
- The log is not shortened: overwriting blocks that exist costs the disk less than growing a file (fdatasync of 16 KB on
  one ext4 machine: 103 us against 195 us), which is also why `open` fills it up with zeros. Zeros are no frames.
- A failed `fdatasync` is final: the kernel may have dropped the pages it could not write and report success next time.
  The caller must refuse writes until the file is opened anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from pybernetes.store.base import Entry, Event, StoreUnavailable

APPLICATION_ID = 0x5059424E
"""Marks the file as ours (`PRAGMA application_id`)."""
LAYOUT = 2
"""1 had an index by key."""
WAL_FILL = 4 << 20
"""Bytes of log laid out at the start, a few ms. From the second checkpoint on the log has its full size anyway."""
WAL_LIMIT = 64 << 20
"""Bytes: a log that a burst, or a reader in the way of checkpoints, has made longer is cut when it begins anew."""
CHUNK = 1000
"""Values fetched by one statement."""

Row = tuple[int, str, int, int, float | None, bytes | None]
"""revision, key, previous, deleted, expires, value"""

SCHEMA = f"""
PRAGMA application_id={APPLICATION_ID};
PRAGMA user_version={LAYOUT};
CREATE TABLE kv (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    previous INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    expires REAL,
    value BLOB
);
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO meta VALUES ('compacted', 0), ('purged', 0), ('touched', 0);
"""

# Reading row by row in a thread asks for the GIL once a row, and a busy event loop gives it up every 5 ms: 500 rows
# took 1.6 s. One statement that glues a thousand rows together asks once: 10,000 rows of 5 KB took 0.18 s beside it.
GLUED = """SELECT COUNT(*), group_concat(revision), group_concat(length(value)), group_concat(CAST(value AS TEXT), '')
FROM (SELECT kv.revision, kv.value FROM json_each(?) AS wanted CROSS JOIN kv ON kv.revision = wanted.value)"""

UNDO = """SELECT key, previous FROM kv WHERE revision > ? AND revision <= ? AND key >= ? AND key < ?
ORDER BY revision DESC"""

HISTORY = """SELECT e.key, e.value, e.revision, e.previous, p.value FROM kv e LEFT JOIN kv p ON p.revision = e.previous
WHERE e.revision > ? AND e.revision <= ? AND e.key >= ? AND e.key < ? ORDER BY e.revision LIMIT ?"""


class SyncFailed(StoreUnavailable):
    """The disk did not take what it was given. What it holds is unknown until the file is opened anew."""


class Contents(msgspec.Struct):
    """What the store keeps in memory of a file."""

    revisions: dict[str, int] = {}
    expires: list[tuple[float, str, int]] = []
    revision: int = 1
    compacted: int = 0
    purged: int = 0
    layout: int = LAYOUT


class SQLiteFile:
    """An open database file, locked against every other process."""

    def __init__(self, path: str, *, sync: Callable[[int], None] = os.fdatasync) -> None:
        self.path = path
        self._sync = sync
        self._lock = -1
        self._wal = -1
        self._connections: list[sqlite3.Connection] = []

    def open(self) -> Contents:
        """Lock, verify, load and open the file. A file that is refused is left as it was."""
        try:
            with self._errors():
                self._take_lock()
                # It holds secrets. SQLite gives the files beside it the same mode.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
                contents = self._load()
                self._main = self._connect()
                if contents is None:
                    contents = Contents()
                    self._main.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
                elif contents.layout != LAYOUT:
                    upgrade = f"DROP INDEX IF EXISTS kv_key; PRAGMA user_version={LAYOUT};"
                    self._main.executescript(f"BEGIN IMMEDIATE; {upgrade} COMMIT;")
                self._reader = self._connect()
                self._reader.text_factory = bytes
                self._upkeep = self._connect()
                self._checkpoint_and_restart()
                self._wal = os.open(self.path + "-wal", os.O_RDWR)
                size = os.path.getsize(self.path + "-wal")
                with contextlib.suppress(OSError):  # A full disk is told when something is to be written.
                    os.pwrite(self._wal, bytes(max(0, WAL_FILL - size)), size)
                self._sync(self._wal)
                self._sync_folder()
        except BaseException:
            self.close()
            raise
        return contents

    @property
    def log(self) -> int:
        """The descriptor of the write-ahead log, to be synced by whoever appends."""
        return self._wal

    def close(self) -> None:
        """Fold the log into the database and release the file."""
        for connection in self._connections:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        self._connections = []
        if self._wal >= 0:
            os.close(self._wal)
        if self._lock >= 0:
            os.close(self._lock)
        self._wal = self._lock = -1

    # -- the event loop's thread --

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows in one transaction, all or none. They are durable after the next `sync`."""
        with self._errors(), self._transaction(self._main) as main:
            main.executemany("INSERT INTO kv VALUES (?, ?, ?, ?, ?, ?)", rows)

    def value(self, revision: int) -> bytes:
        """The value written at `revision`."""
        try:
            row = self._main.execute("SELECT value FROM kv WHERE revision = ?", (revision,)).fetchone()
        except sqlite3.Error as error:
            raise self._refusal(error) from error
        if row is None:
            raise StoreUnavailable(f"{self.path} is damaged: revision {revision} is missing")
        return row[0]  # type: ignore[no-any-return]

    def history(self, prefix: str, after: int, upto: int, limit: int) -> list[Event]:
        """Changes after `after` up to `upto`, oldest first."""
        with self._errors():
            rows = self._main.execute(HISTORY, (after, upto, prefix, end_of(prefix), limit)).fetchall()
        return [
            Event(key, value, revision, Entry(key, before, previous) if previous else None)
            for key, value, revision, previous, before in rows
        ]

    # -- the syncing thread, or the event loop's --

    def sync(self) -> None:
        """Wait until everything appended is on disk."""
        try:
            self._sync(self._wal)
        except Exception as error:
            raise SyncFailed(f"{self.path}: {error}") from error

    # -- the reading thread --

    def undone(self, prefix: str, after: int, upto: int) -> dict[str, int]:
        """The revision that each key was at at `after` if it changed up to `upto`; 0 = it was not there."""
        with self._errors():
            rows = self._reader.execute(UNDO, (after, upto, prefix, end_of(prefix))).fetchall()
        return {key.decode(): previous for key, previous in rows}  # the newest first, so the oldest has the last word

    def values(self, revisions: Sequence[int]) -> dict[int, bytes]:
        """The values written at these revisions; those that are gone are left out."""
        found: dict[int, bytes] = {}
        with self._errors():
            for start in range(0, len(revisions), CHUNK):
                found |= self._glued(revisions[start : start + CHUNK])
        return found

    def _glued(self, revisions: Sequence[int]) -> dict[int, bytes]:
        wanted = "[" + ",".join(map(str, revisions)) + "]"
        count, numbers, lengths, glued = self._reader.execute(GLUED, (wanted,)).fetchone()
        if not count:
            return {}
        # What is glued together in one statement is glued in the same order, whichever that is.
        found, start = {}, 0
        for number, length in zip(numbers.split(b","), lengths.split(b","), strict=True):
            end = start + int(length)
            found[int(number)] = glued[start:end]
            start = end
        return found

    # -- the upkeep thread --

    def checkpoint(self) -> None:
        """Copy the log into the database. Writers go on."""
        with self._errors():
            self._upkeep.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def restart(self) -> None:
        """Copy the rest of the log and begin it anew. No writer may run meanwhile."""
        with self._errors():
            self._checkpoint_and_restart()

    def note_compaction(self, revision: int) -> None:
        """Note the compaction; `purge` then removes rows."""
        with self._errors(), self._transaction(self._upkeep):
            self._upkeep.execute("UPDATE meta SET value = ? WHERE name = 'compacted'", (revision,))

    def purge(self, begin: int, end: int) -> None:
        """Delete what the changes in (begin, end] superseded, and the deletions among them.

        No writer may run meanwhile.
        """
        with self._errors(), self._transaction(self._upkeep) as upkeep:
            upkeep.execute(
                "DELETE FROM kv WHERE revision IN (SELECT previous FROM kv WHERE revision > ? AND revision <= ?)",
                (begin, end),
            )
            upkeep.execute("DELETE FROM kv WHERE revision > ? AND revision <= ? AND deleted", (begin, end))
            upkeep.execute("UPDATE meta SET value = ? WHERE name = 'purged'", (end,))

    def probe(self, size: int) -> None:
        """Fail as a write of `size` bytes would. No writer may run meanwhile."""
        with self._errors():
            with self._transaction(self._upkeep) as upkeep:
                upkeep.execute("INSERT OR REPLACE INTO meta VALUES ('probe', zeroblob(?))", (size,))
            with self._transaction(self._upkeep) as upkeep:
                upkeep.execute("DELETE FROM meta WHERE name = 'probe'")

    # -- opening --

    def _take_lock(self) -> None:
        # SQLite's own locks cannot be used: they are free between transactions, and closing any other descriptor of the
        # database drops them. A file beside it carries ours, for as long as the process lives.
        self._lock = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreUnavailable(f"{self.path} is in use by another process") from None

    def _load(self) -> Contents | None:
        """What the file holds; None if it is new."""
        with open(self.path, "rb") as file:
            begin = file.read(16)
            if not begin:
                return None
            if begin != b"SQLite format 3\0":
                raise StoreUnavailable(f"{self.path} is damaged or not a database; it was left untouched")
        # Read-only, because closing a connection that may write folds the log into a file that we may yet refuse.
        connection = self._connect(read_only=True)
        try:
            (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (layout,) = connection.execute("PRAGMA user_version").fetchone()
            if not tables and not application:
                return None  # We died before the first transaction.
            if application != APPLICATION_ID:
                raise StoreUnavailable(f"{self.path} belongs to another program; it was left untouched")
            if layout not in (1, LAYOUT):
                raise StoreUnavailable(f"{self.path} has layout {layout}, this program knows {LAYOUT}")
            meta = dict(connection.execute("SELECT name, value FROM meta"))
            rows = connection.execute("SELECT key, revision, expires, deleted FROM kv ORDER BY revision").fetchall()
        finally:
            self._connections.remove(connection)
            connection.close()
        latest = {key: (revision, expires, deleted) for key, revision, expires, deleted in rows}
        alive = [(key, revision, expires) for key, (revision, expires, deleted) in latest.items() if not deleted]
        return Contents(
            revisions={key: revision for key, revision, _ in alive},
            expires=[(expires, key, revision) for key, revision, expires in alive if expires],
            revision=max(1, rows[-1][1] if rows else 0, meta["compacted"]),
            compacted=meta["compacted"],
            purged=meta["purged"],
            layout=layout,
        )

    def _connect(self, read_only: bool = False) -> sqlite3.Connection:
        uri = "file:" + self.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        connection = sqlite3.connect(
            uri + ("?mode=ro" if read_only else ""), uri=True, timeout=0, isolation_level=None, check_same_thread=False
        )
        self._connections.append(connection)
        if not read_only:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA wal_autocheckpoint=0")
            connection.execute("PRAGMA secure_delete=OFF")
            connection.execute(f"PRAGMA journal_size_limit={WAL_LIMIT}")
        return connection

    def _checkpoint_and_restart(self) -> None:
        self._upkeep.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        # Any write makes SQLite begin the log anew when all of it is checkpointed; done here, its sync of the new
        # header does not stall the event loop.
        with self._transaction(self._upkeep) as upkeep:
            upkeep.execute("UPDATE meta SET value = value + 1 WHERE name = 'touched'")

    def _sync_folder(self) -> None:
        folder = os.open(os.path.dirname(os.path.abspath(self.path)), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _transaction(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._refusal(error) from error
        except OSError as error:
            raise StoreUnavailable(f"{self.path}: {error.strerror or error}") from error

    def _refusal(self, error: sqlite3.Error) -> StoreUnavailable:
        code = getattr(error, "sqlite_errorcode", 0)
        if code in (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC):
            return SyncFailed(f"{self.path}: {error}")
        match code & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return StoreUnavailable(f"{self.path} is locked by another process")
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return StoreUnavailable(f"{self.path} is damaged: {error}")
            case _:
                return StoreUnavailable(f"{self.path}: {error}")


def end_of(prefix: str) -> str | bytes:
    """The least key above all that start with `prefix`; bytes are above all text in SQLite's order."""
    stripped = prefix.rstrip("\U0010ffff")
    if not stripped:
        return b""
    last = ord(stripped[-1]) + 1
    return stripped[:-1] + chr(0xE000 if 0xD800 <= last <= 0xDFFF else last)
