"""Limits of bytes per second to and from an object store: a bucket of tokens that all threads share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from pybernetes.objectfs.format import Format


class DataOptions(NamedTuple):
    """A client's own limits in bytes per second; 0 leaves the volume's."""

    upload_limit: int = 0
    download_limit: int = 0


class Pace:
    """Limits throughput to `rate` bytes per second: a caller above it sleeps before its next transfer."""

    def __init__(
        self,
        rate: int,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._rate, self._now, self._sleep = rate, now, sleep
        self._lock = threading.Lock()
        self._free_at = now()

    def take(self, count: int) -> None:
        """Returns when `count` bytes may pass."""
        if not self._rate:
            return
        with self._lock:
            now = self._now()
            start = max(now, self._free_at)
            self._free_at = start + count / self._rate
        if start > now:
            self._sleep(start - now)


class Paces(NamedTuple):
    upload: Pace
    download: Pace


def paces(settings: Format, options: DataOptions) -> Paces:
    """The limits of a client: its own, else the volume's."""
    return Paces(
        Pace(options.upload_limit or settings.upload_limit), Pace(options.download_limit or settings.download_limit)
    )
