"""`/debug/api_priority_and_fairness/`: the levels, their queues and requests as tables, in upstream's columns."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pybernetes.api.times import format_duration
from pybernetes.net.http import Handler, Request, Response

from .queueset import Queue

if TYPE_CHECKING:
    from .controller import FlowController
    from .levels import Asked, Level

FOLDER = "/debug/api_priority_and_fairness"
_LEVELS = (
    *("PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests"),
    *("DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"),
)
_QUEUES = (
    *("PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR"),
    *("InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum"),
)
_REQUESTS = (
    *("PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime"),
    *("InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"),
)
_DETAILS = ("UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
_DETAILED = "includeRequestDetails"
_LATE = "time-out"
_LISTED = 1024  # queues of a level; where there are more only those in use are listed

Row = Sequence[object]


def handlers(controller: FlowController) -> dict[str, Handler]:
    """The handlers, by path."""
    return {
        f"{FOLDER}/dump_priority_levels": _serving(lambda _: [_LEVELS, *_levels(controller)]),
        f"{FOLDER}/dump_queues": _serving(lambda _: [_QUEUES, *_queues(controller)]),
        f"{FOLDER}/dump_requests": _serving(lambda request: _requests(controller, request)),
    }


def _serving(rows: Callable[[Request], Sequence[Row]]) -> Handler:
    async def handler(request: Request) -> Response:
        return Response(table(rows(request)).encode(), content_type="text/plain; charset=utf-8")

    return handler


def _levels(controller: FlowController) -> Iterator[Row]:
    for name, level in sorted(controller.levels.items()):
        late = sum(count for (_, reason), count in level.rejected.items() if reason == _LATE)
        rejected = sum(level.rejected.values()) - late
        active, waiting = (level.queues.active, level.queues.waiting) if level.queues else (0, 0)
        idle = not level.running and not waiting
        yield name, active, idle, False, waiting, len(level.running), level.dispatched, rejected, late, level.cancelled


def _queues(controller: FlowController) -> Iterator[Row]:
    for name, level in sorted(controller.levels.items()):
        for index, queue in _numbered(level):
            work = f"{queue.virtual:.8f}ss"
            yield name, index, len(queue.items), queue.running, queue.taken, work, queue.seats, queue.seats, work


def _numbered(level: Level) -> Iterator[tuple[int, Queue[Any]]]:
    """All queues of a level, or those in use where there are too many to list."""
    queues = level.queues
    if queues is not None:
        numbers = range(queues.size) if queues.size <= _LISTED else sorted(queues.queues)
        for number in numbers:
            yield number, queues.queues.get(number) or Queue(number)


def _requests(controller: FlowController, request: Request) -> list[Row]:
    detailed = bool(request.info.query.get(_DETAILED))
    rows: list[Row] = [(*_REQUESTS, *_DETAILS) if detailed else _REQUESTS]
    for name, level in sorted(controller.levels.items()):
        served = sorted(level.running, key=lambda each: each.started)
        for index, queue in _numbered(level):
            for place, (future, _) in enumerate(queue.items):
                if future in level.waiting:
                    rows.append(_request(name, index, place, level.waiting[future], detailed))
            rows += [_request(name, index, -1, each, detailed) for each in served if each.queue is queue]
        rows += [_request(name, -1, -1, each, detailed) for each in served if each.queue is None]
    return rows


def _request(level: str, queue: int, place: int, asked: Asked, detailed: bool) -> Row:
    cost = asked.estimate
    times = (go_time(asked.arrived), cost.seats, cost.final, format_duration(round(cost.latency * 1e9)))
    row = (level, asked.schema, queue, place, asked.distinguisher, *times, go_time(asked.started))
    if not detailed:
        return row
    user, info = asked.request.user, asked.request.info
    version = f"{info.group}/{info.version}" if info.group else info.version
    return *row, user.name, info.verb, info.path, info.namespace, info.name, version, info.resource, info.subresource


def go_time(seconds: float) -> str:
    """A time as Go writes it, to the microsecond; 0 is Go's zero."""
    if not seconds:
        return "0001-01-01T00:00:00Z"
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"


def table(rows: Sequence[Row]) -> str:
    """Columns with a comma behind each but the last, as wide as they must be and eight at least."""
    texts = [[str(each).lower() if isinstance(each, bool) else str(each) for each in row] for row in rows]
    texts = [[*(f"{each}," for each in row[:-1]), row[-1]] for row in texts]
    widths = [max(8, *(len(row[column]) + 1 for row in texts)) for column in range(len(texts[0]) - 1)]
    lines = [[*(each.ljust(width) for each, width in zip(row, widths, strict=False)), row[-1]] for row in texts]
    return "".join("".join(line) + "\n" for line in lines)
