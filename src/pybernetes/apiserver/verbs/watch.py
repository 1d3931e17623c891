"""GET ?watch=true: every change of a collection, as it happens.

The watcher is added to the partition first and the past is read after that, so nothing falls between: what is in
`_past` ends exactly where the watcher's first change begins.

The watcher only selects changes; they are encoded here, in the request's own task. An object that cannot be encoded for
this client ends this watch, with an ERROR event, and no other.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from pybernetes.api.errors import APIError, InternalError, NotAcceptable, ResourceExpired, ServiceUnavailable
from pybernetes.net.http import PIECE, Request, Response, Stream
from pybernetes.store.base import Compacted, StoreUnavailable
from pybernetes.store.cache import change_of
from pybernetes.store.watchers import Change, Item, Watcher

from ..negotiation import JSON, output_format
from ..pipeline import unreadable
from ..pipeline.freshness import wait_until_fresh
from ..pipeline.options import ListOptions, list_options
from ..pipeline.respond import TRANSFORMS, event_encoder
from ..registry.resource_store import ResourceStore
from .list import TURN

if TYPE_CHECKING:
    from ..pipeline.watch_websocket import WatchSocket

log = logging.getLogger(__name__)

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
    select = _selection(store, options)
    frame_of = _framing(store, encode, shared)
    if store.partition.sealed:
        await unreadable.check_watch(store)
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
    # What a webhook has to convert can be selected only after that.
    selecting = _unselected if store.asks_webhook else select
    watcher: Watcher[_Selected] = Watcher(store.scope(info.namespace), selecting, store.cache.revision)
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
            async for piece in _past(store, options, watcher, select, frame_of, encode):
                await stream.send(piece)
                if len(piece) >= PIECE:
                    await request.connection.turn()
        except ConnectionError:  # the client is gone
            stream.end()
            return None
        except Exception as error:  # an object that this client's encoder cannot take, among others
            stream.write(_error(error, watcher.scope))
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
            selected = await watcher.take()
            try:
                if store.asks_webhook and selected:
                    selected = await _converted(store, selected, select)
                now = loop.time()
                frames: list[bytes] = []
                size = 0
                for each in selected:
                    frames.append(frame_of(each))
                    size += len(frames[-1])
                    if size >= PIECE:
                        sent, frames, size = frames, [], 0
                        await stream.send(sent[0] if len(sent) == 1 else b"".join(sent))
                        await request.connection.turn()
                if options.allow_bookmarks and now >= bookmark:
                    frames.append(_bookmark(store, max(watcher.revision, store.cache.revision), encode))
                    bookmark = now + BOOKMARK_EVERY
            except ConnectionError:
                stream.end()
                return None
            except Exception as error:
                stream.write(b"".join(frames))
                stream.write(_error(error, watcher.scope))
                stream.end()
                return None
            if frames:
                await stream.send(frames[0] if len(frames) == 1 else b"".join(frames))
        if watcher.ended:
            ended = watcher.ended
            if isinstance(ended, Compacted):
                ended = ResourceExpired(f"too old resource version: {watcher.revision}")
            stream.write(_error(ended, watcher.scope))
        stream.end()
    finally:
        partition.watchers.pop(watcher, None)
        alarm.clear()
    return None


class _Alarm:
    """Wakes a watcher when its time has come. Set before each wait, but made anew only when it has rung."""

    def __init__(self, watcher: Watcher[Any]) -> None:
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
    """The transport of a watch: a chunked response, or a WebSocket."""
    if request.headers.get("upgrade", "").lower() != "websocket":
        return request.connection.stream(request)
    from ..pipeline.watch_websocket import watch_socket

    return watch_socket(request)


class _Selected(msgspec.Struct, gc=False):
    """A change as one watcher sees it, not yet encoded; `item` is the deleted object for DELETED.

    `frames` has what other watchers of the change have encoded, and lives until the last of them has taken it.
    """

    kind: str
    item: Item
    change: Change
    frames: dict[Any, bytes | None] | None


def _error(error: Exception, scope: str) -> bytes:
    """The last event of a watch that cannot go on. What is not an API error is logged: it is a fault of ours."""
    if not isinstance(error, APIError):
        log.error("watch of %s: an object cannot be encoded", scope, exc_info=error)
        error = InternalError(str(error) or type(error).__name__)
    return b"%b%b}\n" % (_FRAME["ERROR"], msgspec.json.encode(error.status()))


def _unselected(change: Change) -> _Selected | None:
    """Keep every change, to be selected when a webhook has converted it."""
    item = change.item or change.previous
    return None if item is None else _Selected("", item, change, None)


async def _converted(
    store: ResourceStore, waiting: list[_Selected], select: Callable[[Change], _Selected | None]
) -> list[_Selected]:
    """The changes that are selected once their objects are converted. Raises APIError if the webhook fails."""
    changes = [each.change for each in waiting]
    await store.ready([item for change in changes for item in (change.item, change.previous) if item is not None])
    return [selected for change in changes if (selected := select(change)) is not None]


def _selection(store: ResourceStore, options: ListOptions) -> Callable[[Change], _Selected | None]:
    """The change as this watcher sees it: entering its selection is ADDED, leaving it is DELETED."""
    selects = options.selects
    attributes = store.attributes
    floor = options.resource_version or 0

    def select(change: Change) -> _Selected | None:
        if change.revision <= floor:  # the client was ahead of this server
            return None
        item, previous = change.item, change.previous
        if selects:
            if item is not None and not options.matches(attributes(item)):
                item = None
            if previous is not None and not options.matches(attributes(previous)):
                previous = None
        if item is not None:
            return _Selected("ADDED" if previous is None else "MODIFIED", item, change, change.frames)
        if previous is not None:
            return _Selected("DELETED", previous, change, change.frames)
        return None

    return select


def _framing(
    store: ResourceStore, encode: Callable[[bytes], bytes], shared: tuple[str, ...] | None
) -> Callable[[_Selected], bytes]:
    """How a selected change is encoded. Watchers with the same `shared` form encode a change once."""

    def frame_of(selected: _Selected) -> bytes:
        kind, frames = selected.kind, selected.frames
        if shared is not None and frames is not None:
            key = (kind, *shared)
            frame = frames.get(key)
            if frame is None:
                frame = frames[key] = _frame(store, kind, _as_of(store, selected), encode)
            return frame
        return _frame(store, kind, _as_of(store, selected), encode)

    return frame_of


def _as_of(store: ResourceStore, selected: _Selected) -> Item:
    """The object to show: of a deleted one the last state, at the revision of its deletion."""
    if selected.kind == "DELETED":
        return store.deleted(selected.item, selected.change.revision)
    return selected.item


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
    watcher: Watcher[_Selected],
    select: Callable[[Change], _Selected | None],
    frame_of: Callable[[_Selected], bytes],
    encode: Callable[[bytes], bytes],
) -> AsyncIterator[bytes]:
    """The events before the watcher's first change: the state, or the changes since a revision."""
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
        for number, item in enumerate(items, 1):
            if not number % TURN:
                await asyncio.sleep(0)
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
            selected = select(change)
            if selected is not None:
                yield frame_of(selected)


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
