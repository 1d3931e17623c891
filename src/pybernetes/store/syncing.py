"""Waiting for the disk without holding up the event loop.

The kernel can run `fdatasync` in workers of its own and tell an eventfd when it is done (`uring`, else `aio`). A thread
of ours would do the same, but needs the GIL before and after, and takes it from a busy loop in the middle of something.
One sync after another beside an idle loop on two cores, 500 of them: 122 us and 38 us of CPU by the kernel, 216 us and
139 us by a thread, 110 us if the loop itself waits. Where the kernel does not offer it, a thread does it.
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

from .aio import Aio
from .uring import Uring

_PROBE = 30.0  # seconds for the first sync, which waits for what others have written


class Syncer(Protocol):
    """Makes durable what was written to a file. One sync at a time."""

    def sync(self) -> asyncio.Future[None]:
        """Done when everything written before is on disk; an exception says that this is not known."""
        ...

    def stop(self) -> None:
        """Free what it holds; no sync is under way."""
        ...


def kernel_syncer(file: int) -> Syncer | None:
    """A syncer that needs no thread; None if this kernel, or this machine, has none."""
    for way in (Uring, Aio) if hasattr(os, "eventfd") else ():
        with contextlib.suppress(OSError):
            return KernelSyncer(file, way)
    return None


class KernelSyncer:
    """Asks the kernel, by one of its interfaces. Raises OSError if it does not have that."""

    def __init__(self, file: int, way: type[Uring | Aio]) -> None:
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] | None = None
        self._told = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        try:
            self._kernel = way(file, self._told)
            try:
                self._probe()
            except OSError:
                self._kernel.close()
                raise
        except OSError:
            os.close(self._told)
            raise
        self._loop.add_reader(self._told, self._tell)

    def _probe(self) -> None:
        self._kernel.ask()
        if not select.select([self._told], [], [], _PROBE)[0]:
            raise TimeoutError
        os.eventfd_read(self._told)
        self._kernel.collect()

    def sync(self) -> asyncio.Future[None]:
        done: asyncio.Future[None] = self._loop.create_future()
        try:
            self._kernel.ask()
        except OSError as error:
            done.set_exception(error)
        else:
            self._done = done
        return done

    def stop(self) -> None:
        self._loop.remove_reader(self._told)
        self._kernel.close()
        os.close(self._told)

    def _tell(self) -> None:
        os.eventfd_read(self._told)
        done, self._done = self._done, None
        error = None
        try:
            self._kernel.collect()
        except OSError as caught:
            error = caught
        if done is not None:
            _settle(done, error)


class ThreadSyncer:
    """A thread that runs `sync` when asked to. An executor would do, but was 10 to 15 % slower."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._loop = asyncio.get_running_loop()
        self._asked: queue.SimpleQueue[asyncio.Future[None] | None] = queue.SimpleQueue()
        # A daemon, so that a program that dies without closing its store does not hang in it.
        threading.Thread(target=self._run, name="store-sync", daemon=True).start()

    def sync(self) -> asyncio.Future[None]:
        done: asyncio.Future[None] = self._loop.create_future()
        self._asked.put(done)
        return done

    def stop(self) -> None:
        self._asked.put(None)

    def _run(self) -> None:
        while (done := self._asked.get()) is not None:
            error = None
            try:
                self._sync()
            except Exception as caught:
                error = caught
            with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits.
                self._loop.call_soon_threadsafe(_settle, done, error)


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
