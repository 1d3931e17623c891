"""Gives memory that is free back to the machine.

Large answers come and go; glibc keeps what they leave behind, because small things lie between the holes. Eight lists
of 20 MB at once left 180 MB resident, five times eight 330 MB. Looking for the holes takes 2 to 8 ms.
"""

from __future__ import annotations

import asyncio

INTERVAL = 10.0  # seconds


async def trim_regularly() -> None:
    """Run until cancelled; at once done where the C library is not glibc."""
    import ctypes

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return
    while True:
        await asyncio.sleep(INTERVAL)
        trim(0)
