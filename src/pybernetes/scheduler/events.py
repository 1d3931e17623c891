"""Tells users what became of their pods, by events of `events.k8s.io/v1`, as upstream's scheduler does.

An event that repeats (the same about the same revision of the same object) becomes a series: a count on the first one.
Events are sent several at a time, since every pod brings one; when ten thousand wait, further ones are dropped:
they must never hurt the cluster.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections import deque
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pybernetes.api import errors
from pybernetes.api.base import Kind
from pybernetes.api.times import rfc3339_micro
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.events import NORMAL, WARNING, event_name
from pybernetes.client.keys import resource_of
from pybernetes.trace import recorder

QUEUE_SIZE = 10_000
# client-go's numbers
__all__ = ["NORMAL", "WARNING", "EventSink", "ProfileRecorder"]

FINISH_SECONDS = 360.0
TRIES = 12
RETRY_SECONDS = 10.0
MAX_NOTE = 1024

MOST_KNOWN = 4096
"""Events that may become a series; what comes again after so many others is a new event."""

AT_ONCE = 48
"""As many as the bindings that bring them, or these would take all connections."""
log = logging.getLogger(__name__)

Reference = dict[str, str]
_Key = tuple[str, ...]


@dataclass(slots=True)
class _Sent:
    """An event that the server has, or will have."""

    event: dict[str, Any]
    last: float
    count: int = 1


class EventSink:
    """Sends the events of all profiles."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._instance = socket.gethostname()
        self._known: dict[_Key, _Sent] = {}
        """In the order of their first occurrence."""
        self._queue: deque[tuple[str, dict[str, Any]]] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._quiet_until = 0.0

    def recorder(self, name: str) -> ProfileRecorder:
        """The event recorder of a profile."""
        return ProfileRecorder(self, name)

    def emit(
        self, controller: str, obj: Kind, related: Kind | None, type: str, reason: str, action: str, note: str
    ) -> None:
        """Note an event; returns at once."""
        now = self._clock.now()
        regarding = _reference(obj)
        about = _reference(related) if related is not None else {}
        key = (type, action, reason, controller, *regarding.values(), "", *about.values())
        moment = rfc3339_micro(now)
        sent = self._known.get(key)
        if sent is not None and now - sent.last < FINISH_SECONDS:
            sent.count += 1
            sent.last = now
            if sent.count == 2:  # later ones are only counted, until the series is over
                self._put("PATCH", {**sent.event, "series": {"count": 2, "lastObservedTime": moment}})
            return
        event: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": event_name(regarding.get("name", ""), now),
                "namespace": regarding.get("namespace") or "default",
            },
            "eventTime": moment,
            "reportingController": controller,
            "reportingInstance": f"{controller}-{self._instance}",
            "action": action,
            "reason": reason,
            "regarding": regarding,
            "note": note if len(note) <= MAX_NOTE else note[: MAX_NOTE - 4] + " ...",
            "type": type,
        }
        if about:
            event["related"] = about
        self._known.pop(key, None)
        self._known[key] = _Sent(event, now)
        self._forget(now)
        self._put("POST", event)

    async def flush(self) -> None:
        """Return when all recorded events have been sent or given up."""
        while self._workers:
            await asyncio.wait(self._workers)

    async def close(self) -> None:
        """Send no more."""
        for worker in list(self._workers):
            worker.cancel()
        if self._workers:
            await asyncio.wait(self._workers)

    def _put(self, method: str, event: dict[str, Any]) -> None:
        if len(self._queue) >= QUEUE_SIZE:
            now = self._clock.monotonic()
            if now >= self._quiet_until:
                self._quiet_until = now + 60.0
                log.warning("too many events at once, some are dropped, as: %s %s", event["reason"], event["note"])
            return
        self._queue.append((method, event))
        if len(self._workers) < AT_ONCE:
            worker = asyncio.get_running_loop().create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def _forget(self, now: float) -> None:
        """Those at the front are the oldest: look at a few for each new one, and memory stays bounded."""
        known = self._known
        for _ in range(2):
            key = next(iter(known))
            sent = known[key]
            if now - sent.last < FINISH_SECONDS and len(known) <= MOST_KNOWN:
                return
            del known[key]
            if sent.count > 2:
                series = {"count": sent.count, "lastObservedTime": rfc3339_micro(sent.last)}
                self._put("PATCH", {**sent.event, "series": series})

    async def _work(self) -> None:
        while self._queue:
            method, event = self._queue.popleft()
            try:
                await self._send(method, event)
            except Exception:
                log.exception("an event could not be sent")

    async def _send(self, method: str, event: dict[str, Any]) -> None:
        for _ in range(TRIES):
            try:
                await self._write(method, event)
                return
            except errors.APIError as error:
                # The server has understood and refuses; it will not change its mind. (Also: the namespace is ending.)
                level = logging.INFO if isinstance(error, (errors.NotFound, errors.Forbidden)) else logging.WARNING
                log.log(level, "the server refused an event: %s", error)
                return
            except (OSError, TimeoutError) as error:
                log.info("an event cannot be sent now: %s", error)
                await self._clock.sleep(RETRY_SECONDS * (1 + 0.25 * random.random()))
        log.warning("an event could not be sent in %d tries: %s", TRIES, event["note"])

    async def _write(self, method: str, event: dict[str, Any]) -> None:
        metadata = event["metadata"]
        path = f"/apis/events.k8s.io/v1/namespaces/{metadata['namespace']}/events"
        if method == "PATCH":
            try:
                await self._client.call(
                    "PATCH",
                    f"{path}/{quote(metadata['name'], safe='')}",
                    {"series": event["series"]},
                    headers={"Content-Type": "application/strategic-merge-patch+json"},
                )
                return
            except errors.NotFound:
                pass  # it has expired: it comes again, with the count that it has reached
        await self._client.call("POST", path, event)


class ProfileRecorder:
    """The events of one profile."""

    def __init__(self, sink: EventSink, name: str) -> None:
        self._sink = sink
        self.component = name

    def event(
        self,
        obj: Kind,
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "Scheduling",
        related: Kind | None = None,
    ) -> None:
        """Something happened to the object. `action` is what the scheduler was doing."""
        recorder.mark(reason, message)
        self._sink.emit(self.component, obj, related, type, reason, action, message)


def _reference(obj: Kind) -> Reference:
    resource = resource_of(type(obj))
    metadata = obj.metadata
    assert metadata is not None
    found = {
        "kind": resource.kind,
        "namespace": metadata.namespace or "",
        "name": metadata.name or "",
        "uid": metadata.uid or "",
        "apiVersion": resource.api_version,
        "resourceVersion": metadata.resource_version or "",
    }
    return {name: value for name, value in found.items() if value}
