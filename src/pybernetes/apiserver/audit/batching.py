"""Buffers events and hands them on in batches, so that no request waits for the backend.

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

from . import metrics

log = logging.getLogger(__name__)


class Backend(Protocol):
    """Receives events."""

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
    max_bytes: int = 0
    """Of what is sent at once; 0 = any number."""


class Batching:
    """A buffer in front of a backend."""

    def __init__(self, backend: Backend, settings: BatchSettings, name: str) -> None:
        """`name` is what the backend is called where lost events are counted."""
        self._backend = backend
        self._name = name
        self._settings = settings
        self._buffer: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._tokens = float(settings.burst)
        self._filled = time.monotonic()
        self._sending: set[asyncio.Task[None]] = set()
        self.dropped = 0

    def add(self, event: bytes) -> None:
        """Take an event, or drop it if there is no room."""
        if self._closing or len(self._buffer) >= self._settings.buffer_size:
            self.dropped += 1
            metrics.ERRORS.add(self._name)
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
        for part in _parts(events, self._settings.max_bytes):
            task = asyncio.get_running_loop().create_task(self._hand_on(part))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _hand_on(self, events: list[bytes]) -> None:
        if not await self._backend.send(events):
            metrics.ERRORS.add(self._name, times=len(events))

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


def _parts(events: list[bytes], limit: int) -> list[list[bytes]]:
    """Events in the order they are in, in parts of no more bytes than that, each of at least one event."""
    if not limit:
        return [events]
    parts: list[list[bytes]] = []
    size = 0
    for each in events:
        size += len(each)
        if not parts or size > limit:
            parts.append([])
            size = len(each)
        parts[-1].append(each)
    return parts
