"""The watch cache: everything in the store, as the bytes that are sent, and the recent changes.

One task follows the store's watch and applies each batch; so every partition is complete up to `Cache.revision`.
Reads never touch the disk. A write returns to its caller only after the cache has seen it (`wait_for`), so that
the writer of an object can read it.

The cache follows the whole store, not only its own keys: only then does it learn of every revision, and `consistent`
waits for the latest one, even if other programs keep keys in the same etcd.

An object that cannot be decrypted, because its key is missing, is `sealed`: it is known by its name, and what is said
about it is left to who asks. A resource that has one has no watchers, as they would not see it all. What is `essential`
must be read, all of it: with one such object sealed there is no cache.

Bytes under a key of ours that are no object (another program wrote them to a shared etcd) are set aside as `foreign`: a
GET of that name says so, lists and watches go on without it.

Nothing of one client or one object runs here in a way that ends the work for others: watchers only select (`watchers`),
a follower that raises is logged, and the task itself is supervised. When it fails it reads everything anew; `check`
says so while it keeps failing.

Invariants of a `Partition`:
- `keys` (sorted when asked for) are exactly the keys of `items`, and none of them is in `sealed` or `foreign`;
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

from pybernetes.component.tasks import Tasks

from .base import Ciphertext, Compacted, Entry, Event, FutureRevision, Store, StoreUnavailable
from .watchers import Change, Item, Watcher

log = logging.getLogger(__name__)

WINDOW = 4096  # changes kept in memory for each partition; older ones are read from the store
WINDOW_AGE = 75.0  # seconds that a change is kept at least, if there is room; upstream's
WINDOW_SIZE = 32 << 20  # bytes of objects in these changes
PATIENCE = 10.0  # seconds for the watch of a shared store to show what its revision says is there
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


class Partition:
    """The objects of one resource."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.items: dict[str, Item] = {}
        self.sealed: dict[str, str] = {}
        """Keys of objects that cannot be decrypted, and why."""
        self.foreign: dict[str, str] = {}
        """Keys whose bytes are no object, and why."""
        self._sorted: list[str] = []  # sorted, but for what `_fresh` and `_gone` say
        self._fresh: list[str] = []  # keys of `items` that are not in `_sorted` yet
        self._gone = 0  # keys of `_sorted` that may not be in `items` any more
        self.window: deque[Change] = deque()
        self.window_size = 0
        self.floor = 0
        self.changed = 0
        self.watchers: dict[Watcher[Any], None] = {}
        self.followers: list[Callable[[Change | None], None]] = []
        """Callbacks for every change, before any watcher; None = everything is new."""
        self.closed = False

    def load(self, contents: Contents, revision: int) -> None:
        """Replace everything; the past before `revision` is not known here."""
        self.items = {item.key: item for item in contents.items}
        self.sealed = contents.sealed
        self.foreign = contents.foreign
        self._sorted, self._fresh, self._gone = sorted(self.items), [], 0
        self.window.clear()
        self.window_size = 0
        self.floor = self.changed = revision
        self._notify(None)

    def seal(self, key: str, why: str, revision: int) -> None:
        """An object has come that cannot be decrypted; the watches end, so that clients list again."""
        items = [item for item in self.items.values() if item.key != key]
        self.load(Contents(items, {**self.sealed, key: why}, self.foreign), revision)
        for watcher in self.watchers:
            watcher.end(Compacted(watcher.revision, revision))

    def apply(self, change: Change) -> None:
        """Bring the change in and offer it to the watchers."""
        key = change.key
        if self.sealed:
            self.sealed.pop(key, None)
        if self.foreign:
            self.foreign.pop(key, None)
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
        if self.followers:
            self._notify(change)
        for watcher in self.watchers:
            watcher.offer(change)
        change.frames = None

    def _notify(self, change: Change | None) -> None:
        """Call the followers; one that raises is logged, and the others are called."""
        for follower in self.followers:
            try:
                follower(change)
            except Exception:
                what = "everything" if change is None else f"{change.key} at revision {change.revision}"
                log.exception("%s: a follower cannot take %s", self.prefix, what)

    def set_aside(self, key: str, why: str, revision: int) -> None:
        """The key holds bytes that are no object. To those who watch, the object that was there is gone."""
        previous = self.items.get(key)
        if previous is not None:
            self.apply(Change(key, revision, None, previous, {}, len(previous.raw)))
        self.foreign[key] = why

    def forget_window(self, upto: int) -> None:
        """Forget changes up to a revision; who asks for them yet reads them from the store."""
        window = self.window
        while window and window[0].revision <= upto:
            oldest = window.popleft()
            self.window_size -= oldest.size
            self.floor = oldest.revision

    def add(self, watcher: Watcher[Any]) -> None:
        """Offer the changes to come to a watcher, too; it is ended at once if no more are to come."""
        self.watchers[watcher] = None
        if self.closed:
            watcher.end(None)

    @property
    def keys(self) -> list[str]:
        """The keys of all objects, sorted. Sorted on demand: keeping order would cost every write O(n)."""
        if self._gone:
            # An object that was deleted and created again is in both lists, so the fresh ones are separated first.
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


class Contents(msgspec.Struct, gc=False):
    """The objects read of one resource, and the keys of unusable ones, with the reasons."""

    items: list[Item]
    sealed: dict[str, str]
    foreign: dict[str, str]


class Foreign(StoreUnavailable):
    """The store holds something under a key of ours that is no object."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key} does not hold an object ({why}); it is set aside. Did another program write it?")
        self.key = key
        self.why = why


class Sealed(StoreUnavailable):
    """An object is encrypted with a missing key; upstream's wording."""

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
        self._loading: dict[Partition, list[Change | Sealed | Foreign]] = {}  # since the revision that is being read
        self._ages: deque[tuple[float, int]] = deque()
        """Times, and the revision that the cache was at then; the first is WINDOW_AGE old."""
        self._tasks = Tasks("watch cache")
        self._incomplete = False
        """Whether a batch was applied in part; then only reading everything anew helps."""
        self._away = ""
        """Why everything cannot be read anew, while that is tried."""
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._asking: asyncio.Task[int] | None = None
        self._loaded = 0  # the revision at which everything was read last

    async def start(self) -> None:
        """Read everything, then follow. Returns when reads can be answered."""
        await self._load()
        self._tasks.start("watch-cache-replication", self._follow)

    async def close(self) -> None:
        """Stop following and end every watcher."""
        await self._tasks.stop()
        await self.end_watchers()

    def check(self) -> str:
        """The reason why the cache does not follow the store, or an empty text: for a health check."""
        return self._tasks.check() or self._away

    def age(self, now: float) -> None:
        """Forget changes that are older than WINDOW_AGE; to be called now and then. Most watches begin at the present,
        and those of resources that change often would keep 32 MB each.
        """
        self._ages.append((now, self.revision))
        while len(self._ages) > 1 and self._ages[1][0] <= now - WINDOW_AGE:
            self._ages.popleft()
        then, revision = self._ages[0]
        if then <= now - WINDOW_AGE:
            for partition in self.partitions.values():
                partition.forget_window(revision)

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
                return present  # another writer was faster
            partition.load(_sorted_out(page.entries), revision)
            for change in changes:
                if isinstance(change, Sealed):
                    partition.seal(change.key, change.why, revision)
                elif isinstance(change, Foreign):
                    partition.set_aside(change.key, change.why, revision)
                else:
                    partition.apply(change)
            self.partitions[prefix] = partition
            return partition

    async def unseal(self, partition: Partition) -> None:
        """Try again to decrypt sealed objects: the key may have come back. Raises StoreUnavailable."""
        entries = [entry for key in list(partition.sealed) if (entry := await self.store.get(key)) is not None]
        # What has changed while these were read is not sealed any more, or is brought by the watch.
        read = _sorted_out([e for e in entries if e.key in partition.sealed and e.revision <= self.revision])
        if read.items or read.foreign:
            items = [*partition.items.values(), *read.items]
            partition.load(Contents(items, read.sealed, {**partition.foreign, **read.foreign}), self.revision)

    def remove_partition(self, prefix: str) -> None:
        """Forget a resource; its watches end."""
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
            contents = _sorted_out(entries)
            for key, why in contents.sealed.items():
                if prefix in self.essential:
                    raise Sealed(key, why)
                log.error("%s", Sealed(key, why))
            self.partitions[prefix].load(contents, page.revision)
        self._loaded = page.revision
        self._advance(page.revision)

    async def _follow(self) -> None:
        while True:
            if self._incomplete:
                await self._reload()
                self._incomplete = False
            watch = self.store.watch("", after=self.revision, receive=self._receive)
            try:
                async for batch in watch:
                    self._receive(batch)
            except Compacted:
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
                self._away = ""
                break
            except StoreUnavailable as error:
                log.warning("store: %s", error)
                self._away = str(error)
                await asyncio.sleep(_RETRY)
        for partition in self.partitions.values():
            for watcher in partition.watchers:
                watcher.end(Compacted(watcher.revision, self.revision))

    def _receive(self, batch: list[Event]) -> None:
        if self._incomplete:
            raise RuntimeError("a batch was applied in part; everything is read anew")
        try:
            for event in batch:
                self._apply(event)
        except Exception:
            log.exception("revision %d cannot be applied", batch[-1].revision)
            self._incomplete = True
            raise
        self._advance(batch[-1].revision)

    def _apply(self, event: Event) -> None:
        partition = self.partition_of(event.key)
        if partition:
            try:
                if not self.store.exclusive and event.value is not None:
                    _check(event.key, event.value)
                change = change_of(event, partition.items.get(event.key))
            except Foreign as foreign:
                log.error("%s", foreign)
                partition.set_aside(event.key, foreign.why, event.revision)
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
                    except (Sealed, Foreign) as unusable:
                        changes.append(unusable)

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
    """A store's event with its objects as they are sent. Raises Sealed or Foreign if there is no object to be sent."""
    if previous is None and event.previous is not None:
        with contextlib.suppress(Sealed, Foreign):
            previous = item_of(event.key, event.previous.value, event.previous.revision)
    if event.value is None:
        return Change(event.key, event.revision, None, previous, {}, len(previous.raw) if previous is not None else 0)
    item = item_of(event.key, event.value, event.revision)
    return Change(event.key, event.revision, item, previous, {}, len(item.raw))


def item_of(key: str, value: bytes, revision: int) -> Item:
    """A stored value as it is sent. Raises Sealed, or Foreign if it is no object."""
    try:
        return Item(key, with_revision(value, revision), revision)
    except ValueError as error:
        if value.startswith(_ENCRYPTED):
            raise Sealed(key, getattr(value, "why", Ciphertext.why)) from None
        raise Foreign(key, str(error)) from None


class _Metadata(msgspec.Struct, gc=False):
    name: str


class _Stored(msgspec.Struct, gc=False):
    """The least that every stored object has."""

    kind: str
    metadata: _Metadata


_stored = msgspec.json.Decoder(_Stored).decode


def _check(key: str, value: bytes) -> None:
    """Raise Foreign if the value is neither JSON of an object with a kind and a name, nor encrypted."""
    try:
        _stored(value)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        if not value.startswith(_ENCRYPTED):
            raise Foreign(key, str(error)) from None


def _sorted_out(entries: list[Entry]) -> Contents:
    """Split entries into usable objects and unusable ones with the reasons."""
    contents = Contents([], {}, {})
    for entry in entries:
        try:
            _check(entry.key, entry.value)
            contents.items.append(item_of(entry.key, entry.value, entry.revision))
        except Sealed as error:
            contents.sealed[entry.key] = error.why
        except Foreign as error:
            log.error("%s", error)
            contents.foreign[entry.key] = error.why
    return contents
