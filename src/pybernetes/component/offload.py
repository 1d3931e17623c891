"""Blocking calls on paths, sockets and devices that a user, a pod or a plugin controls.

Such a call may never return: a stat below a hung FUSE or NFS mount waits until the file system's server is killed. So
it runs in a daemon thread, the caller waits until a deadline, and a thread that does not come back is left behind. It
counts against its owner (a pod, a volume, a plugin) until it returns. An owner runs a few calls at a time, the others
wait for their turn; one that has left too many behind is refused at once: a hung mount costs one pod, and a bounded
number of threads. Half of all threads are kept for owners that have left none behind: a file system that many pods
share and that hangs costs those pods, and no others.
"""

from __future__ import annotations

import _thread
import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

LIMIT = 4
"""Unfinished calls that one owner may have."""
TOTAL = 1024
"""Unfinished calls of all owners together; half of them may be of owners that have left calls behind."""
P = ParamSpec("P")
T = TypeVar("T")


class Overdue(TimeoutError):
    """A call did not return in time, or its owner has too many that have not."""


@dataclass(slots=True)
class _Owner:
    """The calls of one owner."""

    unfinished: int = 0
    """Calls that have begun and not returned, whether or not a caller still waits for them."""
    left_behind: int = 0
    """Those of them that have no waiting caller any more."""
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    """Callers whose turn has not come."""

    def wake_one(self) -> None:
        """Let the next caller that still waits try again."""
        while self.waiting:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return


class Offload:
    """A thread for each blocking call, and who they belong to.

    Invariant: `_owners` has an entry for each owner with an unfinished call or a waiting caller, and `_unfinished` and
    `_left_behind` are the sums of their calls. Only the event loop's thread changes them.
    """

    def __init__(self, limit: int = LIMIT, total: int = TOTAL) -> None:
        self._limit, self._total = limit, total
        self._owners: dict[str, _Owner] = {}
        self._unfinished = 0
        self._left_behind = 0

    async def run(self, owner: str, within: float, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function` in a thread; `Overdue` after `within` seconds, or when the owner has too many calls.

        A caller that is cancelled leaves the call behind, as after the timeout.
        """
        loop = asyncio.get_running_loop()
        what, deadline = getattr(function, "__qualname__", repr(function)), loop.time() + within
        while (calls := self._owners.get(owner)) is not None and calls.unfinished >= self._limit:
            if calls.left_behind >= self._limit or not await _turn(calls, deadline):
                raise Overdue(f"{owner}: {calls.unfinished} calls have not returned, {what} is not tried")
        if calls is not None and calls.left_behind and self._left_behind >= self._total // 2:
            raise Overdue(f"{owner}: {self._left_behind} calls of all are left behind, {what} is not tried")
        if self._unfinished >= self._total:
            raise Overdue(f"{owner}: {self._unfinished} calls of all have not returned, {what} is not tried")
        result: asyncio.Future[T] = loop.create_future()

        def finish(value: T | None, error: BaseException | None) -> None:
            self._returned(owner, left_behind=result.cancelled())
            if result.done():
                return
            if error is not None:
                result.set_exception(error)
            else:
                result.set_result(value)  # type: ignore[arg-type]

        context = copy_context()  # as asyncio.to_thread: what is recorded there belongs to the caller's span

        def call() -> None:
            value, failure = None, None
            try:
                value = context.run(function, *args, **kwargs)
            except BaseException as error:
                failure = error
            try:
                loop.call_soon_threadsafe(finish, value, failure)
            except RuntimeError:  # the loop is closed: nothing waits any more, so count it here
                self._returned(owner, left_behind=result.cancelled())

        calls = self._owners.setdefault(owner, _Owner())
        calls.unfinished += 1
        self._unfinished += 1
        try:
            _thread.start_new_thread(call, ())  # threading.Thread.start waits until the thread runs
        except RuntimeError as error:  # the process may have no more threads
            self._returned(owner, left_behind=False)
            raise Overdue(f"{owner}: {what} is not tried: {error}") from None
        try:
            done, _ = await asyncio.wait((result,), timeout=max(0.0, deadline - loop.time()))
            if done:
                return result.result()
            raise Overdue(f"{owner}: {what} did not return within {within:g} s")
        finally:
            if result.cancel():
                calls.left_behind += 1
                self._left_behind += 1

    def _returned(self, owner: str, *, left_behind: bool) -> None:
        calls = self._owners[owner]
        calls.unfinished -= 1
        calls.left_behind -= left_behind
        self._left_behind -= left_behind
        self._unfinished -= 1
        calls.wake_one()
        if not calls.unfinished and not calls.waiting:
            del self._owners[owner]

    def unfinished(self, owner: str) -> int:
        """How many calls of an owner have not returned."""
        calls = self._owners.get(owner)
        return calls.unfinished if calls else 0


async def _turn(calls: _Owner, deadline: float) -> bool:
    """Wait until one of an owner's calls returns; whether that was in time."""
    turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    calls.waiting.append(turn)
    try:
        async with asyncio.timeout_at(deadline):
            await turn
        return True
    except BaseException as error:
        if turn.done() and not turn.cancelled():
            calls.wake_one()  # it came too late for this caller
        if isinstance(error, TimeoutError):
            return False
        raise


process = Offload()
"""The blocking calls of this process, whose threads are limited together."""


async def run(owner: str, within: float, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """`process.run`: for callers without an `Offload` of their own."""
    return await process.run(owner, within, function, *args, **kwargs)
