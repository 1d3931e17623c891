"""Node ports: one record for the whole range, changed by compare-and-swap.

The record is upstream's RangeAllocation: the range as text and a bit for each port, as the bytes of one big number.
Ports that were not requested by number are drawn from the upper part of the range first; the lower 16 to 128 stay free
for requested ones.
"""

from __future__ import annotations

import asyncio
import random
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from pybernetes.api.errors import ServiceUnavailable
from pybernetes.store.base import KeyExists, RevisionMismatch, Store, StoreUnavailable

KEY: Final = "/registry/ranges/servicenodeports"
ANY: Final = 0
"""Requests any free port."""


class PortUnavailable(Exception):
    """A port is not available; `position` is the index of its request."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position


class NodePorts:
    """The ports from `low` to `high`, shared through the store."""

    def __init__(self, store: Store, low: int, high: int, in_use: Callable[[], Iterable[int]]) -> None:
        """`in_use` tells the ports of all Services; asked when there is no record of the range yet."""
        self._store = store
        self._low = low
        self._size = high - low + 1
        self._in_use = in_use
        self._static = static_part(self._size, step=32, most=128)
        self._lock = asyncio.Lock()
        # What the record said last, and when; another server may have changed it since.
        self._taken = 0
        self._revision = 0

    @property
    def text(self) -> str:
        """The range as messages and the record show it."""
        return f"{self._low}-{self._low + self._size - 1}"

    async def take(self, requested: Sequence[int]) -> list[int]:
        """Take a port for each request, all or none. Raises PortUnavailable."""
        if not requested:
            return []

        def choose(taken: int) -> tuple[int, list[int]]:
            chosen = list(requested)
            for position, port in enumerate(requested):
                if port != ANY:
                    taken = self._set(taken, port, position)
            for position, port in enumerate(requested):
                if port == ANY:
                    chosen[position] = port = self._draw(taken, position)
                    taken |= self._bit(port)
            return taken, chosen

        return await self._change(choose)

    async def give_back(self, ports: Iterable[int]) -> None:
        """Make ports available again; those outside the range or free already are ignored."""
        mask = 0
        for port in ports:
            mask |= self._bit(port)
        if mask:
            await self._change(lambda taken: (taken & ~mask, []))

    async def has(self, port: int) -> bool:
        """Whether the port is taken."""
        return port in await self.taken()

    async def taken(self) -> set[int]:
        """All ports that are taken."""
        async with self._lock:
            await self._load()
            return {self._low + offset for offset in range(self._size) if self._taken >> offset & 1}

    def _bit(self, port: int) -> int:
        """The bit of a port; 0 outside the range."""
        offset = port - self._low
        return 1 << offset if 0 <= offset < self._size else 0

    def _set(self, taken: int, port: int, position: int) -> int:
        bit = self._bit(port)
        if not bit:
            why = f"provided port is not in the valid range. The range of valid ports is {self.text}"
            raise PortUnavailable(position, why)
        if taken & bit:
            raise PortUnavailable(position, "provided port is already allocated")
        return taken | bit

    def _draw(self, taken: int, position: int) -> int:
        for start, end in ((self._static, self._size), (0, self._static)):
            size = end - start
            free = ~(taken >> start) & ((1 << size) - 1)
            if free:
                return self._low + start + _draw_bit(free, size)
        raise PortUnavailable(position, "range is full")

    async def _change(self, choose: Callable[[int], tuple[int, list[int]]]) -> list[int]:
        """Let `choose` make the new bits from the present ones until the conditional write succeeds."""
        async with self._lock:
            fresh = not self._revision
            while True:
                if fresh:
                    await self._load()
                try:
                    taken, chosen = choose(self._taken)
                except PortUnavailable:
                    if fresh:
                        raise
                    fresh = True  # another server may have given the port back
                    continue
                if taken == self._taken or await self._swap(taken):
                    return chosen
                fresh = True

    async def _swap(self, taken: int) -> bool:
        try:
            if self._revision:
                self._revision = await self._store.update(KEY, self._encode(taken), revision=self._revision)
            else:
                self._revision = await self._store.create(KEY, self._encode(taken))
        except (RevisionMismatch, KeyExists):
            return False
        except StoreUnavailable as error:
            raise ServiceUnavailable(str(error)) from error
        self._taken = taken
        return True

    async def _load(self) -> None:
        try:
            entry = await self._store.get(KEY)
        except StoreUnavailable as error:
            raise ServiceUnavailable(str(error)) from error
        record = _decode(entry.value) if entry else None
        self._revision = entry.revision if entry else 0
        if record is not None and record.range == self.text:
            self._taken = int.from_bytes(b64decode(record.data), "big")
            return
        # The first start, or the range has another size than before: what counts is what the Services have.
        self._taken = 0
        for port in self._in_use():
            self._taken |= self._bit(port)

    def _encode(self, taken: int) -> bytes:
        data = b64encode(taken.to_bytes((taken.bit_length() + 7) // 8, "big")).decode()
        return b'{"kind":"RangeAllocation","apiVersion":"v1","metadata":{},"range":"%b","data":"%b"}' % (
            self.text.encode(),
            data.encode(),
        )


class _Record(msgspec.Struct):
    range: str = ""
    data: str = ""


def _decode(value: bytes) -> _Record | None:
    try:
        return msgspec.json.decode(value, type=_Record)
    except msgspec.DecodeError:
        return None


def _draw_bit(free: int, size: int) -> int:
    """A random one of the bits that are set: the next one from a random place on."""
    start = random.randrange(size)
    rest = free >> start
    if rest:
        return start + (rest & -rest).bit_length() - 1
    return (free & -free).bit_length() - 1


def static_part(size: int, *, step: int, most: int) -> int:
    """How many of a range are kept for those who ask by number: a share, at least 16 and not more than `most`."""
    return 0 if size <= 16 else min(max(16, size // step), most)
