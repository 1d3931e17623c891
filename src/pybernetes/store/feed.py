"""Watches of the stores that live in this process (memory, SQLite).

A watch is either *behind* or *live*. Behind: it reads the store's history until it has caught up; so begins every
watch, and so falls back a watch whose reader is so slow that `BACKLOG` events wait for it, which bounds the memory a
slow reader can hold. Live: the store hands it each batch as soon as the batch is durable; to a function of the reader,
if it has one and waits for nothing else. Everything here runs on the event loop, so the step from behind to live cannot
miss a change: both are decided between two awaits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pybernetes.store.base import Event, Receive

BACKLOG = 10_000
PAGE = 100
"""Events of one replay: with values of 5 KB, about 1 ms of the event loop."""

Replay = Callable[[str, int, int], Awaitable[tuple[list[Event], int]]]
"""`replay(prefix, after, limit)`: the changes after `after`, and the revision up to which these are all there are."""


class Feed:
    """Hands durable changes to the watches."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.revision = 0
        """The last published revision: whatever is not newer is in the history that `replay` reads."""
        self.watches: dict[FeedWatch, None] = {}

    def publish(self, events: list[Event] | None, revision: int) -> None:
        """Deliver `events`, which are all changes after the last published revision up to `revision`.

        None: no watch was open when the store could have made them; a later watch finds them in the history.
        """
        self.revision = revision
        for watch in self.watches:
            if events is None:
                watch.fall_behind()
            else:
                watch.push(events)

    def close(self) -> None:
        """End every watch."""
        for watch in list(self.watches):
            watch.end()


class FeedWatch:
    """One reader's view of a feed; see `pybernetes.store.base.Watch`."""

    def __init__(self, feed: Feed, prefix: str, after: int, receive: Receive | None = None) -> None:
        self._feed = feed
        self._prefix = prefix
        self._receive = receive
        self._position = after
        """Every change up to here was delivered (or lies before the start)."""
        self._behind = True
        self._closed = False
        self._buffer: list[Event] = []
        """Live only: what came after `_position`."""
        self._waiter: asyncio.Future[None] | None = None
        feed.watches[self] = None

    def __aiter__(self) -> FeedWatch:
        return self

    async def __anext__(self) -> list[Event]:
        while not self._closed:
            if self._behind:
                events, upto = await self._feed.replay(self._prefix, self._position, PAGE)
                self._position = max(self._position, upto)
                self._behind = self._position < self._feed.revision
                if events:
                    return events
            elif self._buffer:
                events, self._buffer = self._buffer, []
                self._position = events[-1].revision
                return events
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                try:
                    await self._waiter
                finally:
                    self._waiter = None
        raise StopAsyncIteration

    async def close(self) -> None:
        """Stop; a waiting reader ends its iteration."""
        self.end()

    def end(self) -> None:
        """The same as `close`, for callers that are not coroutines."""
        self._closed = True
        self._feed.watches.pop(self, None)
        self._buffer = []
        self._wake()

    def push(self, events: list[Event]) -> None:
        """Take the changes of one batch."""
        if self._behind:
            return
        position = self._position
        mine = [e for e in events if e.revision > position and e.key.startswith(self._prefix)]
        if not mine:
            return
        if self._receive is not None and self._waiter is not None and not self._waiter.done():
            try:
                self._receive(mine)
            except Exception:  # it meets the same again, where it can be dealt with
                self.fall_behind()
            else:
                self._position = mine[-1].revision
            return
        if not self._buffer:
            self._buffer = mine
        elif len(self._buffer) < BACKLOG:
            self._buffer.extend(mine)
        else:
            self.fall_behind()
        self._wake()

    def fall_behind(self) -> None:
        """Read on from the history."""
        self._behind = True
        self._buffer = []
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
