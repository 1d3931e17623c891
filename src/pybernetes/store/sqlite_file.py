"""The SQLite file under the embedded store: its layout, its connections, and how it reaches the disk.

Nothing here knows about asyncio. Three connections, each used by one thread at a time: `_main` (the event loop's
thread: single reads), `_reader` (a worker: ranges), `_upkeep` (a worker: folding, compaction). Only `_upkeep` writes.

Layout: `kv` is an append-only log, one row a change, the revision its key; `previous` is the revision it superseded (0:
the key was created), `value` is NULL for a deletion. There is no index by key: names are random, so each row would cost
a page of such an index, as much as half a dozen rows themselves; the caller keeps in memory which revision each key is
at, and what it was at before is found by undoing the changes since then (`undone`). Compaction deletes the rows that
`previous` names, so its cost is that of the changes since the last one, not that of the whole table.

Why an acknowledged write survives a power failure:
- `append` writes a batch to the log (`log`), `sync` calls `fdatasync` on it; only then does the caller acknowledge.
- `fold` copies what the log holds into the database, and notes in the same transactions, with `synchronous=FULL`, how
  far that goes. Only when it has returned may the log begin anew.
- `open` reads what the log holds behind that mark, syncs it (the last writer may have died before its sync), and the
  log goes on there.
- The directory entries of all files are synced before the first write to them is acknowledged.
- A failed `fdatasync` is final: the kernel may have dropped the pages it could not write and report success next time.
  The caller must refuse writes until the file is opened anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import msgspec

from pybernetes.store.base import Entry, Event, StoreUnavailable
from pybernetes.store.log import Damaged, Log, Row

APPLICATION_ID = 0x5059424E
"""Marks the file as ours (`PRAGMA application_id`)."""
LAYOUT = 3
"""1 had an index by key, 2 no log of ours."""
WAL_LIMIT = 64 << 20
"""Bytes: SQLite's log, if a reader in the way has made it longer, is cut when it begins anew."""
CHUNK = 1000
"""Values fetched by one statement."""
CHUNK_SIZE = 64 << 20
"""Bytes of values fetched by one statement. SQLite refuses a result of more than 1,000,000,000."""
PAGE = 16 << 10
"""Bytes of a page of a new file. Rows of 2.3 KB take two thirds of the room and of the time that they take in pages of
4 KB."""
TOGETHER = 128
"""Rows inserted by one statement: it asks for the GIL once."""
STEP = 2 << 20
"""Bytes folded in one transaction: so much room on the disk is needed twice."""

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
INSERT INTO meta VALUES ('compacted', 0), ('purged', 0);
"""

UPGRADE = f"""
DROP INDEX IF EXISTS kv_key;
DELETE FROM meta WHERE name = 'touched';
PRAGMA user_version={LAYOUT};
"""

LOGGED = """INSERT INTO meta VALUES ('identity', randomblob(16)),
('folded', (SELECT MAX((SELECT COALESCE(MAX(revision), 1) FROM kv), value) FROM meta WHERE name = 'compacted'));
"""
"""How far the database goes, and what tells its log from that of another."""

INSERT = "INSERT INTO kv VALUES (?, ?, ?, ?, ?, ?)"
INSERT_TOGETHER = INSERT + ", (?, ?, ?, ?, ?, ?)" * (TOGETHER - 1)

# Reading row by row in a thread asks for the GIL once a row, and a busy event loop gives it up every 5 ms: 500 rows
# took 1.6 s. One statement that glues a thousand rows together asks once: 10,000 rows of 5 KB took 0.18 s beside it.
SIZES = """SELECT group_concat(kv.revision || ':' || length(kv.value))
FROM json_each(?) AS wanted CROSS JOIN kv ON kv.revision = wanted.value"""
"""How long the values of some revisions are; SQLite knows it without reading them."""

GLUED = """SELECT COUNT(*), group_concat(revision), group_concat(length(value)), group_concat(CAST(value AS TEXT), '')
FROM (SELECT kv.revision, kv.value FROM json_each(?) AS wanted CROSS JOIN kv ON kv.revision = wanted.value)"""

UNDO = """SELECT key, previous FROM kv WHERE revision > ? AND revision <= ? AND key >= ? AND key < ?
ORDER BY revision DESC"""

HISTORY = """SELECT e.key, e.value, e.revision, e.previous, p.value FROM kv e LEFT JOIN kv p ON p.revision = e.previous
WHERE e.revision > ? AND e.revision <= ? AND e.key >= ? AND e.key < ? ORDER BY e.revision LIMIT ?"""


class SyncFailed(StoreUnavailable):
    """The disk did not take what it was given. What it holds is unknown until the file is opened anew."""


class Contents(msgspec.Struct):
    """The parts of a file that the store keeps in memory."""

    revisions: dict[str, int] = {}
    expires: list[tuple[float, str, int]] = []
    revision: int = 1
    folded: int = 1
    fresh: list[Row] = []
    """The records of the log behind `folded`."""
    compacted: int = 0
    purged: int = 0
    layout: int = 0
    """0: there was no file."""


class SQLiteFile:
    """An open database file, locked against every other process."""

    def __init__(self, path: str, *, sync: Callable[[int], None] = os.fdatasync) -> None:
        self.path = path
        self._sync = sync
        self._lock = -1
        self._log: Log | None = None
        self._folded = 0
        """The last revision in the database."""
        self._connections: list[sqlite3.Connection] = []

    def open(self) -> Contents:
        """Lock, verify, load and open the file. A file that is refused is left as it was."""
        try:
            with self._errors():
                self._take_lock()
                # It holds secrets. SQLite gives the files beside it the same mode.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
                contents = self._load()
                self._upkeep = self._connect()
                if contents.layout != LAYOUT:
                    changes = UPGRADE if contents.layout else SCHEMA
                    self._upkeep.executescript(f"BEGIN IMMEDIATE; {changes} {LOGGED} COMMIT;")
                self._main = self._connect()
                self._reader = self._connect()
                self._reader.text_factory = bytes
                self._open_log(contents)
                self._sync_folder()
                return contents
        except BaseException:
            self.close(folded=False)
            raise

    @property
    def log(self) -> int:
        """The descriptor of the log, to be synced after an append."""
        assert self._log is not None
        return self._log.descriptor

    @property
    def logged(self) -> int:
        """How many bytes the log holds."""
        return self._log.size if self._log else 0

    def close(self, folded: bool) -> None:
        """Release the file. `folded`: the database has all that the log holds, which is no longer needed."""
        for connection in self._connections:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        self._connections = []
        if self._log is not None:
            self._log.close(remove=folded)
            self._log = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # -- the event loop's thread --

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, all or none. They are durable after the next `sync`."""
        assert self._log is not None
        try:
            self._log.append(rows)
        except OSError as error:
            raise StoreUnavailable(f"{self.path}: {error.strerror or error}") from error

    def turn(self) -> None:
        """Let what is appended from now on be another file of the log, for the sake of `fold`."""
        assert self._log is not None
        self._log.turn()

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
            self._sync(self.log)
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
                for part in self._parts(revisions[start : start + CHUNK]):
                    found |= self._glued(part)
        return found

    def _parts(self, revisions: Sequence[int]) -> Iterator[Sequence[int]]:
        """Revisions in parts whose values fit into one result; a value that is larger than that has one for itself."""
        (listed,) = self._reader.execute(SIZES, (_array(revisions),)).fetchone()
        part: list[int] = []
        size = 0
        for each in listed.split(b",") if listed else ():
            revision, _, length = each.partition(b":")
            size += int(length or 0)
            if part and size > CHUNK_SIZE:
                yield part
                part, size = [], int(length or 0)
            part.append(int(revision))
        if part:
            yield part

    def _glued(self, revisions: Sequence[int]) -> dict[int, bytes]:
        count, numbers, lengths, glued = self._reader.execute(GLUED, (_array(revisions),)).fetchone()
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

    def lay_out(self) -> None:
        """Make what `turn` turns to."""
        assert self._log is not None
        with self._errors():
            self._log.lay_out()
            self._sync_folder()

    def fold(self, rows: Sequence[Row]) -> None:
        """Copy into the database all that was appended and synced before the last turn, or more than that."""
        assert self._log is not None
        with self._errors():
            self._insert(rows)
            self._log.folded()

    def _insert(self, rows: Sequence[Row]) -> None:
        rows = [row for row in rows if row[0] > self._folded]  # An attempt may have failed half way.
        start = size = 0
        for end, row in enumerate(rows, 1):
            size += len(row[5] or b"")
            if size >= STEP or end == len(rows):
                self._insert_step(rows[start:end])
                start, size = end, 0

    def _insert_step(self, rows: Sequence[Row]) -> None:
        with self._transaction(self._upkeep) as upkeep:
            rest = len(rows) % TOGETHER
            for start in range(0, len(rows) - rest, TOGETHER):
                upkeep.execute(INSERT_TOGETHER, tuple(chain.from_iterable(rows[start : start + TOGETHER])))
            upkeep.executemany(INSERT, rows[len(rows) - rest :])
            upkeep.execute("UPDATE meta SET value = ? WHERE name = 'folded'", (rows[-1][0],))
        self._folded = rows[-1][0]

    def note_compaction(self, revision: int) -> None:
        """Note the compaction; `purge` then removes rows."""
        with self._errors(), self._transaction(self._upkeep):
            self._upkeep.execute("UPDATE meta SET value = ? WHERE name = 'compacted'", (revision,))

    def purge(self, begin: int, end: int) -> None:
        """Delete what the changes in (begin, end], all folded, superseded, and the deletions among them."""
        with self._errors(), self._transaction(self._upkeep) as upkeep:
            upkeep.execute(
                "DELETE FROM kv WHERE revision IN (SELECT previous FROM kv WHERE revision > ? AND revision <= ?)",
                (begin, end),
            )
            upkeep.execute("DELETE FROM kv WHERE revision > ? AND revision <= ? AND deleted", (begin, end))
            upkeep.execute("UPDATE meta SET value = ? WHERE name = 'purged'", (end,))

    def probe(self, size: int) -> None:
        """Fail as a write of `size` bytes would. Nothing may be appended meanwhile."""
        assert self._log is not None
        with self._errors():
            self._log.probe(size)

    # -- opening --

    def _take_lock(self) -> None:
        # SQLite's own locks cannot be used: they are free between transactions, and closing any other descriptor of the
        # database drops them. A file beside it carries ours, for as long as the process lives.
        self._lock = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreUnavailable(f"{self.path} is in use by another process") from None

    def _load(self) -> Contents:
        """Load the database."""
        with open(self.path, "rb") as file:
            begin = file.read(16)
            if not begin:
                return Contents()
            if begin != b"SQLite format 3\0":
                raise StoreUnavailable(f"{self.path} is damaged or not a database; it was left untouched")
        # Read-only, because closing a connection that may write changes a file that we may yet refuse.
        connection = self._connect(read_only=True)
        try:
            (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (layout,) = connection.execute("PRAGMA user_version").fetchone()
            if not tables and not application:
                return Contents()  # We died before the first transaction.
            if application != APPLICATION_ID:
                raise StoreUnavailable(f"{self.path} belongs to another program; it was left untouched")
            if not 1 <= layout <= LAYOUT:
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

    def _open_log(self, contents: Contents) -> None:
        """Go on with the log, and add to `contents` what it holds."""
        meta = dict(self._upkeep.execute("SELECT name, value FROM meta"))
        self._folded = contents.folded = meta["folded"]
        self._log = Log(self.path, meta["identity"])
        try:
            contents.fresh = self._log.read(self._folded, self._sync)
        except Damaged as error:
            raise StoreUnavailable(f"{self.path} is damaged: {error}") from None
        for revision, key, _, deleted, expires, _ in contents.fresh:
            contents.revision = revision
            if deleted:
                contents.revisions.pop(key, None)
                continue
            contents.revisions[key] = revision
            if expires:
                contents.expires.append((expires, key, revision))
        self._log.open()

    def _connect(self, read_only: bool = False) -> sqlite3.Connection:
        uri = "file:" + self.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        connection = sqlite3.connect(
            uri + ("?mode=ro" if read_only else ""), uri=True, timeout=0, isolation_level=None, check_same_thread=False
        )
        self._connections.append(connection)
        if not read_only:
            connection.execute(f"PRAGMA page_size={PAGE}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint={STEP // PAGE}")
            connection.execute("PRAGMA secure_delete=OFF")
            connection.execute(f"PRAGMA journal_size_limit={WAL_LIMIT}")
        return connection

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
        except UnicodeDecodeError as error:
            raise StoreUnavailable(f"{self.path} is damaged: {error}") from error

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


def _array(revisions: Sequence[int]) -> str:
    return "[" + ",".join(map(str, revisions)) + "]"


def end_of(prefix: str) -> str | bytes:
    """The least key above all that start with `prefix`; bytes are above all text in SQLite's order."""
    stripped = prefix.rstrip("\U0010ffff")
    if not stripped:
        return b""
    last = ord(stripped[-1]) + 1
    return stripped[:-1] + chr(0xE000 if 0xD800 <= last <= 0xDFFF else last)
