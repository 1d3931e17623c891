"""A watch request's buffer of changes, between the store and its client.

The replication task offers every change to every watcher of the resource. There it is only selected: encoding is the
work of the request's own task, when it takes what has gathered, so that a slow or failing encoder costs its own client
and no other. A selection that raises ends this watcher, with the error, and no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

log = logging.getLogger(__name__)

BACKLOG = 16384  # changes a watcher may be behind before it is ended
BACKLOG_SIZE = 64 << 20  # bytes of objects that may wait for one watcher
REST = 0.002
LONGEST_REST = 0.016
"""Seconds between two deliveries to a watcher: a lone change is delivered at once, many that follow each other are
delivered together, the longer it goes on the more of them. Each delivery wakes up a process, and costs as much as
encoding ten changes for it."""
T = TypeVar("T")


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


class Watcher(Generic[T]):
    """Collects the changes for one client until the client's task takes them.

    `select` returns what is kept of a change for this client, or None if the change is not for it.
    """

    def __init__(self, scope: str, select: Callable[[Change], T | None], revision: int) -> None:
        self.scope = scope
        self.ending = ""
        """The end of matching keys, for a watch on all objects of one name."""
        self.narrow = False
        """Whether it is for few of the objects in scope: one name, or the pods of one node."""
        self.select = select
        self.revision = revision
        self.ended: Exception | None = None
        self.closed = False
        self._pending: list[T] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._woken = False
        self._rest = REST
        """How long the next rest will be."""
        self._resting: asyncio.TimerHandle | None = None
        """There for a while after a delivery."""

    def offer(self, change: Change) -> None:
        """Keep a change if it is in scope and selected. Does not raise."""
        key = change.key
        if key.startswith(self.scope) and key.endswith(self.ending) and not self.closed:
            try:
                selected = self.select(change)
            except Exception as error:
                log.exception("watch of %s: %s at revision %d cannot be selected", self.scope, key, change.revision)
                self.end(error)
                return
            if selected is not None:
                self._pending.append(selected)
                self._size += change.size
                if len(self._pending) > BACKLOG or self._size > BACKLOG_SIZE:
                    self._pending = []
                    self.end(None)
                elif self._resting is None:
                    self.wake()
        self.revision = change.revision

    def end(self, error: Exception | None) -> None:
        """Close the watcher: no more changes will come."""
        self.ended = error
        self.closed = True
        self.wake()

    def wake(self) -> None:
        """Make `take` return, the call that waits or the next one, even if there is nothing."""
        self._woken = True
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> list[T]:
        """The buffered changes; waits until there are some, or until `wake` is called."""
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
