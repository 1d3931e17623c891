"""Gives memory that is not needed back to the machine: collects garbage, and gives back what is free.

Python collects old garbage by the number of objects that were made since, and so hardly ever in a server that makes
few of those that can be in cycles. But a cycle may hold much: of 44 custom resources that were defined and deleted
again 8 MB stayed. Here garbage is collected by time.

Large answers come and go; glibc keeps what they leave behind, because small things lie between the holes. Eight lists
of 20 MB at once left 180 MB resident, five times eight 330 MB. Looking for the holes takes 2 to 8 ms.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybernetes.store.cache import Cache

INTERVAL = 10.0  # seconds
COLLECT_EVERY = 60.0
"""Seconds between two collections at least."""
SHARE = 0.005
"""Of the time that collections may take: one of 500 ms is followed by the next after 100 s."""


class Collector:
    """Collects garbage when it is time."""

    def __init__(self) -> None:
        self._due = time.monotonic() + COLLECT_EVERY

    def collect(self) -> bool:
        """Collect if it is time, and no large object is being worked on (`verbs.large`); whether it did."""
        began = time.monotonic()
        if began < self._due or not gc.isenabled():
            return False
        gc.collect()
        now = time.monotonic()
        self._due = now + max(COLLECT_EVERY, (now - began) / SHARE)
        return True


async def trim_regularly(cache: Cache) -> None:
    """Run until cancelled: let the watch cache forget old changes, collect garbage, and give free memory back where
    glibc keeps it.
    """
    import ctypes

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        trim = None
    collector = Collector()
    while True:
        await asyncio.sleep(INTERVAL)
        cache.age(time.monotonic())
        collector.collect()
        if trim is not None:
            trim(0)
