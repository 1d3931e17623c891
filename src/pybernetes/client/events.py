"""Tells users what happened to an object: `recorder.event(pod, "Warning", "FailedCreate", "...")`.

Events are for people and must never hurt the cluster: they are sent by a task of their own, from a queue that drops
when it is full, and correlated before they are sent as client-go does it. The same event again is a count on the
first one; more than ten events in ten minutes that differ only in their message become one `(combined from similar
events)`; and who sends more than 25 about one object gets one more every five minutes.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from pybernetes.api import errors
from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Event, EventSource, ObjectReference
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.times import rfc3339
from pybernetes.component import klog
from pybernetes.trace import recorder

from .client import Client
from .clock import Clock
from .keys import resource_of
from .ratelimit import TokenBucket

NORMAL, WARNING = "Normal", "Warning"
MAX_NAME = 253

# client-go's numbers
CACHE_SIZE = 4096
SIMILAR_LIMIT = 10
SIMILAR_SECONDS = 600.0
SPAM_BURST = 25
SPAM_QPS = 1 / 300
QUEUE_SIZE = 1000
TRIES = 12
RETRY_SECONDS = 10.0
COMBINED = "(combined from similar events): "
log = logging.getLogger(__name__)

T = TypeVar("T")


class _LRU(Generic[T]):
    def __init__(self, size: int) -> None:
        self._size = size
        self._items: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        if key in self._items:
            self._items.move_to_end(key)
        return self._items.get(key)

    def put(self, key: Hashable, value: T) -> None:
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._size:
            self._items.popitem(last=False)


@dataclass(slots=True)
class _Seen:
    """An event that the server has, or will have."""

    name: str
    count: int
    first: str


@dataclass(slots=True)
class _Similar:
    """Messages of events that differ only in them, and when the last one came."""

    messages: set[str]
    last: float


@dataclass(slots=True)
class Correlated:
    """The request to send: a new event, or a patch of the one that the server has; nothing if `dropped`."""

    event: Event
    key: Hashable
    patch: dict[str, Any] | None = None
    dropped: bool = False


class Correlator:
    """Decides what becomes of an event, without sending anything."""

    def __init__(self, clock: Clock, size: int = CACHE_SIZE) -> None:
        """`size`: how many events, and objects that they are about, are remembered."""
        self._clock = clock
        self._buckets: _LRU[TokenBucket] = _LRU(size)
        self._similar: _LRU[_Similar] = _LRU(size)
        self._seen: _LRU[_Seen] = _LRU(size)

    def correlate(self, event: Event) -> Correlated:
        """Aggregate, count and rate-limit an event."""
        event, key = self._aggregate(event)
        seen = self._seen.get(key)
        patch = None
        if seen is not None:
            count = seen.count + 1
            event = msgspec.structs.replace(
                event,
                metadata=ObjectMeta(name=seen.name, namespace=event.metadata.namespace if event.metadata else None),
                count=count,
                first_timestamp=seen.first,
            )
            patch = {"count": count, "lastTimestamp": event.last_timestamp, "message": event.message}
        self.sent(key, event)
        return Correlated(event, key, patch, dropped=not self._allowed(event))

    def sent(self, key: Hashable, event: Event) -> None:
        """The server has the event, as this."""
        assert event.metadata is not None
        self._seen.put(key, _Seen(event.metadata.name or "", event.count or 1, event.first_timestamp or ""))

    def _aggregate(self, event: Event) -> tuple[Event, Hashable]:
        now = self._clock.monotonic()
        similar_key = (*_source_and_object(event), event.reason)
        similar = self._similar.get(similar_key)
        if similar is None or now - similar.last > SIMILAR_SECONDS:
            similar = _Similar(set(), now)
        similar.messages.add(event.message or "")
        similar.last = now
        self._similar.put(similar_key, similar)
        if len(similar.messages) < SIMILAR_LIMIT:
            return event, (*similar_key, (event.involved_object or ObjectReference()).field_path, event.message)
        # Do not let the set grow: the event is aggregated already.
        similar.messages.pop()
        return msgspec.structs.replace(event, message=COMBINED + (event.message or "")), ("combined", *similar_key)

    def _allowed(self, event: Event) -> bool:
        key = _source_and_object(event)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(SPAM_QPS, SPAM_BURST, self._clock)
            self._buckets.put(key, bucket)
        return bucket.try_take()


def _source_and_object(event: Event) -> tuple[Hashable, ...]:
    source, involved = event.source or EventSource(), event.involved_object or ObjectReference()
    return (
        source.component,
        source.host,
        involved.kind,
        involved.namespace,
        involved.name,
        involved.uid,
        involved.api_version,
        event.type,
    )


class EventBroadcaster:
    """Sends the events of all recorders of a process, one after another."""

    def __init__(self, client: Client, clock: Clock, host: str = "", correlator: Correlator | None = None) -> None:
        """`correlator` may be shared by many: it tells them apart."""
        self._client = client
        self._clock = clock
        self._host = host
        self._correlator = correlator or Correlator(clock)
        self._queue: asyncio.Queue[Event] = asyncio.Queue(QUEUE_SIZE)
        self._quiet_until = 0.0  # no word about dropped events before then
        self._unsent = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def recorder(self, component: str) -> EventRecorder:
        """The event recorder of a component."""
        return EventRecorder(self, component)

    def emit(
        self,
        component: str,
        obj: Kind | ObjectReference,
        type: str,
        reason: str,
        message: str,
        annotations: dict[str, str] | None,
    ) -> None:
        """Note an event; returns at once."""
        reference = obj if isinstance(obj, ObjectReference) else reference_to(obj)
        now = self._clock.now()
        event = Event(
            metadata=ObjectMeta(
                name=event_name(reference.name or "", now),
                namespace=reference.namespace or "default",
                annotations=annotations,
            ),
            involved_object=reference,
            reason=reason,
            message=message,
            first_timestamp=rfc3339(now),
            last_timestamp=rfc3339(now),
            count=1,
            type=type,
            source=EventSource(component=component, host=self._host or None),
            reporting_component=component,
            reporting_instance=self._host or None,
        )
        klog.info(
            log,
            3,
            "Event occurred",
            object=f"{reference.namespace}/{reference.name}" if reference.namespace else reference.name,
            fieldPath=reference.field_path or "",
            kind=reference.kind,
            apiVersion=reference.api_version,
            type=type,
            reason=reason,
            message=message,
        )
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._warn(reason, message)
            return
        self._unsent += 1
        self._idle.clear()

    def _warn(self, reason: str, message: str) -> None:
        """Tell that events are dropped, once a minute."""
        now = self._clock.monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + 60.0
            log.warning("too many events at once, some are dropped, as: %s %s", reason, message)

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            event = await self._queue.get()
            try:
                await self._send(event)
            except Exception:
                log.exception("an event could not be sent")
            self._unsent -= 1
            if not self._unsent:
                self._idle.set()

    async def flush(self) -> None:
        """Return when all recorded events have been sent or given up."""
        await self._idle.wait()

    async def _send(self, event: Event) -> None:
        result = self._correlator.correlate(event)
        if result.dropped:
            return
        for attempt in range(TRIES):
            try:
                self._correlator.sent(result.key, await self._write(result))
                return
            except errors.APIError as error:
                # The server has understood and refuses; it will not change its mind. (Also: the namespace is ending.)
                log.log(
                    logging.INFO if isinstance(error, (errors.NotFound, errors.Forbidden)) else logging.WARNING,
                    "the server refused an event: %s",
                    error,
                )
                return
            except (OSError, TimeoutError) as error:
                log.info("an event cannot be sent now: %s", error)
                # The first time after a random part of the interval, so that not all clients come back at once.
                await self._clock.sleep(RETRY_SECONDS * (random.random() if attempt == 0 else 1))
        log.warning("an event could not be sent in %d tries: %s", TRIES, event.message)

    async def _write(self, result: Correlated) -> Event:
        event = result.event
        assert event.metadata is not None
        if result.patch is not None:
            try:
                return await self._client.patch(
                    Event, event.metadata.name or "", result.patch, event.metadata.namespace or "", type="strategic"
                )
            except errors.NotFound:
                pass  # it has expired: it comes again, with the count that it has reached
        return await self._client.create(event)


class EventRecorder:
    """Records the events of one component."""

    def __init__(self, broadcaster: EventBroadcaster, component: str) -> None:
        self._broadcaster = broadcaster
        self.component = component

    def event(
        self,
        obj: Kind | ObjectReference,
        type: str,
        reason: str,
        message: str,
        annotations: dict[str, str] | None = None,
    ) -> None:
        """Something happened to the object. `type` is Normal or Warning, `reason` one CamelCase word for machines."""
        recorder.mark(reason, message)
        self._broadcaster.emit(self.component, obj, type, reason, message, annotations)


def event_name(of: str, now: float) -> str:
    """The object's name and the time, cut so that it is a name itself."""
    suffix = f".{int(now * 1e9):x}"
    return of[: MAX_NAME - len(suffix)].rstrip("-.") + suffix


def reference_to(obj: Kind) -> ObjectReference:
    """How an event names its object."""
    resource = resource_of(type(obj))
    metadata = obj.metadata or ObjectMeta()
    return ObjectReference(
        kind=resource.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version=resource.api_version,
        resource_version=metadata.resource_version,
    )
