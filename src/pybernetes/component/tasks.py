"""Long-lived tasks of a component, so that none ends unseen.

`Tasks.start(name, run)` runs `run()` until `stop()`. When it raises, the traceback is logged, the failure is counted
for `/metrics`, and it is run again after a back-off: right for work that begins from the cluster's state. With
`restart=False` it stays down and `failed` names it, which fails the component's `/livez`. A task that keeps failing
is in `failed` too, until it has run for a minute. A task that returns has done its work.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

FIRST_BACKOFF = 0.1
MAX_BACKOFF = 30.0
STEADY_AFTER = 60.0
"""Seconds without a failure after which a task's back-off begins anew."""
TOLERATED_FAILURES = 5
"""Failures in a row from which on a task that is restarted counts as failed."""

failures: Counter[str] = Counter()
"""Failures of this process's tasks by name, for `/metrics`. Names come from code, never from objects."""
log = logging.getLogger(__name__)


class Tasks:
    """The long-lived tasks of one owner.

    Invariant: every task that was started is in `_running`, or has returned, or is in `failed`.
    """

    def __init__(
        self,
        owner: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        steady_after: float = STEADY_AFTER,
    ) -> None:
        self.owner = owner
        self.failed: dict[str, str] = {}
        """Name and last error of each task that is down or keeps failing."""
        self._sleep = sleep
        self._steady_after = steady_after
        self._running: set[asyncio.Task[None]] = set()
        self._stopped = False

    def start(
        self, name: str, run: Callable[[], Coroutine[Any, Any, object]], *, restart: bool = True
    ) -> asyncio.Task[None]:
        """Run `run()` under supervision; the task ends when `run()` returns, is cancelled, or fails without restart."""
        if self._stopped:
            raise RuntimeError(f"{self.owner} is stopped, {name} cannot be started")
        task = asyncio.get_running_loop().create_task(self._supervise(name, run, restart), name=f"{self.owner}: {name}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def stop(self) -> None:
        """Cancel all tasks and wait for their end. A task that fails while it ends is logged."""
        self._stopped = True
        while self._running:
            ending = list(self._running)
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    def check(self) -> str:
        """The failed tasks and their errors, or an empty text: for a health check."""
        return "; ".join(f"task {name}: {error}" for name, error in self.failed.items())

    async def _supervise(self, name: str, run: Callable[[], Coroutine[Any, Any, object]], restart: bool) -> None:
        loop, in_a_row = asyncio.get_running_loop(), 0
        while True:
            began = loop.time()
            recovered = (
                loop.call_later(self._steady_after, self.failed.pop, name, None) if name in self.failed else None
            )
            try:
                await run()
                self.failed.pop(name, None)
                return
            except Exception as error:
                in_a_row = 1 if loop.time() - began >= self._steady_after else in_a_row + 1
                failures[name] += 1
                if not restart or in_a_row >= TOLERATED_FAILURES:
                    self.failed[name] = str(error) or type(error).__name__
                delay = min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** min(in_a_row - 1, 16))
                then = f"restarting in {delay:g} s" if restart else "it stays down"
                log.exception("%s: task %s failed, %s", self.owner, name, then)
            finally:
                if recovered:
                    recovered.cancel()
            if not restart:
                return
            await self._sleep(delay)
