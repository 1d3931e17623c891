"""Requests wait for their turn when there are more than can be served, by priority level and flow.

In the place of the in-flight limit unless --enable-priority-and-fairness=false. Streams other than watches are not
limited; a watch is, until it has told what there is.
"""

from __future__ import annotations

import math
from time import perf_counter, time
from typing import TYPE_CHECKING

from pybernetes.api.errors import APIError
from pybernetes.net.http import Handler, Request, Response

from ..flowcontrol.controller import Flow, FlowController
from ..flowcontrol.levels import Rejected
from ..flowcontrol.turns import Turns
from ..handler import group_version
from .max_in_flight import PRIVILEGED

if TYPE_CHECKING:
    from ..registry.registry import Registry
    from ..requestinfo import RequestInfo

_LONG = frozenset(("exec", "attach", "portforward", "proxy", "log"))
_READS = frozenset(("get", "list", "watch"))
_SEAT_BYTES = 100_000  # bytes of a list for which a seat is taken; upstream's
_MOST = 10  # seats of a list; answers come from the cache, of which upstream counts a megabyte at most


class PriorityAndFairness:
    """The filter."""

    def __init__(self, next_: Handler, controller: FlowController, turns: Turns, registry: Registry) -> None:
        self._next = next_
        self._controller = controller
        self._turns = turns
        self._registry = registry
        self.running = {True: 0, False: 0}

    async def __call__(self, request: Request) -> Response | None:
        info = request.info
        verb = info.verb
        if info.subresource in _LONG:
            return await self._next(request)
        flow = self._controller.classify(request.user, info)
        request.extra_head = flow.head
        request.connection.flow = flow.key
        level = flow.level
        reading = verb in _READS
        running = self.running
        if level.exempt:
            if PRIVILEGED not in request.user.groups:  # such as health, which anybody may ask for
                await self._turns.once(flow.key)
            level.dispatched += 1
            level.running += 1
            running[reading] += 1
            try:
                return await self._next(request)
            finally:
                running[reading] -= 1
                level.running -= 1
        seats = 1 if verb not in ("list", "watch") else self._seats(info)
        queue = None
        if not level.enter(seats):
            try:
                queue = await level.wait(flow.key, seats)
            except Rejected as rejected:
                await self._turns.once(flow.key)  # who is refused comes again, perhaps at once
                return _refuse(flow, rejected.reason)
        started = perf_counter() if queue is not None else 0.0
        level.dispatched += 1
        level.running += 1
        running[reading] += 1
        released = False
        turns, key = self._turns, flow.key

        def release() -> None:
            nonlocal released
            if not released:
                released = True
                running[reading] -= 1
                level.running -= 1
                level.leave(seats, queue, perf_counter() - started if queue is not None else 0.0)

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
            try:
                return await self._next(request)
            finally:
                if not released or verb != "watch":
                    turns.end(key)
        finally:
            release()

    def _seats(self, info: RequestInfo) -> int:
        """How much of the server a list takes, by the size of what it may have to look at."""
        if info.verb == "watch":
            version = info.query.get("resourceVersion", "")
            if version not in ("", "0") and not info.flag("sendInitialEvents"):
                return 1
        if info.object_name or not info.is_resource:
            return 1
        try:
            items = self._registry.store(info.group, info.version, info.resource).partition.items
        except APIError:
            return 1
        count = len(items)
        if not count:
            return 1
        limit = info.query.get("limit", "")
        if limit.isdecimal() and 0 < int(limit) < count:
            count = int(limit)
        size = count * len(next(iter(items.values())).raw)  # objects of a kind are much alike
        return max(1, min(_MOST, math.ceil(size / _SEAT_BYTES)))


def _refuse(flow: Flow, reason: str) -> Response:
    key = (flow.schema, reason)
    flow.level.rejected[key] = flow.level.rejected.get(key, 0) + 1
    seconds = flow.level.retry_after.refused(int(time()))
    headers = [("Retry-After", str(seconds)), ("X-Content-Type-Options", "nosniff")]
    text = b"Too many requests, please try again later.\n"
    return Response(text, 429, "text/plain; charset=utf-8", headers)
