"""`/debug/api_priority_and_fairness/`: the levels and their queues as tables, in upstream's columns.

`dump_requests` is not served: of a request that is being served nothing is kept but its seats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pybernetes.net.http import Request, Response

if TYPE_CHECKING:
    from ..paths import PathHandler
    from .controller import FlowController

FOLDER = "/debug/api_priority_and_fairness"
_LEVELS = (
    *("PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests"),
    *("DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"),
)
_QUEUES = (
    *("PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR"),
    *("InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum"),
)
_LATE = "time-out"

Row = Sequence[object]


def handlers(controller: FlowController) -> dict[str, PathHandler]:
    """What to serve, by path."""
    return {
        f"{FOLDER}/dump_priority_levels": _serving(_LEVELS, lambda: _levels(controller)),
        f"{FOLDER}/dump_queues": _serving(_QUEUES, lambda: _queues(controller)),
    }


def _serving(columns: Row, rows: Callable[[], Iterator[Row]]) -> PathHandler:
    async def handler(request: Request) -> Response:
        return Response(table([columns, *rows()]).encode(), content_type="text/plain; charset=utf-8")

    return handler


def _levels(controller: FlowController) -> Iterator[Row]:
    for name, level in sorted(controller.levels.items()):
        late = sum(count for (_, reason), count in level.rejected.items() if reason == _LATE)
        rejected = sum(level.rejected.values()) - late
        active, waiting = (level.queues.active, level.queues.waiting) if level.queues else (0, 0)
        idle = not level.running and not waiting
        yield name, active, idle, False, waiting, level.running, level.dispatched, rejected, late, level.cancelled


def _queues(controller: FlowController) -> Iterator[Row]:
    for name, level in sorted(controller.levels.items()):
        for index, queue in enumerate(level.queues.queues if level.queues else ()):
            work = f"{queue.virtual:.8f}ss"
            yield name, index, len(queue.items), queue.running, queue.taken, work, queue.seats, queue.seats, work


def table(rows: Sequence[Row]) -> str:
    """Columns with a comma behind each but the last, as wide as they must be and eight at least."""
    texts = [[str(each).lower() if isinstance(each, bool) else str(each) for each in row] for row in rows]
    texts = [[*(f"{each}," for each in row[:-1]), row[-1]] for row in texts]
    widths = [max(8, *(len(row[column]) + 1 for row in texts)) for column in range(len(texts[0]) - 1)]
    lines = [[*(each.ljust(width) for each, width in zip(row, widths, strict=False)), row[-1]] for row in texts]
    return "".join("".join(line) + "\n" for line in lines)
