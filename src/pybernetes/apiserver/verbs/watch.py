"""GET ?watch=true: every change of a collection, as it happens.

The watcher is added to the partition first and the past is read after that, so nothing falls between: what is in
`_past` ends exactly where the watcher's first change begins.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import msgspec

from pybernetes.api.errors import APIError, NotAcceptable, ResourceExpired, ServiceUnavailable
from pybernetes.net.http import PIECE, Request, Response, Stream
from pybernetes.store.base import Compacted, StoreUnavailable
from pybernetes.store.cache import Change, Item, Watcher, change_of

from ..negotiation import JSON, output_format
from ..output import TRANSFORMS, event_encoder
from ..registry.resource_store import ResourceStore
from . import sealed
from .freshness import wait_until_fresh
from .options import ListOptions, list_options

if TYPE_CHECKING:
    from .watch_socket import WatchSocket

BOOKMARK_EVERY = 60.0  # seconds; upstream's bookmarkFrequency
_OF_A_NODE = "spec.nodeName="  # in a field selector
_CATCH_UP = 30.0  # seconds in which the store must hand out the past

_FRAME = {
    kind: b'{"type":"%b","object":' % kind.encode() for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}


async def watch(store: ResourceStore, request: Request) -> Response | None:
    """Stream the changes until the time is up or the client leaves."""
    info = request.info
    options = list_options(store, info.query, watch=True)
    form = output_format(request.headers, info.query, transforms=TRANSFORMS)
    if form.media != JSON:
        raise NotAcceptable(("application/json;stream=watch",))
    encode = event_encoder(request, store.resource, form)
    shared = None if form.transform == "Table" else (form.transform, form.version, store.form)
    view = _view(store, options, encode, shared)
    if store.partition.sealed:
        await sealed.check_watch(store)
    start = options.resource_version
    late: APIError | None = None
    if not start:  # "" and "0": the state first
        await (store.consistent() if start is None else asyncio.sleep(0))
    elif options.send_initial_events:
        try:
            await wait_until_fresh(store, start)
        except APIError as error:  # upstream has begun its answer by then, and tells of it there
            late = error

    partition = store.partition
    waiting: list[Change] = []  # for a webhook that has to convert them
    seen = _put_off(waiting) if store.asks_webhook else view
    watcher = Watcher(store.scope(info.namespace), seen, store.cache.revision)
    name = info.object_name
    watcher.narrow = bool(name) or _OF_A_NODE in info.query.get("fieldSelector", "")
    watcher.ending = f"/{name}" if name else ""
    partition.add(watcher)
    alarm = _Alarm(watcher)
    try:
        stream = _stream(request)
        if isinstance(stream, Response):
            return stream
        try:
            if late is not None:
                raise late
            async for piece in _past(store, options, watcher, view, encode):
                stream.write(piece)
                await stream.drain()
                if len(piece) >= PIECE:
                    await request.connection.turn()
        except APIError as error:
            stream.write(b"%b%b}\n" % (_FRAME["ERROR"], msgspec.json.encode(error.status())))
            stream.end()
            return None
        if request.initialized is not None:
            request.initialized()
        loop = asyncio.get_running_loop()
        now = loop.time()
        seconds = options.timeout_seconds
        usual = request.connection.server.timeouts.lasting * (1 + random.random())
        end = now + (seconds or usual)
        bookmark = now + BOOKMARK_EVERY if options.allow_bookmarks else end
        while not watcher.closed and now < end:
            alarm.set(min(bookmark, end))
            frames = await watcher.take()
            if waiting:
                frames = await _converted(store, waiting, view)
            now = loop.time()
            if options.allow_bookmarks and now >= bookmark:
                frames.append(_bookmark(store, max(watcher.revision, store.cache.revision), encode))
                bookmark = now + BOOKMARK_EVERY
            if frames:
                stream.write(frames[0] if len(frames) == 1 else b"".join(frames))
                await stream.drain()
        if watcher.ended:
            expired = ResourceExpired(f"too old resource version: {watcher.revision}")
            stream.write(b"%b%b}\n" % (_FRAME["ERROR"], msgspec.json.encode(expired.status())))
        stream.end()
    finally:
        partition.watchers.discard(watcher)
        alarm.clear()
    return None


class _Alarm:
    """Wakes a watcher when its time has come. Set before each wait, but made anew only when it has rung."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._timer: asyncio.TimerHandle | None = None

    def set(self, when: float) -> None:
        """Ring then; a moment too early if the loop's clock is coarse, so that it is set again."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(when, self._ring)

    def clear(self) -> None:
        """Do not ring any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        self._timer = None
        self._watcher.wake()


def _stream(request: Request) -> Stream | WatchSocket | Response:
    """What the client wishes to read from: one long answer, or a WebSocket."""
    if request.headers.get("upgrade", "").lower() != "websocket":
        return request.connection.stream(request)
    from .watch_socket import watch_socket

    return watch_socket(request)


def _put_off(waiting: list[Change]) -> Callable[[Change], bytes | None]:
    """A view that only keeps the changes."""

    def view(change: Change) -> bytes:
        waiting.append(change)
        return b" "

    return view


async def _converted(
    store: ResourceStore, waiting: list[Change], view: Callable[[Change], bytes | None]
) -> list[bytes]:
    """How changes look once their objects are converted. What cannot be is told as an error in its place."""
    changes = waiting[:]
    waiting.clear()
    try:
        await store.ready([item for change in changes for item in (change.item, change.previous) if item is not None])
    except APIError as error:
        return [b"%b%b}\n" % (_FRAME["ERROR"], msgspec.json.encode(error.status()))]
    return [frame for change in changes if (frame := view(change)) is not None]


def _view(
    store: ResourceStore, options: ListOptions, encode: Callable[[bytes], bytes], shared: tuple[str, ...] | None
) -> Callable[[Change], bytes | None]:
    """How a change looks to this watcher: entering its selection is ADDED, leaving it is DELETED."""
    selects = options.selects
    attributes = store.attributes
    floor = options.resource_version or 0

    def view(change: Change) -> bytes | None:
        if change.revision <= floor:  # the client was ahead of this server
            return None
        item, previous = change.item, change.previous
        if selects:
            if item is not None and not options.matches(attributes(item)):
                item = None
            if previous is not None and not options.matches(attributes(previous)):
                previous = None
        if item is not None:
            kind = "ADDED" if previous is None else "MODIFIED"
        elif previous is not None:
            kind = "DELETED"
        else:
            return None
        frames = change.frames
        if shared is None or frames is None:
            return _frame(store, kind, item or store.deleted(previous, change.revision), encode)
        key = (kind, *shared)
        frame = frames.get(key)
        if frame is None:
            frame = _frame(store, kind, item or store.deleted(previous, change.revision), encode)
            frames[key] = frame
        return frame

    return view


def _frame(store: ResourceStore, kind: str, item: Item, encode: Callable[[bytes], bytes]) -> bytes:
    return b"%b%b}\n" % (_FRAME[kind], encode(store.raw(item)))


def _bookmark(
    store: ResourceStore, revision: int, encode: Callable[[bytes], bytes], *, initial_end: bool = False
) -> bytes:
    resource = store.resource
    note = b',"annotations":{"k8s.io/initial-events-end":"true"}' if initial_end else b""
    raw = b'{"kind":"%b","apiVersion":"%b","metadata":{"resourceVersion":"%d"%b}}' % (
        resource.kind.encode(),
        resource.api_version.encode(),
        revision,
        note,
    )
    return b"%b%b}\n" % (_FRAME["BOOKMARK"], encode(raw))


async def _past(
    store: ResourceStore,
    options: ListOptions,
    watcher: Watcher,
    view: Callable[[Change], bytes | None],
    encode: Callable[[bytes], bytes],
) -> AsyncIterator[bytes]:
    """What comes before the watcher's first change: the state, or the changes since a revision."""
    revision = watcher.revision
    start = options.resource_version
    wants_state = options.send_initial_events if options.send_initial_events is not None else not start
    if wants_state:
        partition = store.partition
        items = [partition.items[key] for key in partition.scan(watcher.scope)]
        if store.asks_webhook:
            await store.ready(items)
        frames: list[bytes] = []
        size = 0
        for item in items:
            if not options.selects or options.matches(store.attributes(item)):
                frames.append(_frame(store, "ADDED", item, encode))
                size += len(frames[-1])
                if size >= PIECE:
                    yield b"".join(frames)
                    frames, size = [], 0
        yield b"".join(frames)
        if options.send_initial_events and options.allow_bookmarks:
            yield _bookmark(store, revision, encode, initial_end=True)
        return
    if not start or start >= revision:
        return
    async for change in _changes(store, start, revision):
        if change.key.startswith(watcher.scope):
            if store.asks_webhook:
                await store.ready([item for item in (change.item, change.previous) if item is not None])
            frame = view(change)
            if frame is not None:
                yield frame


async def _changes(store: ResourceStore, start: int, end: int) -> AsyncIterator[Change]:
    """The changes of the partition with start < revision <= end."""
    partition = store.partition
    if start >= partition.floor:
        for change in partition.since(start):
            if change.revision <= end:
                yield change
        return
    # Not in memory: from the store's history, which is read without a prefix because only then a change with the
    # revision `end` is sure to come.
    history = store.cache.store.watch("", after=start)
    try:
        async with asyncio.timeout(_CATCH_UP):
            async for batch in history:
                for event in batch:
                    if event.revision <= end and event.key.startswith(partition.prefix):
                        yield change_of(event, None)
                if batch[-1].revision >= end:
                    return
    except Compacted as error:
        raise ResourceExpired(f"too old resource version: {start} ({error.compacted})") from error
    except StoreUnavailable as error:
        raise ServiceUnavailable(str(error)) from error
    except TimeoutError as error:
        raise ResourceExpired(f"too old resource version: {start}") from error
    finally:
        await history.close()
