"""The embedded store: one SQLite file, group commit, nothing else to run.

Writes are decided and numbered on the event loop, against an index in memory (key to revision). They gather until the
batch before them is durable; then one record of a log takes all of them (`log`), one `fdatasync` beside the loop
(`syncing`) makes them durable, and all are acknowledged together. The loop waits a moment for a write that comes alone
(`patience`): if the disk is quick it is acknowledged at once. Now and then a thread copies what the log holds into the
database; until then it is kept in memory as well, so that reads need no log. Why that is safe is written in
`sqlite_file`.

A write to a key on which another write is not yet durable waits for that one's outcome before it is decided, so it is
never refused because of a change that its caller could not see by reading again; and a failed batch undoes nothing but
itself, because no other write was decided on top of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from pybernetes.store.base import (
    Compacted,
    Entry,
    Event,
    FutureRevision,
    KeyExists,
    Page,
    Receive,
    RevisionMismatch,
    StoreUnavailable,
    Watch,
)
from pybernetes.store.expiry import Expiries
from pybernetes.store.feed import Feed, FeedWatch
from pybernetes.store.fsync import Syncer, ThreadSyncer, syncer_for
from pybernetes.store.fsync_wait import Patience
from pybernetes.store.log import Row
from pybernetes.store.sqlite_file import SQLiteFile, SyncFailed

log = logging.getLogger(__name__)
T = TypeVar("T")

_View = tuple[list[str], list[int]]
"""The keys of a collection at some revision, in order, and the revisions they were at."""

BATCH = 256
"""Writes in one record."""
BATCH_SIZE = 4 << 20
"""Bytes in one record, or one write if that is larger."""
WAIT = 0.002
"""Seconds that the event loop waits for the disk at most, when a write comes alone."""
GATHER = 0.001
"""Seconds that a write waits for others at most."""
FOLD_AFTER = 6 << 20
"""Bytes of log. They are in memory too."""
LOG_LIMIT = 64 << 20
"""Bytes of log that the database refuses to take, from which on no more is written."""
VIEWS = 4
"""Collections being taken page by page that are kept; finding one anew costs as much as reading all its keys."""
PURGE_STEP = 500
"""Revisions compacted in one transaction."""
RETRY_EXPIRY = 1.0
"""Seconds until an expired key is tried again when the disk refused its deletion."""


class _Write(msgspec.Struct, eq=False):
    """A write that is decided and not yet durable."""

    row: Row
    acknowledged: asyncio.Future[int]
    waiters: list[asyncio.Future[None]] | None = None
    """Writes to the same key, to be decided when this one is settled."""

    def settle(self, error: StoreUnavailable | None) -> None:
        if not self.acknowledged.done():
            if error is None:
                self.acknowledged.set_result(self.row[0])
            else:
                self.acknowledged.set_exception(error)
        for waiter in self.waiters or ():
            if not waiter.done():
                waiter.set_result(None)


_Begun = tuple[list[_Write], list[Event] | None, "asyncio.Future[None]"]
"""A batch that is in the log, its events, and its sync that is under way."""


def _take_now(lock: asyncio.Lock) -> bool:
    """Take a lock without a round of the loop; False if it is taken."""
    if lock.locked():
        return False
    taking = lock.acquire()
    try:
        taking.send(None)
    except StopIteration:
        return True
    taking.close()
    return False


class SQLiteStore:
    """See `pybernetes.store.base.Store`."""

    exclusive = True

    def __init__(
        self,
        path: str,
        *,
        clock: Callable[[], float] = time.time,
        sync: Callable[[int], None] = os.fdatasync,
        writing: Callable[[], int] = int,
    ) -> None:
        """`writing`: how many writes the caller has in hand, also those that have not reached us, but for those that
        wait for another of them.
        """
        self._file = SQLiteFile(path, sync=sync)
        self._by_kernel = sync is os.fdatasync
        self._clock = clock
        self._index: dict[str, int] = {}
        """The revision of each key, durable writes only."""
        self._pending: dict[str, _Write] = {}
        """Writes that are not durable, at most one a key."""
        self._queue: list[_Write] = []
        """Those of `_pending` that no batch has taken, in the order of revisions."""
        self._assigned = 1
        """The last revision given to a write."""
        self._durable = 1
        """The last acknowledged revision. Rows above it may be in the log, but are not visible."""
        self._fresh: dict[int, Row] = {}
        """The durable changes not known to be in the database, in the order of revisions."""
        self._folded = 1
        """The last revision that the database is known to hold."""
        self._compacted = 0
        self._purged = 0
        self._fold_at = FOLD_AFTER
        """The size of the log at which the database is to take it."""
        self._put_off: str | None = None
        """Why the database did not take it the last time."""
        self._closed: str | None = "the store is not open"
        """Why nothing is done any more."""
        self._broken: str | None = None
        """Why nothing is written any more, though reading goes on."""
        self._refused: int | None = None
        """The size of the largest value of the last batch, if that batch failed."""
        self._writer = asyncio.Lock()
        """Held while writing to the log."""
        self._upkeep = asyncio.Lock()
        """Held while using the upkeep thread; taken before `_writer`, so that no writer waits for that thread."""
        self._flusher: asyncio.Task[None] | None = None
        self._folder: asyncio.Task[None] | None = None
        self._gathering: asyncio.Future[None] | None = None
        """Done when a batch has gathered."""
        self._syncer: Syncer | None = None
        """There from `start` to `close`."""
        self._patience = Patience(writing) if sync is os.fdatasync else None
        """None where the loop waits for no disk."""
        self._views: dict[tuple[str, int], _View] = {}
        """The last collections that were not taken whole, by prefix and revision."""
        self._feed = Feed(self._replay)
        self._expiries = Expiries(self._expire, clock)
        self._threads = {name: ThreadPoolExecutor(1, f"store-{name}") for name in ("read", "upkeep")}

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        contents = await self._in("upkeep", self._file.open)
        sync = self._file.sync
        self._syncer = syncer_for(self._file.log, sync) if self._by_kernel else ThreadSyncer(sync)
        self._index = contents.revisions
        self._assigned = self._durable = self._feed.revision = contents.revision
        self._fresh = {row[0]: row for row in contents.fresh}
        self._folded = contents.folded
        self._compacted = contents.compacted
        self._purged = contents.purged
        self._closed = None
        for due in contents.expires:
            self._expiries.add(*due)

    async def close(self) -> None:
        """Make durable what was taken, refuse what comes, fold the log into the database."""
        if self._closed is None:
            self._closed = "the store is closed"
        self._expiries.close()
        self._feed.close()
        while self._flusher is not None:
            await asyncio.wait([self._flusher])
        if self._folder is not None:
            await asyncio.wait([self._folder])
        if self._syncer is not None:
            self._syncer.stop()
            self._syncer = None
        async with self._upkeep:
            await self._in("read", lambda: None)
            if self._fresh and self._broken is None:
                with contextlib.suppress(StoreUnavailable):
                    await self._fold()
            await self._in("upkeep", self._file.close, not (self._fresh or self._broken))
        for threads in self._threads.values():
            threads.shutdown()

    async def create(self, key: str, value: bytes, *, ttl: int | None = None) -> int:
        while True:
            if key in self._index:
                raise KeyExists(key)
            if key not in self._pending:
                return await self._write(key, value, 0, ttl)
            await self._settled(key)

    async def update(self, key: str, value: bytes, *, revision: int, ttl: int | None = None) -> int:
        return await self._replace(key, value, revision, ttl)

    async def delete(self, key: str, *, revision: int) -> int:
        return await self._replace(key, None, revision, None)

    async def get(self, key: str) -> Entry | None:
        self._refuse_when_closed()
        revision = self._index.get(key)
        return None if revision is None else Entry(key, self._value(revision), revision)

    def _value(self, revision: int) -> bytes:
        row = self._fresh.get(revision)
        return self._file.value(revision) if row is None else row[5] or b""

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        while True:
            self._refuse_when_closed()
            at = revision or self._durable
            if at > self._durable:
                raise FutureRevision(at, self._durable)
            if at >= self._compacted:
                view = self._views.get((prefix, at))
                if view is None:
                    index = [item for item in self._index.items() if item[0].startswith(prefix)]
                    recent = self._changes(prefix, at, self._durable)
                    view = await self._in("read", self._view, prefix, index, recent, at, self._folded)
                keys, revisions = view
                start = bisect_right(keys, after) if after else 0
                end = min(start + limit, len(keys)) if limit else len(keys)
                wanted = revisions[start:end]
                values = {number: self._fresh[number][5] or b"" for number in wanted if number in self._fresh}
                rest = [number for number in wanted if number not in values] if values else wanted
                if rest:
                    values |= await self._in("read", self._file.values, rest)
                # Rows are purged only after `_compacted` has moved: if it is not past us now, none were missing.
                if at >= self._compacted:
                    if end < len(keys):
                        self._keep_view(prefix, at, view)
                    found = zip(keys[start:end], wanted, strict=True)
                    entries = [Entry(key, values[number], number) for key, number in found]
                    return Page(entries, at, len(keys) - end)
            if revision:
                raise Compacted(revision, self._compacted)

    def _changes(self, prefix: str, after: int, upto: int) -> list[Row]:
        """Those that the database is not known to hold."""
        if after >= upto:
            return []
        return [row for row in self._fresh.values() if after < row[0] <= upto and row[1].startswith(prefix)]

    def _view(self, prefix: str, index: list[tuple[str, int]], recent: list[Row], at: int, folded: int) -> _View:
        """The state at a revision, from the present state: in the reading thread, because it may be much.

        What changed since then are `recent` changes, and those up to `folded` in the database.
        """
        was = {row[1]: row[2] for row in reversed(recent)}  # the newest first, so the oldest has the last word
        if at < folded:
            was |= self._file.undone(prefix, at, folded)
        if was:
            index = [item for item in index if item[0] not in was]
            index += [(key, previous) for key, previous in was.items() if previous]
        index.sort()
        return [key for key, _ in index], [revision for _, revision in index]

    def _keep_view(self, prefix: str, at: int, view: _View) -> None:
        """A client that reads page by page asks for the same view again."""
        self._views.pop((prefix, at), None)
        self._views[prefix, at] = view
        if len(self._views) > VIEWS:
            del self._views[next(iter(self._views))]

    def watch(self, prefix: str, *, after: int, receive: Receive | None = None) -> Watch:
        return FeedWatch(self._feed, prefix, after, receive)

    async def revision(self) -> int:
        self._refuse_when_closed()
        return self._durable

    async def compact(self, revision: int) -> None:
        self._refuse_when_broken()
        if revision > self._durable:
            raise FutureRevision(revision, self._durable)
        async with self._upkeep:
            if revision > self._compacted:
                self._refuse_when_broken()
                if revision > self._folded:
                    await self._fold()
                await self._in("upkeep", self._file.note_compaction, revision)
                self._compacted = revision
                self._views = {where: view for where, view in self._views.items() if where[1] >= revision}
        while self._purged < self._compacted:
            async with self._upkeep:
                if self._closed is not None or self._broken is not None:
                    return  # It is taken up by the next compaction.
                end = min(self._purged + PURGE_STEP, self._compacted)
                await self._in("upkeep", self._file.purge, self._purged, end)
                self._purged = end

    async def check(self) -> None:
        self._refuse_when_broken()
        if self._refused is not None:
            async with self._upkeep:
                self._refuse_when_broken()
                if self._put_off is not None and self._file.logged > LOG_LIMIT:
                    await self._fold()
            async with self._upkeep, self._writer:
                self._refuse_when_broken()
                if self._refused is not None:
                    await self._in("upkeep", self._file.probe, self._refused)
                    self._refused = None

    # -- deciding --

    async def _replace(self, key: str, value: bytes | None, revision: int, ttl: int | None) -> int:
        while True:
            current = self._index.get(key)
            if current != revision:
                raise RevisionMismatch(key, await self.get(key))
            if key not in self._pending:
                return await self._write(key, value, revision, ttl)
            await self._settled(key)

    def _write(self, key: str, value: bytes | None, previous: int, ttl: int | None) -> asyncio.Future[int]:
        """Number a write that nothing stands against and queue it; the future is its acknowledgement."""
        if self._closed is not None or self._broken is not None:
            self._refuse_when_broken()
        if "\0" in key:
            raise ValueError(f"a key must not contain NUL: {key!r}")
        self._assigned = revision = self._assigned + 1
        loop = self._loop  # asking for the running one is a system call
        expires = self._clock() + ttl if ttl else None
        write = _Write((revision, key, previous, value is None, expires, value), loop.create_future())
        self._pending[key] = write
        if self._flusher is None:
            if self._patience is not None and self._patience.has() and _take_now(self._writer):
                self._write_alone(write, self._patience)
                return write.acknowledged
            self._flusher = loop.create_task(self._flush())
        self._queue.append(write)
        if self._gathering is not None and not self._gathers():
            self._gathered()
        return write.acknowledged

    def _settled(self, key: str) -> asyncio.Future[None]:
        waiter = self._loop.create_future()
        write = self._pending[key]
        if write.waiters is None:
            write.waiters = []
        write.waiters.append(waiter)
        return waiter

    def _expire(self, key: str, revision: int) -> None:
        if self._index.get(key) != revision or self._closed or self._broken:
            return

        def again(_: object = None) -> None:
            self._expiries.add(self._clock() + RETRY_EXPIRY, key, revision)

        if key in self._pending:  # It will be at another revision, unless that write fails.
            again()
        else:
            deletion = self._write(key, None, revision, None)
            deletion.add_done_callback(lambda done: again() if done.exception() else None)

    def _refuse_when_closed(self) -> None:
        if self._closed is not None:
            raise StoreUnavailable(self._closed)

    def _refuse_when_broken(self) -> None:
        if self._closed is not None or self._broken is not None:
            raise StoreUnavailable(self._closed or self._broken)

    # -- writing --

    async def _flush(self, begun: _Begun | None = None) -> None:
        """Write batch after batch until none is left. `begun`: a batch that is being synced, with the writer's lock."""
        try:
            if begun is not None:
                try:
                    await self._finish(*begun)
                finally:
                    self._writer.release()
            while self._queue:
                if self._gathers():
                    await self._gather()
                async with self._writer:
                    await self._write_batch(self._take_batch())
        except BaseException as error:  # The program is ending and cancels what runs.
            self._fail(self._queue, f"the store was interrupted: {error!r}")
            self._queue = []
            raise
        finally:
            self._flusher = None

    def _gathers(self) -> bool:
        """Whether a batch would be small, and others will soon be part of it."""
        return self._patience is not None and self._patience.expects(len(self._queue))

    async def _gather(self) -> None:
        self._gathering = self._loop.create_future()
        timer = self._loop.call_later(GATHER, self._gathered)
        try:
            await self._gathering
        finally:
            timer.cancel()
            self._gathering = None

    def _gathered(self) -> None:
        if self._gathering is not None and not self._gathering.done():
            self._gathering.set_result(None)

    def _take_batch(self) -> list[_Write]:
        size = count = 0
        for write in self._queue[:BATCH]:
            count += 1
            size += len(write.row[5] or b"")
            if size >= BATCH_SIZE:
                break
        batch, self._queue = self._queue[:count], self._queue[count:]
        return batch

    def _write_alone(self, write: _Write, patience: Patience) -> None:
        """Write one with the writer's lock, and wait a moment for it; a slow disk is waited for beside the loop."""
        batch = [write]
        assert self._syncer is not None
        try:
            events = self._append(batch)
        except Exception as error:
            self._writer.release()
            self._fail(batch, str(error))
            return
        synced = self._syncer.sync(WAIT)
        patience.waited(in_time=synced.done())
        if not synced.done():
            self._flusher = self._loop.create_task(self._flush((batch, events, synced)))
            return
        self._writer.release()
        failure = synced.exception()
        if failure is None:
            self._acknowledge(batch, events)
        else:
            self._break(failure)
            self._fail(batch, str(failure))

    async def _write_batch(self, batch: list[_Write]) -> None:
        assert self._syncer is not None
        try:
            events = self._append(batch)
        except Exception as error:
            self._fail(batch, str(error))
            return
        await self._finish(batch, events, self._syncer.sync())

    async def _finish(self, batch: list[_Write], events: list[Event] | None, synced: asyncio.Future[None]) -> None:
        """Acknowledge a batch when it is durable, or fail it."""
        try:
            await synced
        except BaseException as error:
            self._break(error)
            self._fail(batch, str(error))
            if not isinstance(error, Exception):
                raise
        else:
            self._acknowledge(batch, events)

    def _append(self, batch: list[_Write]) -> list[Event] | None:
        """Put a batch into the log; the events are for those who watch, once it is durable."""
        if self._broken is not None:
            raise StoreUnavailable(self._broken)
        if self._put_off is not None and self._file.logged > LOG_LIMIT:
            raise StoreUnavailable(self._put_off)
        events = self._events(batch)
        self._file.append([write.row for write in batch])
        return events

    def _acknowledge(self, batch: list[_Write], events: list[Event] | None) -> None:
        self._refused = None
        index, pending, fresh = self._index, self._pending, self._fresh
        for write in batch:
            revision, key, _, deleted, expires, _ = row = write.row
            del pending[key]
            fresh[revision] = row
            if deleted:
                del index[key]
                continue
            index[key] = revision
            if expires:
                self._expiries.add(expires, key, revision)
        self._durable = batch[-1].row[0]
        self._feed.publish(events, self._durable)
        for write in batch:
            write.settle(None)
        if self._patience is not None:
            self._patience.acknowledged()
        if self._file.logged >= self._fold_at:
            self._fold_later()

    def _events(self, batch: list[_Write]) -> list[Event] | None:
        if not self._feed.watches:
            return None
        return self._as_events([write.row for write in batch])

    def _as_events(self, rows: list[Row]) -> list[Event]:
        value = self._value
        return [
            Event(key, new, revision, Entry(key, value(previous), previous) if previous else None)
            for revision, key, previous, _, _, new in rows
        ]

    def _fail(self, batch: list[_Write], reason: str) -> None:
        self._refused = max((len(write.row[5] or b"") for write in batch), default=0)
        for write in batch:
            del self._pending[write.row[1]]
            write.settle(StoreUnavailable(reason))
        # If the database refused what the log holds, it may take it now.
        self._fold_later()

    def _break(self, error: BaseException) -> None:
        """After a failed sync the disk's content is unknown: nothing is written until a restart."""
        log.error("the store takes no more writes: %s", error)
        self._broken = f"no writes until a restart, because a sync failed: {error}"

    # -- upkeep --

    def _fold_later(self) -> None:
        if not (self._folder or self._closed or self._broken):
            self._folder = self._loop.create_task(self._fold_beside_writers())

    async def _fold_beside_writers(self) -> None:
        try:
            async with self._upkeep:
                if self._closed is None and self._broken is None:
                    await self._fold()
        except StoreUnavailable:
            pass  # The log keeps everything; the next attempt comes after as many bytes again, or a refused write.
        finally:
            self._folder = None

    async def _fold(self) -> None:
        """Copy what the log holds into the database. The caller has `_upkeep`."""
        try:
            if self._closed is None:
                await self._in("upkeep", self._file.lay_out)
            async with self._writer:
                if self._closed is None:
                    self._file.turn()
                rows = list(self._fresh.values())
            if rows:
                await self._in("upkeep", self._file.fold, rows)
        except StoreUnavailable as error:
            if isinstance(error, SyncFailed):
                self._break(error)
            elif self._put_off is None:
                log.warning("the log is not folded into the database: %s", error)
            self._put_off = str(error)
            self._fold_at = self._file.logged + FOLD_AFTER
            raise
        self._put_off = None
        self._fold_at = self._file.logged + FOLD_AFTER
        if rows:
            self._folded = rows[-1][0]
            for row in rows:
                del self._fresh[row[0]]

    async def _replay(self, prefix: str, after: int, limit: int) -> tuple[list[Event], int]:
        self._refuse_when_closed()
        if after < self._compacted:
            raise Compacted(after, self._compacted)
        upto = self._durable
        events = self._file.history(prefix, after, self._folded, limit) if after < self._folded else []
        changes = self._changes(prefix, max(after, self._folded), upto)
        events += self._as_events(changes[: limit - len(events)])
        await asyncio.sleep(0)  # A long replay lets others run between its pages.
        return events, events[-1].revision if len(events) == limit else upto

    async def _in(self, thread: str, function: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads[thread], function, *args)
