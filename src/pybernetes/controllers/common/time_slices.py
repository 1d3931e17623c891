"""Long walks over cached objects that leave the event loop to others in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

SLICE = 0.002
"""Seconds after which others get their turn."""
T = TypeVar("T")


async def in_slices(items: Iterable[T], seconds: float = SLICE) -> AsyncIterator[T]:
    """The items one by one; after so many seconds of work the event loop runs once before the next."""
    until = time.monotonic() + seconds
    for item in items:
        if time.monotonic() > until:
            await asyncio.sleep(0)
            until = time.monotonic() + seconds
        yield item
