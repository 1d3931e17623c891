"""Waiting for the disk without holding up the event loop: `fdatasync` by the kernel's workers, else by a thread.

io_uring (`uring`) syncs in a worker of the kernel and counts in an eventfd what is done. A thread of ours needs the GIL
before and after, and takes it from a busy loop in the middle of a request: that cost every write 9 to 15 % of its CPU
time (figures in docs/design.md). The thread syncs where the kernel has no io_uring or forbids it, and whenever
io_uring cannot take a request (EAGAIN, EBUSY): that is no failed sync.

The loop may wait a few milliseconds for a sync (`within`): a lone write to a quick disk is done at once instead of two
rounds of the loop later; a slow disk costs the loop no more than that.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import select
import threading
from collections.abc import Callable
from typing import Protocol

from .uring import Uring

_PROBE = 30.0  # seconds for the first sync, which waits for what other programs have written


class Syncer(Protocol):
    """Makes durable what was written to a file. One sync at a time."""

    def sync(self, within: float = 0.0) -> asyncio.Future[None]:
        """Done when everything written before is on disk; an exception says that this is not known.

        The event loop itself waits for it, `within` seconds at most; then the future is done already.
        """
        ...

    def stop(self) -> None:
        """Free what it holds; no sync is under way."""
        ...


def syncer_for(file: int, sync: Callable[[], None]) -> Syncer:
    """The syncer of an open file: by the kernel where it can, else by `sync` in a thread."""
    with contextlib.suppress(OSError):
        return KernelSyncer(file, sync)
    return ThreadSyncer(sync)


class KernelSyncer:
    """Syncs by io_uring. Raises OSError where there is none."""

    def __init__(self, file: int, sync: Callable[[], None]) -> None:
        """`sync` does the same in a thread, for when io_uring cannot take a request."""
        self._sync = sync
        self._thread: ThreadSyncer | None = None
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] | None = None
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        try:
            self._uring = Uring(file, self._event)
            self._poll = select.poll()
            self._poll.register(self._event, select.POLLIN)
            try:
                self._probe()
            except OSError:
                self._uring.close()
                raise
        except OSError:
            os.close(self._event)
            raise
        self._loop.add_reader(self._event, self._collect)

    def _probe(self) -> None:
        self._uring.ask()
        if not self._poll.poll(_PROBE * 1000):
            raise TimeoutError
        os.eventfd_read(self._event)
        self._uring.collect()

    def sync(self, within: float = 0.0) -> asyncio.Future[None]:
        try:
            self._uring.ask()
        except OSError:
            if self._thread is None:
                self._thread = ThreadSyncer(self._sync)
            return self._thread.sync(within)
        done = self._done = self._loop.create_future()
        if within and self._poll.poll(within * 1000):
            self._collect()
        return done

    def stop(self) -> None:
        self._loop.remove_reader(self._event)
        self._uring.close()
        os.close(self._event)
        if self._thread is not None:
            self._thread.stop()

    def _collect(self) -> None:
        try:
            os.eventfd_read(self._event)
        except BlockingIOError:  # `sync` was quicker than the loop's reader
            return
        done, self._done = self._done, None
        error = None
        try:
            self._uring.collect()
        except OSError as caught:
            error = caught
        if done is not None:
            _settle(done, error)


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
        """Set the outcome, once. On the event loop."""
        _settle(self.done, self.error)


class ThreadSyncer:
    """Runs `sync` in a thread of its own, one sync at a time."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._loop = asyncio.get_running_loop()
        self._asked: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        # A daemon, so that a program that dies without closing its store does not hang in it.
        threading.Thread(target=self._run, name="store-sync", daemon=True).start()

    def sync(self, within: float = 0.0) -> asyncio.Future[None]:
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
        self._asked.put(None)

    def _run(self) -> None:
        while (order := self._asked.get()) is not None:
            try:
                self._sync()
            except Exception as error:
                order.error = error
            order.finished.release()
            if order.abandoned:
                with contextlib.suppress(RuntimeError):  # The loop is closed: no caller waits.
                    self._loop.call_soon_threadsafe(order.settle)


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
