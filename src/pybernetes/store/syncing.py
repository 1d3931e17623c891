"""Waiting for the disk without holding up the event loop: one thread that syncs a file when it is asked to.

The loop may wait a few milliseconds for a sync (`within`). While it does, the thread has the GIL when it needs it, and
a lone write to a quick disk is done at once instead of two rounds of the loop later; a slow disk costs the loop no more
than that. Syncing by io_uring or AIO instead of by a thread was not faster (figures in docs/design.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable


class _Order:
    """One sync that is asked for. `finished` can be acquired when it is done.

    The loop sets `abandoned` and looks at `finished` after that; the thread releases `finished` and looks at
    `abandoned` after that. So at least one of them sees the other, and the outcome is never lost.
    """

    __slots__ = ("abandoned", "done", "error", "finished")

    def __init__(self, done: asyncio.Future[None], abandoned: bool) -> None:
        self.done = done
        self.abandoned = abandoned
        self.error: Exception | None = None
        self.finished = threading.Lock()
        self.finished.acquire()

    def settle(self) -> None:
        """Tell the outcome, once. On the event loop."""
        if not self.done.done():
            if self.error is None:
                self.done.set_result(None)
            else:
                self.done.set_exception(self.error)


class Syncer:
    """Runs `sync` in a thread of its own, one sync at a time."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._loop = asyncio.get_running_loop()
        self._asked: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        # A daemon, so that a program that dies without closing its store does not hang in it.
        threading.Thread(target=self._run, name="store-sync", daemon=True).start()

    def sync(self, within: float = 0.0) -> asyncio.Future[None]:
        """Done when everything written before is on disk; an exception says that this is not known.

        The event loop itself waits for it, `within` seconds at most; then the future is done already.
        """
        order = _Order(self._loop.create_future(), abandoned=not within)
        self._asked.put(order)
        if within:
            finished = order.finished.acquire(timeout=within)
            if not finished:
                order.abandoned = True
                finished = order.finished.acquire(blocking=False)
            if finished:
                order.settle()
        return order.done

    def stop(self) -> None:
        """End the thread; no sync is under way."""
        self._asked.put(None)

    def _run(self) -> None:
        while (order := self._asked.get()) is not None:
            try:
                self._sync()
            except Exception as error:
                order.error = error
            order.finished.release()
            if order.abandoned:
                with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits.
                    self._loop.call_soon_threadsafe(order.settle)
