"""A store in this process's memory, for tests and throw-away clusters.

The same behaviour as the durable stores, history and compaction included, except promise 1: nothing survives the
process. Every write is complete when it is decided, so there are no batches and no waiting.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable

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


class MemoryStore:
    """See `pybernetes.store.base.Store`."""

    exclusive = True

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._open = False
        self._revision = 1
        self._compacted = 0
        self._current: dict[str, Entry] = {}
        self._keys: list[str] = []
        """Sorted: every key that has a history."""
        self._history: dict[str, list[Event]] = {}
        """Changes of a key, oldest first."""
        self._log: list[Event] = []
        """All changes after `_compacted`, oldest first."""
        self._feed = Feed(self._replay)
        self._expiries = Expiries(self._expire, clock)

    async def start(self) -> None:
        self._open = True
        self._feed.revision = self._revision

    async def close(self) -> None:
        self._open = False
        self._expiries.close()
        self._feed.close()

    async def create(self, key: str, value: bytes, *, ttl: int | None = None) -> int:
        self._refuse_when_closed()
        if key in self._current:
            raise KeyExists(key)
        return self._write(key, value, ttl)

    async def update(self, key: str, value: bytes, *, revision: int, ttl: int | None = None) -> int:
        self._refuse_when_closed()
        self._expect(key, revision)
        return self._write(key, value, ttl)

    async def delete(self, key: str, *, revision: int) -> int:
        self._refuse_when_closed()
        self._expect(key, revision)
        return self._write(key, None, None)

    async def get(self, key: str) -> Entry | None:
        self._refuse_when_closed()
        return self._current.get(key)

    async def range(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> Page:
        self._refuse_when_closed()
        at = revision or self._revision
        if at < self._compacted:
            raise Compacted(at, self._compacted)
        if at > self._revision:
            raise FutureRevision(at, self._revision)
        entries: list[Entry] = []
        remaining = 0
        begin = bisect_left(self._keys, prefix) if after < prefix else bisect_right(self._keys, after)
        for key in self._keys[begin:]:
            if not key.startswith(prefix):
                break
            entry = self._current.get(key) if at == self._revision else self._at(key, at)
            if entry is None:
                continue
            if limit and len(entries) == limit:
                remaining += 1
            else:
                entries.append(entry)
        return Page(entries, at, remaining)

    def watch(self, prefix: str, *, after: int, receive: Receive | None = None) -> Watch:
        return FeedWatch(self._feed, prefix, after, receive)

    async def revision(self) -> int:
        self._refuse_when_closed()
        return self._revision

    async def compact(self, revision: int) -> None:
        self._refuse_when_closed()
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        if revision <= self._compacted:
            return
        self._compacted = revision
        gone = bisect_right(self._log, revision, key=lambda event: event.revision)
        touched = {event.key for event in self._log[:gone]}
        del self._log[:gone]
        for key in touched:
            history = self._history[key]
            last = bisect_right(history, revision, key=lambda event: event.revision) - 1
            del history[: last + 1 if last >= 0 and history[last].value is None else max(last, 0)]
            if not history:
                del self._history[key]
                del self._keys[bisect_left(self._keys, key)]

    async def check(self) -> None:
        self._refuse_when_closed()

    def _refuse_when_closed(self) -> None:
        if not self._open:
            raise StoreUnavailable("the store is closed")

    def _expect(self, key: str, revision: int) -> None:
        current = self._current.get(key)
        if current is None or current.revision != revision:
            raise RevisionMismatch(key, current)

    def _at(self, key: str, revision: int) -> Entry | None:
        history = self._history[key]
        position = bisect_right(history, revision, key=lambda event: event.revision)
        event = history[position - 1] if position else None
        return None if event is None or event.value is None else Entry(key, event.value, event.revision)

    def _write(self, key: str, value: bytes | None, ttl: int | None) -> int:
        self._revision = revision = self._revision + 1
        event = Event(key, value, revision, self._current.get(key))
        if value is None:
            del self._current[key]
        else:
            self._current[key] = Entry(key, value, revision)
        history = self._history.get(key)
        if history is None:
            insort(self._keys, key)
            self._history[key] = [event]
        else:
            history.append(event)
        self._log.append(event)
        if ttl:
            self._expiries.add(self._clock() + ttl, key, revision)
        self._feed.publish([event], revision)
        return revision

    def _expire(self, key: str, revision: int) -> None:
        current = self._current.get(key)
        if current is not None and current.revision == revision:
            self._write(key, None, None)

    async def _replay(self, prefix: str, after: int, limit: int) -> tuple[list[Event], int]:
        self._refuse_when_closed()
        if after < self._compacted:
            raise Compacted(after, self._compacted)
        begin = bisect_right(self._log, after, key=lambda event: event.revision)
        page = self._log[begin : begin + limit]
        upto = page[-1].revision if len(page) == limit else self._revision
        return [event for event in page if event.key.startswith(prefix)], upto
