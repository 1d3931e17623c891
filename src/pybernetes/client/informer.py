"""A copy of a collection that follows the server, and tells about changes.

List, then watch; when the watch ends, go on from the last revision seen; when that is too old (410) or anything else
goes wrong, list again after a back-off with jitter, and tell only what differs. With a server that can stream lists,
the list is the beginning of the watch: one request, and objects arrive one by one.

**Objects in the cache are shared: never change one, `copy` it first.** Handlers run in the event
loop, in the order of the changes, and must not block: note the key in a queue and return. Between the change of the
cache and the call of the handlers nothing else runs: a handler sees the cache as of its event.

A handler hears of an object in this order: added, updated any number of times, deleted; an event that it fails on is
delivered to it again (`event_handlers.py`). What happened while the watch was interrupted is delivered as the
difference; an object that went away unseen is delivered as deleted with its last known state, which may not have been
its final one (client-go's DeletedFinalStateUnknown). One that was replaced by another of the same name may be delivered
as an update with another uid.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from pybernetes.api import errors, scheme
from pybernetes.api.base import Kind
from pybernetes.trace import recorder
from pybernetes.trace.recorder import CURRENT

from .backoff import Backoff
from .clock import Clock
from .codec import List
from .event_handlers import Handler
from .http import ConnectionFailed
from .keys import Key, controller_of, key_of
from .watch import BOOKMARK, DELETED, INITIAL_EVENTS_END, Event, Watch

K = TypeVar("K", bound=Kind)
Index = Callable[[K], Iterable[str]]

WATCH_SECONDS = 300  # client-go's minimum; up to as much again at random
WATCH_GRACE = 30  # a server that does not end a watch in time is not there any more
SHORT_WATCH = 1.0  # a watch that ends sooner without an event is a failure, or it would be repeated in a tight loop
NAMESPACE = "namespace"
CONTROLLER = "controller"
log = logging.getLogger(__name__)


class Source(Protocol[K]):
    """Where the objects come from."""

    async def list(self, *, limit: int, continue_token: str) -> List[K]:
        """A page of them."""
        ...

    def watch(self, *, resource_version: str, timeout_seconds: int, send_initial_events: bool) -> Watch[K]:
        """Their changes."""
        ...


class Informer(Generic[K]):
    """The cache of one resource. Made and shared by an `InformerFactory`."""

    def __init__(
        self,
        name: str,
        source: Source[K],
        clock: Clock,
        *,
        transform: Callable[[K], None] | None = None,
        detect_mutations: bool = False,
    ) -> None:
        self.name = name
        self._source = source
        self.clock = clock
        self._transform = transform
        self._items: dict[Key, K] = {}
        self._indexes: dict[str, tuple[Index[K], dict[str, dict[Key, K]]]] = {}
        """For each index the function and the objects by value. Always in step with `_items`."""
        self._handlers: dict[Handler[K], None] = {}
        self._synced = asyncio.Event()
        self._resource_version = ""
        """The last revision seen; empty = list first."""
        self._streaming = True
        self._originals: dict[Key, bytes] | None = {} if detect_mutations else None
        self._mutated: list[str] = []
        self.add_index(NAMESPACE, _namespace)

    # -- reading

    @property
    def has_synced(self) -> bool:
        """Whether the cache has been filled once, and the handlers called."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return when the cache has been filled."""
        await self._synced.wait()

    @property
    def resource_version(self) -> str:
        """The last revision seen."""
        return self._resource_version

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Key) -> K | None:
        """The object, if it is there. Shared: copy before changing."""
        return self._items.get(key)

    def named(self, name: str, namespace: str = "") -> K | None:
        """The object, if it is there. Shared: copy before changing."""
        return self._items.get(Key(namespace, name))

    def items(self) -> list[K]:
        """All objects. Shared: copy before changing."""
        return list(self._items.values())

    def in_namespace(self, namespace: str) -> list[K]:
        """All objects of a namespace."""
        return self.by_index(NAMESPACE, namespace)

    def controlled_by(self, owner: Kind) -> list[K]:
        """All objects that this owner (by its uid) controls; the index is made when first asked for."""
        self.add_index(CONTROLLER, _controller)
        return self.by_index(CONTROLLER, (owner.metadata.uid if owner.metadata else None) or "")

    def orphans(self, namespace: str) -> list[K]:
        """All objects of a namespace without a controller."""
        self.add_index(CONTROLLER, _controller)
        return self.by_index(CONTROLLER, f"orphans/{namespace}")

    def by_index(self, name: str, value: str) -> list[K]:
        """All objects that the index has under this value."""
        return list(self._indexes[name][1].get(value, {}).values())

    def index_values(self, name: str) -> list[str]:
        """All values of an index."""
        return list(self._indexes[name][1])

    def add_index(self, name: str, function: Index[K]) -> None:
        """Find objects by what the function answers for them (none, one or several texts). Twice is once."""
        if name in self._indexes:
            return
        values: dict[str, dict[Key, K]] = {}
        self._indexes[name] = (function, values)
        for key, obj in self._items.items():
            self._index(function, values, key, None, obj)

    # -- hearing of changes

    def add_handler(
        self,
        on_add: Callable[[K], None] | None = None,
        on_update: Callable[[K, K], None] | None = None,
        on_delete: Callable[[K], None] | None = None,
        *,
        on_vanished: Callable[[K], None] | None = None,
        resync: float = 0.0,
    ) -> Handler[K]:
        """Handle changes; existing objects are delivered as added, now.

        `on_vanished` is called instead of `on_delete` when the deletion was not seen and the object may not be the
        final state. `resync`: seconds after which all objects are delivered again as updates from themselves to
        themselves.
        """
        handler = self.new_handler(on_add, on_update, on_delete, on_vanished)
        self._handlers[handler] = None
        for obj in list(self._items.values()):
            handler.added(obj)
        if resync > 0:
            self._resync_later(handler, resync)
        return handler

    def new_handler(
        self,
        on_add: Callable[[K], None] | None,
        on_update: Callable[[K, K], None] | None,
        on_delete: Callable[[K], None] | None,
        on_vanished: Callable[[K], None] | None,
    ) -> Handler[K]:
        """A handler without automatic events: for callers that pass events on, and want failures retried."""
        return Handler(self, on_add, on_update, on_delete, on_vanished)

    def forget_handler(self, handler: Handler[K]) -> None:
        """Deliver no more to a handler (called by it)."""
        self._handlers.pop(handler, None)

    def _resync_later(self, handler: Handler[K], period: float) -> None:
        def resync() -> None:
            for obj in list(self._items.values()):
                handler.updated(obj, obj)
            self._resync_later(handler, period)

        handler.timer = self.clock.call_later(period, resync)

    # -- following the server

    async def run(self) -> None:
        """Follow the server until cancelled."""
        backoff = Backoff(self.clock)
        while True:
            try:
                if self._resource_version:
                    await self._follow()
                else:
                    await self._fill()
                backoff.succeeded()
                continue
            except (errors.ResourceExpired, errors.Gone) as error:
                log.info("%s: the revision is gone, listing again: %s", self.name, error)
                self._resource_version = ""
            except errors.TooManyRequests as error:
                log.info("%s: the server is busy: %s", self.name, error)
            except (OSError, TimeoutError) as error:  # the server is away: what we have seen is still good
                log.info("%s: %s", self.name, error or type(error).__name__)
            except errors.APIError as error:
                log.warning("%s: %s", self.name, error)
                self._resource_version = ""
            except Exception:
                log.exception("%s: following failed", self.name)
                self._resource_version = ""
            await self.clock.sleep(backoff.next())

    async def _fill(self) -> None:
        if self._streaming:
            try:
                await self._fill_by_stream()
                return
            except (errors.BadRequest, errors.Invalid, errors.MethodNotSupported) as error:
                log.info("%s: the server cannot stream lists, paging instead: %s", self.name, error)
                self._streaming = False
        await self._fill_by_pages()

    async def _fill_by_stream(self) -> None:
        found: dict[Key, K] = {}
        seconds = _watch_seconds()
        async with (
            asyncio.timeout(seconds + WATCH_GRACE),
            self._source.watch(resource_version="", timeout_seconds=seconds, send_initial_events=True) as watch,
        ):
            events = aiter(watch)
            async for event in events:
                obj = event.object
                if event.type == BOOKMARK:
                    if ((obj.metadata and obj.metadata.annotations) or {}).get(INITIAL_EVENTS_END) == "true":
                        self._replace(found, _version(obj))
                        break
                elif event.type == DELETED:
                    found.pop(key_of(obj), None)
                else:
                    found[key_of(obj)] = obj
            else:
                raise ConnectionFailed("the watch ended before everything was sent")
            async for event in events:
                self._apply(event)

    async def _fill_by_pages(self) -> None:
        found: dict[Key, K] = {}
        token = ""
        while True:
            page = await self._source.list(limit=500, continue_token=token)
            for obj in page.items or ():
                found[key_of(obj)] = obj
            token = page.continue_token
            if not token:
                break
        self._replace(found, page.resource_version)

    async def _follow(self) -> None:
        began = self.clock.monotonic()
        seen = False
        seconds = _watch_seconds()
        async with (
            asyncio.timeout(seconds + WATCH_GRACE),
            self._source.watch(
                resource_version=self._resource_version, timeout_seconds=seconds, send_initial_events=False
            ) as watch,
        ):
            async for event in watch:
                seen = True
                self._apply(event)
        if not seen and self.clock.monotonic() - began < SHORT_WATCH:
            raise ConnectionFailed("the watch ended at once")

    def _apply(self, event: Event[K]) -> None:
        """Change the cache as the event says. What the handlers begin is caused by the event's revision."""
        if recorder.RECORDER is None or event.type == BOOKMARK:
            return self._change(event)
        token = CURRENT.set(_revision(event.object))
        try:
            return self._change(event)
        finally:
            CURRENT.reset(token)

    def _change(self, event: Event[K]) -> None:
        obj = event.object
        version = _version(obj)
        if event.type == BOOKMARK:
            self._resource_version = version
            return
        key = key_of(obj)
        if event.type == DELETED:
            self._prepare(obj)
            old = self._items.get(key)
            if old is not None:
                self._forget(key)
            self._resource_version = version
            if old is not None:
                for handler in list(self._handlers):
                    handler.deleted(obj)
        else:
            self._resource_version = version
            self._put(key, obj)

    def _replace(self, found: dict[Key, K], version: str) -> None:
        """Make the cache what the list says, and tell the difference."""
        self._resource_version = version
        for key, old in list(self._items.items()):
            if key not in found:
                self._forget(key)
                for handler in list(self._handlers):
                    handler.vanished(old)
        for key, obj in found.items():
            known = self._items.get(key)
            if known is None or _version(known) != _version(obj):
                token = CURRENT.set(_revision(obj) if recorder.RECORDER is not None else None)
                self._put(key, obj)
                CURRENT.reset(token)
        self._synced.set()

    def _put(self, key: Key, obj: K) -> None:
        self._prepare(obj)
        old = self._items.get(key)
        self._items[key] = obj
        for function, values in self._indexes.values():
            self._index(function, values, key, old, obj)
        if self._originals is not None:
            self._check(key, old)
            self._originals[key] = scheme.encoder.encode(obj)
        for handler in list(self._handlers):
            if old is None:
                handler.added(obj)
            else:
                handler.updated(old, obj)

    def _forget(self, key: Key) -> None:
        old = self._items.pop(key)
        for function, values in self._indexes.values():
            self._index(function, values, key, old, None)
        if self._originals is not None:
            self._check(key, old)
            del self._originals[key]

    def _index(
        self, function: Index[K], values: dict[str, dict[Key, K]], key: Key, old: K | None, new: K | None
    ) -> None:
        before = self._values(function, old) if old is not None else set()
        after = self._values(function, new) if new is not None else set()
        for value in before - after:
            entries = values[value]
            del entries[key]
            if not entries:
                del values[value]
        if new is not None:
            for value in after:
                values.setdefault(value, {})[key] = new

    def _values(self, function: Index[K], obj: K) -> set[str]:
        try:
            return set(function(obj))
        except Exception:  # this object is found by no value; the others are not concerned
            log.exception("%s: %s cannot be indexed", self.name, key_of(obj))
            return set()

    def _prepare(self, obj: K) -> None:
        if self._transform:
            self._transform(obj)

    # -- finding who changes what is shared

    def mutations(self) -> list[str]:
        """With `detect_mutations`: objects in the cache that a handler has changed."""
        for key, obj in self._items.items():
            self._check(key, obj)
        return self._mutated

    def _check(self, key: Key, obj: K | None) -> None:
        if self._originals is None:
            return
        original = self._originals.get(key)
        if obj is not None and original is not None and scheme.encoder.encode(obj) != original:
            self._mutated.append(f"{self.name} {key}: {original!r} became {scheme.encoder.encode(obj)!r}")


def _watch_seconds() -> int:
    return int(WATCH_SECONDS * (1 + random.random()))


def _version(obj: Kind) -> str:
    return (obj.metadata.resource_version if obj.metadata else None) or ""


def _revision(obj: Kind) -> int | None:
    version = _version(obj)
    return int(version) if version.isdecimal() else None


def _namespace(obj: Kind) -> Iterator[str]:
    yield (obj.metadata.namespace if obj.metadata else None) or ""


def _controller(obj: Kind) -> Iterator[str]:
    reference = controller_of(obj)
    if reference is not None:
        yield reference.uid or ""
    else:
        yield f"orphans/{(obj.metadata.namespace if obj.metadata else None) or ''}"
