"""Forgets the past: every interval, what was superseded before the previous interval.

So any revision stays readable for at least one interval, which is what clients that page or resume count on. With
several servers on one store the first to come does it; compacting twice is harmless.
"""

from __future__ import annotations

import asyncio
import logging

from pybernetes.store.base import Store, StoreError

log = logging.getLogger(__name__)


async def compact_regularly(store: Store, interval: float) -> None:
    """Run until cancelled."""
    previous = 0
    while True:
        await asyncio.sleep(interval)
        try:
            current = await store.revision()
            if previous:
                await store.compact(previous)
            previous = current
        except StoreError as error:
            log.warning("compaction: %s", error)
