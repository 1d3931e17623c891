"""Retries after a conflict: read, change, write, until the write succeeds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pybernetes.api import errors

T = TypeVar("T")

STEPS = 5  # client-go's DefaultRetry: 10 ms each, with 10 % at random
DELAY = 0.01
JITTER = 0.1


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]], steps: int = STEPS) -> T:
    """Call until it raises no `errors.Conflict`, at most so often; the last conflict is raised.

    `attempt` must read the object itself: from the server, because a cache has only what has just been refused.
    """
    for _ in range(steps - 1):
        try:
            return await attempt()
        except errors.Conflict:
            await asyncio.sleep(DELAY * (1 + random.random() * JITTER))
    return await attempt()
