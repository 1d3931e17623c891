"""One priority level: its seats, and who waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from time import time
from typing import Any

import msgspec

from pybernetes.api.flowcontrol.v1 import PriorityLevelConfiguration
from pybernetes.net.http import Request

from .borrowing import Bounds, Demand
from .estimating import Estimate
from .metrics import Counts
from .queueset import GUESS, Queue, QueueSet
from .retrying import RetryAfter

PATIENCE = 15.0  # seconds that a request waits at most; a quarter of --request-timeout's default


class Asked(msgspec.Struct, eq=False, gc=False):
    """A request that waits or is served, for those who want to see what is going on."""

    request: Request
    schema: str
    distinguisher: str
    estimate: Estimate
    arrived: float
    """When, in seconds since 1970; `started` too, and 0 while it waits."""
    started: float = 0.0
    queue: Queue[asyncio.Future[None]] | None = None


class Rejected(Exception):
    """There is no room, or was none in time."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Level:
    """The state of a level; it outlives changes of its object."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, patience: float = PATIENCE) -> None:
        self.name = name
        self._patience = patience
        self.uid = ""
        self.exempt = False
        self.bounds = Bounds(0, 0, 0)
        self.limit = 0
        self.executing = 0
        self.demand = Demand(loop.time())
        self.high = 0
        """The most seats that were wanted at once in the last period."""
        self.smoothed = 0.0
        """The smoothed demand."""
        self.queues: QueueSet[asyncio.Future[None]] | None = None
        self.hand = 0
        """How many queues a flow may use; 0 where there are none."""
        self.cancelled = 0
        """Requests that were let in, and that have gone while they waited."""
        self.running: set[Asked] = set()
        """Requests that are being served."""
        self.waiting: dict[asyncio.Future[None], Asked] = {}
        self.rejected: dict[tuple[str, str], int] = {}
        self.counts: dict[str, Counts] = {}
        """By flow schema."""
        self.shares = 0
        self.lendable = 0
        self.borrowing: int | None = None
        self.retry_after = RetryAfter(int(time()))
        self._loop = loop
        self._form: Any = None

    @property
    def dispatched(self) -> int:
        """How many requests were let in."""
        return sum(each.dispatched for each in self.counts.values())

    def forget_counts(self, schemas: Collection[str]) -> None:
        """Drop what is counted of flow schemas other than these."""
        self.counts = {name: counts for name, counts in self.counts.items() if name in schemas}
        self.rejected = {key: count for key, count in self.rejected.items() if key[0] in schemas}

    def counts_of(self, schema: str) -> Counts:
        """Where the requests of a flow schema are counted."""
        return self.counts.setdefault(schema, Counts())

    def configure(self, configuration: PriorityLevelConfiguration) -> None:
        """Apply the configuration. Requests in queues that were removed go on waiting in them."""
        meta, spec = configuration.metadata, configuration.spec
        assert meta is not None
        assert spec is not None
        self.uid = meta.uid or ""
        self.exempt = spec.type == "Exempt"
        if self.exempt:
            exempt = spec.exempt
            self.shares = (exempt and exempt.nominal_concurrency_shares) or 0
            self.lendable, self.borrowing, self.queues = (exempt and exempt.lendable_percent) or 0, None, None
            return
        limited = spec.limited
        assert limited is not None
        shares = limited.nominal_concurrency_shares
        self.shares = 30 if shares is None else shares
        self.lendable = limited.lendable_percent or 0
        self.borrowing = limited.borrowing_limit_percent
        queuing = limited.limit_response.queuing if limited.limit_response else None
        form = (queuing.queues or 0, queuing.hand_size or 0, queuing.queue_length_limit or 0) if queuing else None
        self.hand = form[1] if form else 0
        if form != self._form and (self.queues is None or not self.queues.waiting):
            self._form = form
            self.queues = QueueSet(*form) if form else None

    def enter(self, seats: int) -> bool:
        """Take seats if there are enough and no request waits for them."""
        queues = self.queues
        if queues is not None and queues.waiting:
            return False
        taken = self.executing + seats
        if taken > self.limit and (self.executing or not self.limit):  # one request fits always, however wide
            return False
        self.executing = taken
        self.demand.change(seats, self._loop.time())
        return True

    async def wait(self, flow: str, asked: Asked) -> Queue[asyncio.Future[None]]:
        """Return with seats taken. Raises Rejected."""
        seats = asked.estimate.width
        queues = self.queues
        if queues is None:
            raise Rejected("concurrency-limit")
        future: asyncio.Future[None] = self._loop.create_future()
        queue = queues.add(flow, future, seats)
        if queue is None:
            raise Rejected("queue-full")
        self.demand.change(seats, self._loop.time())
        self.waiting[future] = asked
        timer = self._loop.call_later(self._patience, _give_up, future)
        try:
            await future
        except BaseException:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.leave(seats, queue, GUESS)  # it was our turn already
            else:
                self.cancelled += future.cancelled()
                queues.remove(queue, future)
                self.demand.change(-seats, self._loop.time())
            raise
        finally:
            timer.cancel()
            del self.waiting[future]
        return queue

    def leave(self, seats: int, queue: Queue[asyncio.Future[None]] | None = None, seconds: float = 0.0) -> None:
        """Give seats back, and let those in who wait for them."""
        self.executing -= seats
        self.demand.change(-seats, self._loop.time())
        queues = self.queues
        if queues is None:
            return
        if queue is not None:
            queues.finished(queue, seats, seconds)
        if queues.waiting:
            self.dispatch()

    def later(self, after: float, seats: int, queue: Queue[asyncio.Future[None]] | None, seconds: float) -> None:
        """Give seats back after some seconds; the request lasted `seconds` until now."""
        self._loop.call_later(after, self.leave, seats, queue, seconds + after)

    def dispatch(self) -> None:
        """Let in whom there are seats for."""
        queues = self.queues
        while queues is not None and (found := queues.peek()) is not None:
            queue, future, seats = found
            if future.done():
                queues.remove(queue, future)
                continue
            if not self.limit or (self.executing and self.executing + seats > self.limit):
                return
            queues.take(queue)
            self.executing += seats
            future.set_result(None)


def _give_up(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(Rejected("time-out"))
