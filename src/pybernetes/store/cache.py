"""The watch cache: everything in the store, as the bytes that are sent, and the recent changes.

One task follows the store's watch and applies each batch; so every partition is complete up to `Cache.revision`.
Reads never touch the disk. A write returns to its caller only after the cache has seen it (`wait_for`), so that
whoever wrote a thing can read it.

The cache follows the whole store, not only its own keys: only then does it learn of every revision, and `consistent`
waits for the latest one, whoever else keeps things in the same etcd.

An object that nobody can read, because the key it was encrypted with is not there, is `sealed`: it is known by its
name, and what is said about it is left to who asks. A resource that has one has no watchers, as they would not see it
all. What is `essential` must be read, all of it: with one such object sealed there is no cache.

Invariants of a `Partition`:
- `keys` (sorted when asked for) are exactly the keys of `items`, and none of them is in `sealed`;
- `window` holds every change with `floor < revision <= changed`, oldest first;
- a `Watcher` has been offered every change after the revision it was added at, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from .base import Ciphertext, Compacted, Entry, Event, FutureRevision, Store, StoreUnavailable

log = logging.getLogger(__name__)

WINDOW = 4096  # changes kept in memory for each partition; older ones are read from the store
WINDOW_SIZE = 32 << 20  # bytes of objects in these changes
BACKLOG = 16384  # changes a watcher may be behind before it is ended
BACKLOG_SIZE = 64 << 20  # bytes that may wait for one watcher
PATIENCE = 10.0  # seconds for the watch of a shared store to show what its revision says is there
REST = 0.002
LONGEST_REST = 0.016
"""Seconds between two deliveries to a watcher: a lone change is told at once, many that follow each other are told
together, the longer it goes on the more of them. Each delivery wakes up a process, and costs as much as making ten
changes ready for it."""
_METADATA = b'"metadata":{'
_ENCRYPTED = b"k8s:enc:"
_RETRY = 1.0  # seconds between attempts to read a store that is away


def with_revision(value: bytes, revision: int) -> bytes:
    """The object as it is sent: the stored bytes with the revision spliced into the metadata. Raises ValueError."""
    before, found, after = value.partition(_METADATA)
    if not found:
        raise ValueError("no metadata")
    return b'%b"metadata":{"resourceVersion":"%d",%b' % (before, revision, after)


def without_revision(raw: bytes) -> bytes:
    """The object as it is stored: the inverse of `with_revision`."""
    cut = raw.index(_METADATA) + 12
    return raw[:cut] + raw[raw.index(b",", cut) + 1 :]


class Item(msgspec.Struct, gc=False, weakref=False):
    """An object as it is sent.

    `attributes` is the place for what a selector decoded of it, `forms` for other forms that it is sent in.
    """

    key: str
    raw: bytes
    revision: int
    attributes: Any = None
    forms: Any = None


class Change(msgspec.Struct, gc=False):
    """One change of one object. `item` is None when it was deleted.

    `frames` shares the work between those who watch while it happens, and is None afterwards: kept for the few who come
    later, it would more than double the memory of the window.
    """

    key: str
    revision: int
    item: Item | None
    previous: Item | None
    frames: dict[Any, bytes | None] | None
    size: int
    """Bytes that it keeps in memory: of the object, or of the one that was deleted. One that was replaced is another
    change's, mostly."""


class Watcher:
    """Collects what one client wants to see of a partition, until the client has time for it.

    `view` turns a change into the bytes for this client, or None when it is not for it.
    """

    def __init__(self, scope: str, view: Callable[[Change], bytes | None], revision: int) -> None:
        self.scope = scope
        self.ending = ""
        """What keys end with, for one who watches all objects of one name."""
        self.narrow = False
        """Whether it is for few of the objects in scope: one name, or the pods of one node."""
        self.view = view
        self.revision = revision
        self.ended: Exception | None = None
        self.closed = False
        self._pending: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._woken = False
        self._rest = REST
        """How long the next rest will be."""
        self._resting: asyncio.TimerHandle | None = None
        """There for a while after a delivery."""

    def offer(self, change: Change) -> None:
        """Take a change if it is in scope."""
        key = change.key
        if key.startswith(self.scope) and key.endswith(self.ending) and not self.closed:
            frame = self.view(change)
            if frame is not None:
                self._pending.append(frame)
                self._size += len(frame)
                if len(self._pending) > BACKLOG or self._size > BACKLOG_SIZE:
                    self._pending = []
                    self.end(None)
                elif self._resting is None:
                    self.wake()
        self.revision = change.revision

    def end(self, error: Exception | None) -> None:
        """Say that no more will come."""
        self.ended = error
        self.closed = True
        self.wake()

    def wake(self) -> None:
        """Make `take` return, the one that waits or the next, even if there is nothing."""
        self._woken = True
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> list[bytes]:
        """What has gathered; waits until there is something, or somebody wakes it."""
        loop = asyncio.get_running_loop()
        if not self._woken and not self.closed:
            self._waiter = loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._woken = False
        pending, self._pending = self._pending, []
        self._size = 0
        if pending and self._resting is None:
            self._resting = loop.call_later(self._rest, self._rested)
            self._rest = min(2 * self._rest, LONGEST_REST)
        return pending

    def _rested(self) -> None:
        self._resting = None
        if self._pending:
            self.wake()
        else:
            self._rest = REST


class Partition:
    """The objects of one resource."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.items: dict[str, Item] = {}
        self.sealed: dict[str, str] = {}
        """Keys of objects that nobody can read, and why."""
        self._sorted: list[str] = []  # sorted, but for what `_fresh` and `_gone` say
        self._fresh: list[str] = []  # keys of `items` that are not in `_sorted` yet
        self._gone = 0  # keys of `_sorted` that may not be in `items` any more
        self.window: deque[Change] = deque()
        self.window_size = 0
        self.floor = 0
        self.changed = 0
        self.watchers: set[Watcher] = set()
        self.followers: list[Callable[[Change | None], None]] = []
        """Parts of this process that are told of every change, before any watcher; None = everything is new."""
        self.closed = False

    def load(self, entries: list[Item], revision: int, sealed: dict[str, str] | None = None) -> None:
        """Replace everything; the past before `revision` is not known here."""
        self.items = {item.key: item for item in entries}
        self.sealed = sealed or {}
        self._sorted, self._fresh, self._gone = sorted(self.items), [], 0
        self.window.clear()
        self.window_size = 0
        self.floor = self.changed = revision
        for follower in self.followers:
            follower(None)

    def seal(self, key: str, why: str, revision: int) -> None:
        """An object has come that nobody can read; those who watch are told to look anew."""
        items = [item for item in self.items.values() if item.key != key]
        self.load(items, revision, {**self.sealed, key: why})
        for watcher in self.watchers:
            watcher.end(Compacted(watcher.revision, revision))

    def apply(self, change: Change) -> None:
        """Bring the change in and offer it to the watchers."""
        key = change.key
        if self.sealed:
            self.sealed.pop(key, None)
        if change.item is not None:
            if key not in self.items:
                self._fresh.append(key)
            self.items[key] = change.item
        elif self.items.pop(key, None) is not None:
            self._gone += 1
        self.changed = change.revision
        window = self.window
        window.append(change)
        self.window_size += change.size
        while len(window) > WINDOW or self.window_size > WINDOW_SIZE:
            oldest = window.popleft()
            self.window_size -= oldest.size
            self.floor = oldest.revision
        for follower in self.followers:
            follower(change)
        for watcher in self.watchers:
            watcher.offer(change)
        change.frames = None

    def add(self, watcher: Watcher) -> None:
        """Offer the changes to come to a watcher, too; it is ended at once if no more are to come."""
        self.watchers.add(watcher)
        if self.closed:
            watcher.end(None)

    @property
    def keys(self) -> list[str]:
        """The keys of all objects, sorted. Sorted when somebody asks: keeping order would cost every write O(n)."""
        if self._gone:
            # Whoever was deleted and made again is in both lists, so the fresh ones are told apart first.
            self._sorted = [key for key in dict.fromkeys(self._sorted + self._fresh) if key in self.items]
            self._fresh, self._gone = [], 0
            self._sorted.sort()
        elif self._fresh:
            self._sorted += self._fresh
            self._fresh = []
            self._sorted.sort()  # merges what is sorted already in one pass
        return self._sorted

    def scan(self, scope: str, after: str = "") -> list[str]:
        """The keys that begin with `scope` and are greater than `after`, in order."""
        keys = self.keys
        low = bisect_right(keys, after) if after > scope else bisect_left(keys, scope)
        high = bisect_left(keys, scope + "\U0010ffff", low)
        return keys[low:high]

    def since(self, revision: int) -> list[Change]:
        """The changes after `revision`, which must not lie before the floor."""
        if revision >= self.changed:
            return []
        window = self.window
        low, high = 0, len(window)
        while low < high:
            middle = (low + high) // 2
            if window[middle].revision <= revision:
                low = middle + 1
            else:
                high = middle
        return [window[i] for i in range(low, len(window))]


class Unreadable(StoreUnavailable):
    """The store holds something under a key of ours that this program has not written."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} does not hold an object as this program writes it; is the store another program's?")


class Sealed(StoreUnavailable):
    """An object is encrypted, and nobody can read it; in upstream's words."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f'unable to transform key "{key}": {why}')
        self.key = key
        self.why = why


class Cache:
    """All partitions, kept up to date by one task."""

    def __init__(self, store: Store, prefixes: list[str], essential: Collection[str] = ()) -> None:
        self.store = store
        self.essential = frozenset(essential)
        """Prefixes of what must be read."""
        self.revision = 0
        self.partitions = {prefix: Partition(prefix) for prefix in prefixes}
        self.queued = 0
        """Writers who wait for another one to the same object, and so will not write before that one has."""
        self._loading: dict[Partition, list[Change | Sealed]] = {}  # changes since the revision that is being read
        self._task: asyncio.Task[None] | None = None
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._asking: asyncio.Task[int] | None = None
        self._loaded = 0  # the revision at which everything was read last

    async def start(self) -> None:
        """Read everything, then follow. Returns when reads can be answered."""
        await self._load()
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Stop following and end every watcher."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.end_watchers()

    async def end_watchers(self) -> None:
        """Tell every watcher, and those who come yet, that no more will come."""
        for partition in self.partitions.values():
            partition.closed = True
            for watcher in partition.watchers:
                watcher.end(None)

    async def add_partition(self, prefix: str) -> Partition:
        """Keep one more resource from now on. Returns when its objects can be read. Raises StoreUnavailable.

        The objects are read as of the cache's revision; what changes meanwhile is put on top of them, so that the new
        partition is complete up to the cache's revision as all others are.
        """
        if (present := self.partitions.get(prefix)) is not None:
            return present
        while True:
            partition = Partition(prefix)
            changes = self._loading[partition] = []
            revision = self.revision
            try:
                page = await self.store.range(prefix, revision=revision)
            except (Compacted, FutureRevision):
                continue
            finally:
                del self._loading[partition]
            if self._loaded > revision:  # everything was read anew, and the changes in between are not known
                continue
            if (present := self.partitions.get(prefix)) is not None:
                return present  # somebody else was faster
            items, sealed = _sorted_out(page.entries)
            partition.load(items, revision, sealed)
            for change in changes:
                if isinstance(change, Sealed):
                    partition.seal(change.key, change.why, revision)
                else:
                    partition.apply(change)
            self.partitions[prefix] = partition
            return partition

    async def unseal(self, partition: Partition) -> None:
        """Try again to read what nobody could: the key may have come back. Raises StoreUnavailable."""
        entries = [entry for key in list(partition.sealed) if (entry := await self.store.get(key)) is not None]
        # What has changed while these were read is not sealed any more, or is brought by the watch.
        items, still = _sorted_out([e for e in entries if e.key in partition.sealed and e.revision <= self.revision])
        if items:
            partition.load([*partition.items.values(), *items], self.revision, still)

    def remove_partition(self, prefix: str) -> None:
        """Forget a resource; its watchers are told that no more will come."""
        partition = self.partitions.pop(prefix, None)
        if partition is not None:
            partition.closed = True
            for watcher in partition.watchers:
                watcher.end(None)

    def partition_of(self, key: str) -> Partition | None:
        """Where an object's key belongs: below its resource's prefix stand a name, or a namespace and a name."""
        above, _, _ = key.rpartition("/")
        return self.partitions.get(key[: above.rfind("/") + 1]) or self.partitions.get(f"{above}/")

    async def wait_for(self, revision: int, patience: float | None = None) -> bool:
        """Wait until the cache has seen this revision; False when the time is up."""
        if self.revision >= revision:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = (revision, future)
        self._waiters.append(waiter)
        try:
            await asyncio.wait_for(future, patience)
        except TimeoutError:
            self._waiters.remove(waiter)
            return False
        return True

    async def consistent(self) -> None:
        """Wait until the cache holds everything that was acknowledged before this call, by any server.

        Raises StoreUnavailable.
        """
        if self.store.exclusive:
            return
        # Callers share a question only if it was asked after they came: one in flight may have been answered before.
        asking = self._asking
        if asking:
            with contextlib.suppress(Exception):
                await asyncio.shield(asking)
        if self._asking is asking or self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self.store.revision())
        revision = await asyncio.shield(self._asking)
        if not await self.wait_for(revision, PATIENCE):
            raise StoreUnavailable(f"the watch of the store is behind: at {self.revision}, the store at {revision}")

    async def _load(self) -> None:
        page = await self.store.range("/registry/")
        by_partition: dict[str, list[Entry]] = {prefix: [] for prefix in self.partitions}
        for entry in page.entries:
            partition = self.partition_of(entry.key)
            if partition:
                by_partition[partition.prefix].append(entry)
        for prefix, entries in by_partition.items():
            items, sealed = _sorted_out(entries)
            for key, why in sealed.items():
                if prefix in self.essential:
                    raise Sealed(key, why)
                log.error("%s", Sealed(key, why))
            self.partitions[prefix].load(items, page.revision, sealed)
        self._loaded = page.revision
        self._advance(page.revision)

    async def _follow(self) -> None:
        while True:
            watch = self.store.watch("", after=self.revision, receive=self._receive)
            try:
                async for batch in watch:
                    self._receive(batch)
            except Compacted:
                await self._reload()
            except Unreadable as error:
                log.error("%s; reading everything anew", error)
                await asyncio.sleep(_RETRY)
                await self._reload()
            except StoreUnavailable as error:
                log.warning("store watch: %s", error)
                await asyncio.sleep(_RETRY)
            finally:
                await watch.close()

    async def _reload(self) -> None:
        """The past is lost: read everything anew and end the watchers, who will list again."""
        while True:
            try:
                await self._load()
                break
            except StoreUnavailable as error:
                log.warning("store: %s", error)
                await asyncio.sleep(_RETRY)
        for partition in self.partitions.values():
            for watcher in partition.watchers:
                watcher.end(Compacted(watcher.revision, self.revision))

    def _receive(self, batch: list[Event]) -> None:
        for event in batch:
            self._apply(event)
        self._advance(batch[-1].revision)

    def _apply(self, event: Event) -> None:
        partition = self.partition_of(event.key)
        if partition:
            try:
                change = change_of(event, partition.items.get(event.key))
            except Sealed as sealed:
                if partition.prefix in self.essential:
                    raise
                log.error("%s", sealed)
                partition.seal(event.key, sealed.why, event.revision)
            else:
                partition.apply(change)
        elif self._loading:
            for loading, changes in self._loading.items():
                if event.key.startswith(loading.prefix):
                    try:
                        changes.append(change_of(event, None))
                    except Sealed as sealed:
                        changes.append(sealed)

    def _advance(self, revision: int) -> None:
        self.revision = max(revision, self.revision)
        if self._waiters:
            still = []
            for wanted, future in self._waiters:
                if future.done():
                    continue
                if wanted <= self.revision:
                    future.set_result(None)
                else:
                    still.append((wanted, future))
            self._waiters = still


def change_of(event: Event, previous: Item | None) -> Change:
    """A store's event with its objects as they are sent. Raises Sealed if the object can be read no more."""
    if previous is None and event.previous is not None:
        with contextlib.suppress(Sealed):
            previous = item_of(event.key, event.previous.value, event.previous.revision)
    if event.value is None:
        return Change(event.key, event.revision, None, previous, {}, len(previous.raw) if previous is not None else 0)
    item = item_of(event.key, event.value, event.revision)
    return Change(event.key, event.revision, item, previous, {}, len(item.raw))


def item_of(key: str, value: bytes, revision: int) -> Item:
    """A stored value as it is sent. Raises Sealed, or Unreadable if it is nothing of ours."""
    try:
        return Item(key, with_revision(value, revision), revision)
    except ValueError:
        if value.startswith(_ENCRYPTED):
            raise Sealed(key, getattr(value, "why", Ciphertext.why)) from None
        raise Unreadable(key) from None


def _sorted_out(entries: list[Entry]) -> tuple[list[Item], dict[str, str]]:
    """What can be read, and what cannot with the reasons."""
    items: list[Item] = []
    sealed: dict[str, str] = {}
    for entry in entries:
        try:
            items.append(item_of(entry.key, entry.value, entry.revision))
        except Sealed as error:
            sealed[entry.key] = error.why
    return items, sealed
