"""Blocking calls on paths, sockets and devices that a user, a pod or a plugin controls.

Such a call may never return: a stat below a hung FUSE or NFS mount waits until somebody kills the file system. So it
runs in a daemon thread, the caller waits until a deadline, and a thread that does not come back is left behind. It
counts against its owner (a pod, a volume, a plugin) until it returns, and an owner with too many of them is refused
at once: a hung mount costs one pod, and a bounded number of threads.
"""

from __future__ import annotations

import _thread
import asyncio
from collections import Counter
from collections.abc import Callable
from typing import ParamSpec, TypeVar

LIMIT = 4
"""Unfinished calls that one owner may have."""
TOTAL = 512
"""Unfinished calls of all owners together."""
P = ParamSpec("P")
T = TypeVar("T")


class Overdue(TimeoutError):
    """A call did not return in time, or its owner has too many that have not."""


class Offload:
    """A thread for each blocking call, and who they belong to.

    `_unfinished` has the number of calls of each owner that have begun and not returned, whether or not a caller
    still waits for them. Only the event loop's thread changes it.
    """

    def __init__(self, limit: int = LIMIT, total: int = TOTAL) -> None:
        self._limit, self._total = limit, total
        self._unfinished: Counter[str] = Counter()

    async def run(self, owner: str, within: float, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What `function` returns or raises; `Overdue` after `within` seconds, or when the owner has too many calls.

        A caller that is cancelled leaves the call behind, as after the timeout.
        """
        what = getattr(function, "__qualname__", repr(function))
        if self._unfinished.get(owner, 0) >= self._limit or self._unfinished.total() >= self._total:
            raise Overdue(f"{owner}: {self._unfinished.get(owner, 0)} calls have not returned, {what} is not tried")
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def finish(value: T | None, error: BaseException | None) -> None:
            self._unfinished[owner] -= 1
            if not self._unfinished[owner]:
                del self._unfinished[owner]
            if result.done():
                return
            if error is not None:
                result.set_exception(error)
            else:
                result.set_result(value)  # type: ignore[arg-type]

        def call() -> None:
            value, failure = None, None
            try:
                value = function(*args, **kwargs)
            except BaseException as error:
                failure = error
            try:
                loop.call_soon_threadsafe(finish, value, failure)
            except RuntimeError:  # the loop is closed: nothing waits any more, and nobody else counts
                self._unfinished[owner] -= 1

        self._unfinished[owner] += 1
        _thread.start_new_thread(call, ())  # threading.Thread.start waits until the thread runs
        try:
            done, _ = await asyncio.wait((result,), timeout=within)
            if done:
                return result.result()
            raise Overdue(f"{owner}: {what} did not return within {within:g} s")
        finally:
            result.cancel()

    def unfinished(self, owner: str) -> int:
        """How many calls of an owner have not returned."""
        return self._unfinished.get(owner, 0)


process = Offload()
"""The blocking calls of this process, whose threads are limited together."""


async def run(owner: str, within: float, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """`process.run`: for whoever has no `Offload` of its own."""
    return await process.run(owner, within, function, *args, **kwargs)
