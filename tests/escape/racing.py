"""A thread that exchanges a file or folder with a link, as fast as it can, for as long as a race lasts."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from pathlib import Path

_RENAME_EXCHANGE = 2
_libc = ctypes.CDLL(None, use_errno=True)


def exchange(first: Path, second: Path) -> None:
    """Both change places in one step."""
    if _libc.renameat2(-100, os.fsencode(first), -100, os.fsencode(second), _RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def exchanging(first: Path, second: Path) -> Iterator[None]:
    """Exchanges them again and again in another thread."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            exchange(first, second)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
