"""Events gather in a buffer and are handed on together, so that nobody waits for whoever takes them.

When the buffer is full, events are dropped and counted: the server goes on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import msgspec

log = logging.getLogger(__name__)


class Backend(Protocol):
    """Whoever takes events."""

    async def send(self, events: Sequence[bytes]) -> bool:
        """Whether they were taken."""
        ...

    async def close(self) -> None: ...


class BatchSettings(msgspec.Struct, frozen=True):
    """How events gather."""

    buffer_size: int = 10_000
    max_size: int = 400
    max_wait: float = 30.0
    throttle: bool = True
    qps: float = 10.0
    burst: int = 15


class Batching:
    """A buffer in front of a backend."""

    def __init__(self, backend: Backend, settings: BatchSettings) -> None:
        self._backend = backend
        self._settings = settings
        self._buffer: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._tokens = float(settings.burst)
        self._filled = time.monotonic()
        self._sending: set[asyncio.Task[bool]] = set()
        self.dropped = 0

    def add(self, event: bytes) -> None:
        """Take an event, or drop it if there is no room."""
        if self._closing or len(self._buffer) >= self._settings.buffer_size:
            self.dropped += 1
            if self.dropped == 1:
                log.error("audit events are dropped: the buffer of %d is full", self._settings.buffer_size)
            return
        self._buffer.append(event)
        if len(self._buffer) == 1 or len(self._buffer) >= self._settings.max_size:
            self._wake.set()

    async def run(self) -> None:
        """Hand on what gathers. Runs until cancelled."""
        settings = self._settings
        while True:
            await self._wake.wait()
            self._wake.clear()
            if len(self._buffer) < settings.max_size and settings.max_wait > 0:
                try:
                    async with asyncio.timeout(settings.max_wait):
                        while len(self._buffer) < settings.max_size:
                            await self._wake.wait()
                            self._wake.clear()
                except TimeoutError:
                    pass
            while self._buffer:
                await self._allowed()
                self._send()
                if len(self._buffer) < settings.max_size:
                    if self._buffer:
                        self._wake.set()
                    break

    async def close(self) -> None:
        """Hand on what is left."""
        self._closing = True
        while self._buffer:
            self._send()
        if self._sending:
            await asyncio.wait(self._sending, timeout=5.0)
        await self._backend.close()

    def _send(self) -> None:
        """Not waited for: one that is slow must not hold up the next."""
        count = min(len(self._buffer), self._settings.max_size)
        events = [self._buffer.popleft() for _ in range(count)]
        task = asyncio.get_running_loop().create_task(self._backend.send(events))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _allowed(self) -> None:
        settings = self._settings
        if not settings.throttle:
            return
        while True:
            now = time.monotonic()
            self._tokens = min(settings.burst, self._tokens + (now - self._filled) * settings.qps)
            self._filled = now
            if self._tokens >= 1:
                self._tokens -= 1
                return
            await asyncio.sleep((1 - self._tokens) / settings.qps)
