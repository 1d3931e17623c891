"""Searches for devices that are too long for a scheduling cycle, in a thread beside it.

A scheduling cycle searches for `CYCLE_BUDGET` seconds. A search that has found no node by then goes on here, one pod at
a time and with pauses, so that other pods are placed meanwhile; when it ends, its pod is tried again and gets the
answers from here. They hold as long as nothing has changed that they depend on (`generation`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pybernetes.component.offload import Offload, Overdue

CYCLE_BUDGET = 0.1
"""Seconds of one scheduling cycle for the search on all nodes: no pod waits longer than this for another's devices."""
PAUSE = 0.002
"""Seconds in which the thread leaves the interpreter to the event loop, after about as much work."""
WORK = 0.002
MOST = 64
"""Pods whose answers are kept; the oldest go first."""
T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Search(Generic[T]):
    """One pod's search: the answers by node, or what else the caller asks by."""

    generation: int
    answers: dict[Hashable, T] = field(default_factory=dict)
    running: bool = True


class BackgroundSearches(Generic[T]):
    """The searches of pods by their uid. All but `_work` runs on the event loop."""

    def __init__(self) -> None:
        self._searches: OrderedDict[str, Search[T]] = OrderedDict()
        self._turn = asyncio.Lock()
        self._offload = Offload(limit=1, total=1)
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, uid: str) -> Search[T] | None:
        """The search of a pod, running or ended."""
        return self._searches.get(uid)

    def drop(self, uid: str) -> None:
        """Forget answers that hold no more."""
        self._searches.pop(uid, None)

    def start(
        self,
        uid: str,
        generation: int,
        questions: Iterable[tuple[Hashable, Callable[[Callable[[], bool]], T]]],
        enough: Callable[[T], bool],
        within: float,
        done: Callable[[], None],
    ) -> None:
        """Answer questions (a key, and a function that is given `late`) until one answer is `enough`.

        `within` is how many seconds all of them may take together (0 = no end); `done` is called at the end.
        """
        before = self._searches.pop(uid, None)
        search: Search[T] = Search(
            generation, dict(before.answers) if before and before.generation == generation else {}
        )
        while len(self._searches) >= MOST:
            self._searches.popitem(last=False)
        self._searches[uid] = search
        task = asyncio.get_running_loop().create_task(self._run(search, list(questions), enough, within, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(
        self,
        search: Search[T],
        questions: list[tuple[Hashable, Callable[[Callable[[], bool]], T]]],
        enough: Callable[[T], bool],
        within: float,
        done: Callable[[], None],
    ) -> None:
        try:
            async with self._turn:
                ended = False

                def work() -> dict[Hashable, T]:
                    return _answer(questions, enough, within, lambda: ended)

                try:
                    # The thread looks at the clock itself; the deadline is for one that does not come back.
                    limit = within + 60 if within else 86400.0
                    search.answers |= await self._offload.run("device search", limit, work)
                finally:
                    ended = True
        except Overdue as error:
            log.warning("%s", error)
        except Exception:
            log.exception("a search for devices failed")
        finally:
            search.running = False
        done()


def _answer(
    questions: list[tuple[Hashable, Callable[[Callable[[], bool]], T]]],
    enough: Callable[[T], bool],
    within: float,
    ended: Callable[[], bool],
) -> dict[Hashable, T]:
    """In the thread: the answers by node."""
    deadline = time.monotonic() + within if within else float("inf")
    worked = time.monotonic()

    def late() -> bool:
        nonlocal worked
        if time.monotonic() - worked > WORK:
            time.sleep(PAUSE)
            worked = time.monotonic()
        return time.monotonic() > deadline or ended()

    answers: dict[Hashable, T] = {}
    for node, question in questions:
        answers[node] = answer = question(late)
        if enough(answer):
            break
    return answers
