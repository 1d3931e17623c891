"""Work on large objects, done beside the event loop so that other requests are answered meanwhile.

A pod with 12,000 environment variables takes most of a second of server-side apply, and all of it is Python. One thread
does such work for the whole server, one object after the other: with more threads the event loop would wait longer for
the interpreter's lock, and nothing would be done sooner. Small objects never come here; switching threads costs more
than what is done with them.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Final, TypeVar

T = TypeVar("T")

SMALL: Final = 16 << 10
"""Bytes of an object that is small whatever is in it."""
MANY: Final = 1000
"""Commas and line ends of a large object: fields and elements. Each costs up to 60 µs of server-side apply."""
PATIENCE: Final = 0.0005
"""Seconds after which the thread gives the interpreter's lock to the event loop; Python's default is 0.005."""
LONGEST_WITHOUT: Final = 60.0
"""Seconds without a collection."""

_worker = ThreadPoolExecutor(1, "large-objects")


def _renew() -> None:
    """The thread of a process that was forked is not there in the fork."""
    global _worker
    _worker = ThreadPoolExecutor(1, "large-objects")


os.register_at_fork(after_in_child=_renew)


class _CollectingLater:
    """Puts Python's garbage collection off while large objects are worked on.

    A collection looks at every list and dict there is, which takes 250 ms when a large object is in the middle of its
    way through the server, and none of these is garbage yet. Afterwards they are freed without it. While one large
    object follows the other, what is new is collected once in a while all the same.
    """

    def __init__(self) -> None:
        self._users = 0
        self._since = 0.0

    def __enter__(self) -> None:
        now = monotonic()
        if not self._users:
            self._since = now
        elif now - self._since > LONGEST_WITHOUT:
            self._since = now
            gc.collect(0)
        self._users += 1
        gc.disable()

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        if not self._users:
            gc.enable()


collecting_later = _CollectingLater()


def is_large(encoded: bytes) -> bool:
    """Whether an object in JSON, YAML or protobuf has so many fields that work on it is done in the thread."""
    return len(encoded) > SMALL and encoded.count(b",") + encoded.count(b"\n") > MANY


async def beside_loop(work: Callable[[], T]) -> T:
    """Run the work in a thread and return its result. A caller that is cancelled does not stop it."""
    return await asyncio.get_running_loop().run_in_executor(_worker, _patiently, work)


def _patiently(work: Callable[[], T]) -> T:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(PATIENCE)
    try:
        return work()
    finally:
        sys.setswitchinterval(usual)
