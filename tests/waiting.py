"""Waiting for a condition from a coroutine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tools import PATIENCE


async def wait_for(condition: Callable[[], object], what: str, within: float = PATIENCE, every: float = 0.001) -> None:
    """Return when the condition holds; fail with `what` if it does not in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while not condition():
        assert loop.time() < deadline, f"{what}: not within {within} s"
        await asyncio.sleep(every)
