"""A connection to an HTTP/1.1 server: the answer as it arrives, and who waits for it.

Subclasses decide how headers are kept and when a piece of the body wakes the reader.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
from collections import deque

import httptools


class ConnectionFailed(ConnectionError):
    """The server could not be reached, or went away in the middle of an answer."""


class Connection(asyncio.Protocol):
    """One request at a time. `_waiter` is set exactly while a task waits for the parser."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self.failure: Exception | None = None
        """Set once nothing more will come."""
        self.idle_since = 0.0
        self._paused = False
        self._begin()

    def _begin(self) -> None:
        """Nothing has arrived yet of the next answer."""
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: deque[bytes] = deque()
        self._unread = 0
        self._head_done = False
        self.complete = False
        self.reusable = False
        self.answered = False
        self.status = 0

    def still_open(self) -> bool:
        """Whether nothing has come while nothing is due: only the end can, and the loop may not have seen it yet."""
        if self.transport.is_closing():
            return False
        connection = self.transport.get_extra_info("socket")
        if connection is None:  # in memory: the loop has seen all there is
            return True
        news = select.poll()
        news.register(connection.fileno(), select.POLLIN)
        if news.poll(0):
            self.abort()
            return False
        return True

    def abort(self) -> None:
        """Close it now; pending requests are lost."""
        with contextlib.suppress(AttributeError):  # asyncio's own, before Python 3.11.4, if TLS was closed twice before
            self.transport.abort()

    async def read(self) -> bytes:
        """The bytes of the body that have arrived; empty at its end. Raises ConnectionFailed if it ends too early."""
        while not self._pieces and not self.complete:
            await self._wait()
        if not self._pieces:
            return b""
        piece = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._unread = 0
        if self._paused:
            self._paused = False
            self.transport.resume_reading()
        return piece

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        # An answer may be silent for long: let the kernel find out that the other side is gone (Go's numbers).
        _keep_alive(transport.get_extra_info("socket"))

    def _pause_if_full(self, limit: int) -> None:
        """Stop reading the socket while so many bytes are unread."""
        if self._unread > limit and not self._paused:
            self._paused = True
            self.transport.pause_reading()

    async def _wait(self) -> None:
        if self.failure:
            raise self.failure
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self.failure = self.failure or error
        if self._waiter and not self._waiter.done():
            self._waiter.set_exception(self.failure)


def _keep_alive(connection: socket.socket | None) -> None:
    if connection is None:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 9)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
