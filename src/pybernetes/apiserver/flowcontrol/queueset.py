"""The queues of one priority level. Pure: requests are opaque objects, and the caller passes the time.

A flow is dealt a hand of queues by its hash, so that a flow that floods fills its own hand and shares at most a few
queues with any other (shuffle sharding); a request joins the shortest queue of the hand. Queues take turns by
start-time fair queueing: each has a virtual time that grows by the work it was given (seats times seconds), and the one
that is furthest behind goes next. What a request will take is guessed when it starts and put right when it ends.
A level may have ten million queues, so a queue exists only while it has requests or its virtual time is still ahead.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")
GUESS = 0.003  # seconds that a request is taken to last until it is known


class Queue(Generic[T]):
    """Requests in the order in which they came."""

    __slots__ = ("items", "number", "running", "seats", "taken", "virtual")

    def __init__(self, number: int) -> None:
        self.number = number
        self.items: deque[tuple[T, int]] = deque()
        self.seats = 0
        """Of all that wait."""
        self.running = self.taken = 0
        """Requests that came from here and are being served, and their seats."""
        self.virtual = 0.0
        """The work that was done for this queue, compared with the others."""


class QueueSet(Generic[T]):
    """All queues of a level."""

    def __init__(self, queues: int, hand: int, length: int) -> None:
        self.size = queues
        self.queues: dict[int, Queue[T]] = {}
        """By number; all others are empty."""
        self._hand = min(hand, queues)
        self._length = length
        self._active: dict[Queue[T], None] = {}
        self._virtual = 0.0
        self._running = 0
        self.waiting = 0

    @property
    def active(self) -> int:
        """Queues with waiting requests."""
        return len(self._active)

    def add(self, flow: str, item: T, seats: int) -> Queue[T] | None:
        """Let a request wait; None if its queue is full."""
        hand = [self.queues.get(number) or Queue[T](number) for number in deal(flow, self.size, self._hand)]
        queue = min(hand, key=lambda each: (each.seats, len(each.items)))
        if len(queue.items) >= self._length:
            return None
        self.queues[queue.number] = queue
        if not queue.items:
            queue.virtual = max(queue.virtual, self._virtual)  # who was away has no claim to the past
            self._active[queue] = None
        queue.items.append((item, seats))
        queue.seats += seats
        self.waiting += 1
        return queue

    def peek(self) -> tuple[Queue[T], T, int] | None:
        """The next request to run: the queue, the request and its seats."""
        if not self._active:
            return None
        queue = min(self._active, key=lambda each: each.virtual)
        item, seats = queue.items[0]
        return queue, item, seats

    def take(self, queue: Queue[T]) -> None:
        """The first of a queue goes."""
        _, seats = queue.items.popleft()
        queue.seats -= seats
        self.waiting -= 1
        self._virtual = max(self._virtual, queue.virtual)
        queue.virtual += seats * GUESS
        queue.running += 1
        self._running += 1
        queue.taken += seats
        if not queue.items:
            del self._active[queue]

    def remove(self, queue: Queue[T], item: T) -> None:
        """Somebody has stopped waiting."""
        for each in queue.items:
            if each[0] is item:
                queue.items.remove(each)
                queue.seats -= each[1]
                self.waiting -= 1
                break
        if not queue.items:
            self._active.pop(queue, None)
            self._drop(queue)

    def finished(self, queue: Queue[T], seats: int, seconds: float) -> None:
        """A request that came from a queue has ended."""
        queue.virtual += seats * (seconds - GUESS)
        queue.running -= 1
        queue.taken -= seats
        if self.queues.get(queue.number) is queue:  # not a queue of the set before the level was changed
            self._running -= 1
            self._drop(queue)

    def _drop(self, queue: Queue[T]) -> None:
        """Forget an idle queue: no request waits or runs, and it is not ahead of the others."""
        if not self._running and not self._active:
            self.queues.clear()  # there is no other queue to be ahead of
        elif not queue.running and not queue.items and queue.virtual <= self._virtual:
            self.queues.pop(queue.number, None)


def deal(flow: str, queues: int, hand: int) -> list[int]:
    """The queues of a flow: `hand` different ones, as good as at random, always the same."""
    value = int.from_bytes(hashlib.sha256(flow.encode("utf-8", "replace")).digest()[:16], "big")
    cards: list[int] = []
    for position in range(hand):
        value, card = divmod(value, queues - position)
        for other in sorted(cards):
            if card >= other:
                card += 1
        cards.append(card)
    return cards
