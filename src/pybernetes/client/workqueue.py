"""Keys to work on. The promises are client-go's, and controllers rely on every one of them:

- fair: items are handed out in the order in which they were added;
- stingy: an item is never worked on twice at once, and an item added several times before it is handed out is handed
  out once;
- an item added while it is being worked on is handed out once more when that is done;
- shutting down: nothing is accepted any more, what is queued is still handed out, then `get` raises `ShutDown`.

`Dirty` is the core without IO; `WorkQueue` adds waiting, delays, back-off and numbers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from pybernetes.trace.recorder import CURRENT, Cause
from pybernetes.trace.span import CAUSES

from .backoff import ItemBackoff
from .clock import Clock, Timer
from .metrics import GaugeFunction, Labels, Registry

T = TypeVar("T", bound=Hashable)


class ShutDown(Exception):
    """The queue is empty and will stay so."""


class Dirty(Generic[T]):
    """Which items need work, and which are being worked on."""

    def __init__(self) -> None:
        self.queue: deque[T] = deque()
        """In this order they are handed out. Each is in `dirty`, is not in `processing`, and is here once."""
        self.dirty: set[T] = set()
        """All that need work: those in `queue`, and those in `processing` that were added again."""
        self.processing: set[T] = set()
        """Handed out and not yet done."""

    def add(self, item: T) -> bool:
        """The item needs work; whether that is news."""
        if item in self.dirty:
            return False
        self.dirty.add(item)
        if item not in self.processing:
            self.queue.append(item)
        return True

    def pop(self) -> T:
        """Hand out the next item; there must be one."""
        item = self.queue.popleft()
        self.processing.add(item)
        self.dirty.discard(item)
        return item

    def done(self, item: T) -> None:
        """The work on the item is finished; it is queued again if it was added meanwhile."""
        self.processing.discard(item)
        if item in self.dirty:
            self.queue.append(item)


class WorkQueue(Generic[T]):
    """A queue for workers: `item = await queue.get()`, work, `queue.done(item)`."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        *,
        backoff: ItemBackoff[T] | None = None,
        metrics: Registry | None = None,
    ) -> None:
        self.name = name
        self._clock = clock
        self._backoff = backoff or ItemBackoff()
        self._core: Dirty[T] = Dirty()
        self._getters: deque[asyncio.Future[None]] = deque()
        """Workers that wait. When the queue is not empty, at least as many of them as it has items are woken."""
        self._delayed: dict[T, tuple[float, Timer]] = {}
        """Items that will be added, each once: when, and the timer that does it."""
        self._idle: asyncio.Future[None] | None = None
        """Set while a caller waits for the work in progress to end."""
        self._shutting_down = False
        self._causes: dict[T, list[Cause]] = {}
        """The causes that put items into the queue, where that is recorded; at most CAUSES for each item in `dirty`."""
        self._reasons: dict[T, list[Cause]] = {}
        """Likewise, of the items in `processing`."""
        self._added_at: dict[T, float] = {}
        self._began_at: dict[T, float] = {}
        self._metrics = QueueMetrics(metrics or Registry(), self)

    def __len__(self) -> int:
        return len(self._core.queue)

    @property
    def processing(self) -> int:
        """How many items are being worked on."""
        return len(self._core.processing)

    @property
    def delayed(self) -> int:
        """How many items will be added later."""
        return len(self._delayed)

    def add(self, item: T) -> None:
        """The item needs work, now."""
        cause = CURRENT.get()
        if cause is not None and not self._shutting_down:
            causes = self._causes.setdefault(item, [])
            if len(causes) < CAUSES and cause not in causes:
                causes.append(cause)
        if self._shutting_down or not self._core.add(item):
            return
        self._metrics.adds.inc(self.name)
        self._added_at.setdefault(item, self._clock.monotonic())
        if item not in self._core.processing:
            self._wake_one()

    def add_after(self, item: T, seconds: float) -> None:
        """The item needs work when so much time has passed; the earliest of several such calls counts."""
        if self._shutting_down:
            return
        if seconds <= 0:
            self.add(item)
            return
        due = self._clock.monotonic() + seconds
        known = self._delayed.get(item)
        if known is not None:
            if known[0] <= due:
                return
            known[1].cancel()
        self._delayed[item] = (due, self._clock.call_later(seconds, self._due, item))

    def add_rate_limited(self, item: T) -> None:
        """The work on the item has failed: again, the later the more often it has."""
        self._metrics.retries.inc(self.name)
        self.add_after(item, self._backoff.when(item))

    def forget(self, item: T) -> None:
        """The item did well: its next failure is the first one."""
        self._backoff.forget(item)

    def failures(self, item: T) -> int:
        """How often the work on the item has failed in a row."""
        return self._backoff.failures(item)

    def causes(self, item: T) -> list[Cause]:
        """Why an item that was handed out needs work."""
        return self._reasons.get(item, [])

    async def get(self) -> T:
        """The next item, when there is one. `done` must follow."""
        while not self._core.queue:
            if self._shutting_down:
                raise ShutDown(self.name)
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter.done() and not getter.cancelled() and self._core.queue:
                    self._wake_one()  # we were woken for an item that we shall not take
                raise
        item = self._core.pop()
        if self._causes and (causes := self._causes.pop(item, None)):
            self._reasons[item] = causes
        now = self._clock.monotonic()
        self._began_at[item] = now
        self._metrics.waited.observe(now - self._added_at.pop(item, now), self.name)
        return item

    def done(self, item: T) -> None:
        """The work on the item is finished, well or not."""
        now = self._clock.monotonic()
        self._metrics.worked.observe(now - self._began_at.pop(item, now), self.name)
        self._reasons.pop(item, None)
        self._core.done(item)
        if self._core.queue:
            self._wake_one()
        if self._idle and not self._core.processing and not self._core.queue and not self._idle.done():
            self._idle.set_result(None)

    def shut_down(self) -> None:
        """Accept nothing more; workers get what is queued, then `ShutDown`."""
        self._shutting_down = True
        for _, timer in self._delayed.values():
            timer.cancel()
        self._delayed.clear()
        while self._getters:
            self._wake_one()

    async def drain(self) -> None:
        """Shut down, and return when all that was queued has been worked on."""
        self.shut_down()
        if self._core.processing or self._core.queue:
            self._idle = self._idle or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._idle)

    def longest_running(self) -> float:
        """For how long the slowest worker has been busy with its item."""
        return self._clock.monotonic() - min(self._began_at.values()) if self._began_at else 0.0

    def unfinished_work(self) -> float:
        """For how long all workers together have been busy with the items they have."""
        now = self._clock.monotonic()
        return sum(now - began for began in self._began_at.values())

    def _due(self, item: T) -> None:
        self._delayed.pop(item, None)
        self.add(item)

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return


class QueueMetrics:
    """client-go's numbers about its queues, in its names."""

    def __init__(self, registry: Registry, queue: WorkQueue[Any]) -> None:
        name: Labels = ("name",)
        self.adds = registry.counter("workqueue_adds_total", "Items added.", name)
        self.retries = registry.counter("workqueue_retries_total", "Items added again after a failure.", name)
        self.waited = registry.histogram(
            "workqueue_queue_duration_seconds", "How long an item waited in the queue.", labels=name
        )
        self.worked = registry.histogram(
            "workqueue_work_duration_seconds", "How long the work on an item took.", labels=name
        )
        queues = registry.attachments.setdefault("workqueues", [])
        assert isinstance(queues, list)
        queues.append(queue)
        if len(queues) == 1:
            _add_gauges(registry, queues)


def _add_gauges(registry: Registry, queues: list[WorkQueue[Any]]) -> None:
    def add(name: str, text: str, read: Callable[[WorkQueue[Any]], float]) -> None:
        registry.add(GaugeFunction(name, text, ("name",), lambda: [((queue.name,), read(queue)) for queue in queues]))

    add("workqueue_depth", "Items in the queue.", len)
    add("workqueue_unfinished_work_seconds", "Time spent on items in work.", lambda queue: queue.unfinished_work())
    add(
        "workqueue_longest_running_processor_seconds",
        "Time the slowest worker has spent on its item.",
        lambda queue: queue.longest_running(),
    )
