"""Requests wait for their turn when there are more than can be served, by priority level and flow.

In the place of the in-flight limit unless --enable-priority-and-fairness=false. Streams other than watches are not
limited; a watch is, until it has sent its initial events.
"""

from __future__ import annotations

from functools import partial
from time import time
from typing import TYPE_CHECKING

from pybernetes.net.http import Answer, Handler, Request, Response
from pybernetes.net.messages import NOSNIFF

from ..flowcontrol.controller import Flow, FlowController
from ..flowcontrol.estimating import ONE, estimate
from ..flowcontrol.levels import Asked, Rejected
from ..flowcontrol.metrics import Counts
from ..flowcontrol.turns import Turns
from ..handler import group_version
from .max_in_flight import PRIVILEGED

if TYPE_CHECKING:
    from ..registry.registry import Registry

_LONG = frozenset(("exec", "attach", "portforward", "proxy", "log"))
_READS = frozenset(("get", "list", "watch"))


class PriorityAndFairness:
    """The filter."""

    def __init__(self, next_: Handler, controller: FlowController, turns: Turns, registry: Registry) -> None:
        self._next = next_
        self._controller = controller
        self._turns = turns
        self._registry = registry
        self.running = {True: 0, False: 0}
        self.writing = 0
        """Writes that are being worked on; those of `running` may still wait for their turn."""

    def __call__(self, request: Request) -> Answer:
        if request.info.subresource in _LONG:
            return self._next(request)
        flow = self._controller.flow_of(request)
        request.extra_head = flow.head
        request.connection.flow = flow.key
        return self._exempt(request, flow) if flow.level.exempt else self._limited(request, flow)

    async def _exempt(self, request: Request, flow: Flow) -> Response | None:
        verb = request.info.verb
        if PRIVILEGED not in request.user.groups:  # such as health checks
            await self._turns.once(flow.key)
        asked = Asked(request, flow.schema, flow.distinguisher, ONE, now := time(), now)
        counts, serving, running = flow.counts, flow.level.running, self.running
        counts.by_seats[1] += 1
        serving.add(asked)
        reading = verb in _READS
        running[reading] += 1
        self.writing += not reading
        if verb == "watch":
            request.initialized = partial(_initialized, counts, now)
        try:
            return await self._next(request)
        finally:
            self.writing -= not reading
            running[reading] -= 1
            serving.discard(asked)
            if verb != "watch":
                counts.executed.add(time() - now)

    async def _limited(self, request: Request, flow: Flow) -> Response | None:
        info, level, running = request.info, flow.level, self.running
        verb = info.verb
        reading = verb in _READS
        cost = ONE if verb == "get" else estimate(self._registry, level, info)
        asked = Asked(request, flow.schema, flow.distinguisher, cost, time())
        seats, queue = cost.width, None
        if not level.enter(seats):
            try:
                asked.queue = queue = await level.wait(flow.key, asked)
            except Rejected as rejected:
                flow.counts.refused.add(time() - asked.arrived)
                await self._turns.once(flow.key)  # who is refused comes again, perhaps at once
                return _refuse(flow, rejected.reason)
        counts = flow.counts
        counts.by_seats[seats] += 1
        if queue is None:
            asked.started = asked.arrived
            counts.at_once += 1
        else:
            asked.started = time()
            counts.waited.add(asked.started - asked.arrived)
        level.running.add(asked)
        running[reading] += 1
        released = False
        turns, key = self._turns, flow.key

        def release() -> None:
            nonlocal released
            if not released:
                released = True
                running[reading] -= 1
                level.running.discard(asked)
                seconds = time() - asked.started
                (counts.watched if verb == "watch" else counts.executed).add(seconds)
                if cost.latency:  # the events of the write are being sent to watchers
                    level.later(cost.latency, seats, queue, seconds)
                else:
                    level.leave(seats, queue, seconds)

        def initialized() -> None:
            if not released:
                turns.end(key)
                release()

        if self._registry.aggregated and group_version(info) in self._registry.aggregated:
            # It waits for another server, which takes no time of ours: a seat, but no turn.
            if verb == "watch":
                release()
            try:
                return await self._next(request)
            finally:
                release()
        if verb == "watch":
            request.initialized = initialized
        try:
            if not turns.begin(key):
                await turns.wait(key)
            self.writing += not reading
            try:
                return await self._next(request)
            finally:
                self.writing -= not reading
                if not released or verb != "watch":
                    turns.end(key)
        finally:
            release()


def _initialized(counts: Counts, started: float) -> None:
    counts.watched.add(time() - started)


def _refuse(flow: Flow, reason: str) -> Response:
    key = (flow.schema, reason)
    flow.level.rejected[key] = flow.level.rejected.get(key, 0) + 1
    seconds = flow.level.retry_after.refused(int(time()))
    headers = [("Retry-After", str(seconds)), NOSNIFF]
    text = b"Too many requests, please try again later.\n"
    return Response(text, 429, "text/plain; charset=utf-8", headers)
