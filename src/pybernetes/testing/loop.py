"""An event loop that can be forked in the middle of its work, whose time can be moved, with a network in memory.

The selector is where the loop says that it has nothing to do, and until when: that moment is where virtual time jumps
to the next timer. A fork gets a selector and a wake-up pipe of its own (`reopen`); connections of the memory network
come along, all others belong to the parent.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from pybernetes.testing import virtual_time
from pybernetes.testing.memory_network import MemoryNetwork

REACTION = 0.01
"""Seconds that a client outside of this process gets to react to what it was sent, before time moves."""
BUSY = 0.001
"""Seconds between looks while threads are at work."""
SMALLEST = 1e-6
"""Seconds of the smallest jump: less could be lost in rounding, and time would stand still."""

EventList = list[tuple[selectors.SelectorKey, int]]


class _Selector(selectors.BaseSelector):
    """An epoll selector that moves virtual time while the loop is idle, and that a fork can replace."""

    def __init__(self) -> None:
        self._inner = selectors.EpollSelector()
        self.target: float | None = None
        """The moment to which time is being moved."""
        self.reached: Callable[[], None] = _nothing
        self.jump = False
        """Whether time jumps to the next timer whenever the loop is idle."""
        self.busy: Callable[[], bool] = _no
        """Whether threads of this process are at work: time does not move then."""
        self.sent: Callable[[], int] = int
        """How many bytes clients outside of this process have been sent."""
        self._seen = 0
        """How many of these they have had time to react to."""

    def reopen(self, keep: Mapping[int, Any]) -> None:
        """Forget the descriptors that are shared with the parent of this fork, but for those given."""
        keys = [key for key in self._inner.get_map().values() if key.fd in keep]
        # Closing it is not enough: unregistering would take the descriptors out of the parent's epoll.
        self._inner._selector.close()  # type: ignore[attr-defined]
        self._inner = selectors.EpollSelector()
        for key in keys:
            self._inner.register(key.fd, key.events, key.data)

    def select(self, timeout: float | None = None) -> EventList:
        """As every selector; when nothing is ready and the loop has nothing to do now, time may jump instead."""
        virtual_time.tick()
        if (self.target is None and not self.jump) or (timeout is not None and timeout <= 0):
            return self._inner.select(timeout)
        ready = self._inner.select(0)
        if ready:
            return ready
        if self.busy():
            return self._inner.select(BUSY)
        if (sent := self.sent()) != self._seen:
            self._seen = sent
            return self._inner.select(REACTION)
        return self._jump(timeout)

    def _jump(self, timeout: float | None) -> EventList:
        """Move time to the next timer, or to the target if that comes first."""
        if self.target is None:
            if timeout is None:
                return self._inner.select(None)
            virtual_time.move(max(timeout, SMALLEST))
            return []
        left = self.target - virtual_time.monotonic()
        if timeout is not None and timeout <= left:
            virtual_time.move(max(timeout, SMALLEST))
            return []
        virtual_time.move(max(0.0, left))
        self.target = None
        self.reached()
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.get_key(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()


class _NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address: asyncio cancels and waits for sets of them."""

    _numbers = count()

    def __init__(self, *args: Any, **options: Any) -> None:
        self._number = next(self._numbers)
        super().__init__(*args, **options)

    def __hash__(self) -> int:
        return self._number

    @classmethod
    def make(cls, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """The factory of such tasks."""
        return cls(coro, loop=loop, **options)


class ClusterLoop(asyncio.SelectorEventLoop):
    """The event loop of a test cluster."""

    def __init__(self) -> None:
        self._chosen = _Selector()
        super().__init__(self._chosen)
        self.network = MemoryNetwork()
        self._promised: WeakKeyDictionary[socket.socket, tuple[str, int]] = WeakKeyDictionary()
        """Sockets that stand for connections of the memory network which are about to be made."""
        self._unfinished = 0
        self._chosen.busy = lambda: self._unfinished > 0
        if virtual_time.stands_still():
            self.set_task_factory(_NumberedTask.make)

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        """A connection in memory where the memory network has a listener, else one of the machine's."""
        if options.get("ssl") is None:
            sock: socket.socket | None = options.get("sock")
            promised = self._promised.pop(sock, None) if sock is not None else None
            if sock is not None and promised is not None:
                sock.close()
                host, port = promised
            if sock is None or promised is not None:
                found = self.network.connect(self, protocol_factory, host, port)
                if found is not None:
                    return found
        return await super().create_connection(protocol_factory, host, port, **options)

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """As every loop; an address of the memory network is noted for `create_connection`, which gets the socket next.

        That is how aiohttp connects, and with it kopf.
        """
        if self.network.knows(*address[:2]):
            self._promised[sock] = address[:2]
        else:
            await super().sock_connect(sock, address)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """As every loop; time stands still while such a call is under way."""
        if virtual_time.stands_still():
            return self._run_now(func, *args)
        future = super().run_in_executor(executor, func, *args)
        self._unfinished += 1
        future.add_done_callback(self._finished)
        return future

    def _run_now(self, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Run the function now: when a thread would end cannot be foreseen."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _finished(self, _: object) -> None:
        self._unfinished -= 1

    def count_sent(self, sent: Callable[[], int]) -> None:
        """Let clients outside of this process react before time moves; `sent` says how many bytes they were sent."""
        self._chosen.sent = sent

    @property
    def autojump(self) -> bool:
        """Whether time jumps to the next timer whenever nothing is to be done."""
        return self._chosen.jump

    @autojump.setter
    def autojump(self, on: bool) -> None:
        self._chosen.jump = on

    async def advance(self, seconds: float) -> None:
        """Move time ahead. Every timer on the way fires in its order, sees its own moment and what follows from it."""
        if self._chosen.target is not None:
            raise RuntimeError("time is being moved already")
        reached = self.create_future()
        self._chosen.reached = lambda: reached.set_result(None) if not reached.done() else None
        self._chosen.target = self.time() + seconds
        try:
            await reached
        finally:
            self._chosen.target = None

    async def settle(self) -> None:
        """Return when everything that can happen without time passing has happened."""
        await self.advance(0.0)

    def forked(self) -> None:
        """Make this copy of a running loop independent of its parent. To be called in the child, from the loop."""
        assert isinstance(self._csock, socket.socket)  # type: ignore[attr-defined]
        wake, woken = socket.socketpair()
        # The same numbers, but no longer the parent's pipe: the loop keeps the numbers in several places.
        os.dup2(wake.fileno(), self._csock.fileno(), inheritable=False)  # type: ignore[attr-defined]
        os.dup2(woken.fileno(), self._ssock.fileno(), inheritable=False)  # type: ignore[attr-defined]
        for end in (self._csock, self._ssock):  # type: ignore[attr-defined]
            end.setblocking(False)
        wake.close()
        woken.close()
        self._chosen.reopen({self._ssock.fileno(): None})  # type: ignore[attr-defined]
        self._default_executor = None  # its threads are the parent's
        self._unfinished = 0
        asyncio._set_running_loop(self)  # asyncio looks whether it is still the same process


def _nothing() -> None:
    """Nothing waits for a moment."""


def _no() -> bool:
    return False
