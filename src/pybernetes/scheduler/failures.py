"""Says why pods have no place, no faster than a cluster can bear.

A pod that fits nowhere is an event and a condition: two writes, and every watcher of pods gets them. Where
thousands come at a time, reporting them would take more of the API server than creating them did. Upstream's scheduler
sends no more than 50 requests a second after the first 100, of any kind; here only these reports wait, so that no
binding does.

What waits is the last word on each pod, in the order in which they first failed. One that has been given a node
meanwhile is not spoken of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from pybernetes.client.clock import Clock
from pybernetes.client.ratelimit import TokenBucket

QPS = 50.0
BURST = 100
log = logging.getLogger(__name__)


class Failures:
    """Reports of unschedulable pods that are still to be sent, by uid."""

    def __init__(self, clock: Clock, placed: Callable[[str], bool], qps: float = QPS, burst: int = BURST) -> None:
        """`placed`: whether a pod is on its way to a node."""
        self._bucket = TokenBucket(qps, burst, clock)
        self._placed = placed
        self._waiting: dict[str, Callable[[], None]] = {}
        self._task: asyncio.Task[None] | None = None
        """There while something waits."""

    def tell(self, uid: str, say: Callable[[], None], *, at_once: bool = False) -> None:
        """Say it now or when its turn comes; in place of what was to be said of this pod before."""
        if at_once or (not self._waiting and self._bucket.try_take()):
            self._waiting.pop(uid, None)
            say()
            return
        self._waiting[uid] = say
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._tell_rest(), name="failures")

    async def close(self) -> None:
        """Say no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _tell_rest(self) -> None:
        try:
            while self._waiting:
                await self._bucket.take()
                if self._waiting:
                    uid = next(iter(self._waiting))
                    say = self._waiting.pop(uid)
                    try:
                        if not self._placed(uid):
                            say()
                    except Exception:  # of this pod only; go on with the others
                        log.exception("the failure of pod %s could not be reported", uid)
        finally:
            self._task = None
