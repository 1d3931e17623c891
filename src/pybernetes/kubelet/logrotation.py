"""Logs of containers are cut into pieces, and old pieces are compressed and removed.

A log that has grown too large is renamed (`0.log.20240102-150405`) and the runtime opens a new one. The newest piece
stays as it is, because the container or a reader may still have it open; older ones are compressed. Readers go from
the oldest piece to the newest, so pieces are removed from the oldest on.
"""

from __future__ import annotations

import asyncio
import glob
import gzip
import logging
import os
import shutil
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from pybernetes.api.quantity import parse
from pybernetes.client.clock import Clock

COMPRESSED: Final = ".gz"
TEMPORARY: Final = ".tmp"
TIMESTAMP: Final = "%Y%m%d-%H%M%S"

log = logging.getLogger(__name__)


class LogRotator:
    """Rotates `N.log` to `N.log.TIMESTAMP`, compresses all but the newest, keeps so many files in all."""

    def __init__(
        self,
        *,
        max_size: str = "10Mi",
        max_files: int = 5,
        interval: float = 10.0,
        workers: int = 1,
        running: Callable[[], Iterable[tuple[str, str]]],
        reopen: Callable[[str], Awaitable[None]],
        clock: Clock,
    ) -> None:
        """`running()`: (container id, path of its log) of what runs; `reopen(container id)`: ReopenContainerLog.
        A negative size switches rotation off."""
        if max_files <= 1:
            raise ValueError(f"invalid MaxFiles {max_files}, must be > 1")
        self._max_size, self._max_files = parse(max_size).value(), max_files
        self._interval, self._clock = interval, clock
        self._running, self._reopen = running, reopen
        self._workers = asyncio.Semaphore(workers)

    async def run(self) -> None:
        """Look every `interval` seconds until cancelled."""
        while self._max_size >= 0:
            await self.rotate_all()
            await self._clock.sleep(self._interval)

    async def rotate_all(self) -> None:
        """Look once at the logs of everything that runs."""
        await asyncio.gather(*(self._look(id, path) for id, path in list(self._running()) if path))

    def clean(self, path: str) -> None:
        """Remove a dead container's log and all pieces of it."""
        for each in glob.glob(glob.escape(path) + "*"):
            try:
                os.unlink(each)
            except FileNotFoundError:
                pass

    async def _look(self, id: str, path: str) -> None:
        try:
            try:
                size = os.stat(path).st_size
            except FileNotFoundError:
                await self._reopen(id)  # somebody has removed it: the container writes into nowhere
                return
            if size >= self._max_size:
                async with self._workers:
                    await asyncio.to_thread(self._tidy, path)
                    await self._cut(id, path)
        except Exception as error:
            log.error("failed to rotate log %s of container %s: %s", path, id, error)

    async def _cut(self, id: str, path: str) -> None:
        moment = datetime.fromtimestamp(self._clock.now(), UTC)
        rotated = f"{path}.{moment.strftime(TIMESTAMP)}"
        os.rename(path, rotated)
        try:
            await self._reopen(id)
        except BaseException:
            os.rename(rotated, path)  # so that the next turn can try again
            raise

    def _tidy(self, path: str) -> None:
        """Room for the piece that is to come, and all pieces compressed."""
        pieces = glob.glob(glob.escape(path) + ".*")
        used = sorted(in_use(pieces))
        for each in set(pieces) - set(used):
            os.unlink(each)
        keep = max(0, self._max_files - 2)  # the new log and the piece that it is cut from count too
        first_kept = max(0, len(used) - keep)
        for each in used[:first_kept]:
            os.unlink(each)
        for each in used[first_kept:]:
            if not each.endswith(COMPRESSED):
                compress(each)


def in_use(pieces: Iterable[str]) -> list[str]:
    """Those that are no left-overs: neither temporary nor compressed already."""
    there = set(pieces)
    return [each for each in there if not each.endswith(TEMPORARY) and each + COMPRESSED not in there]


def all_logs(path: str) -> list[str]:
    """All pieces of a log, from the oldest to the newest, for a reader."""
    return [*sorted(in_use(glob.glob(glob.escape(path) + ".*"))), path]


def compress(path: str) -> None:
    """Put a compressed file in the place of a file, whole or not at all."""
    temporary = path + TEMPORARY
    mode = os.stat(path).st_mode & 0o777
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with open(path, "rb") as source, open(fd, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb") as target:
            shutil.copyfileobj(source, target)
        os.rename(temporary, path + COMPRESSED)
    finally:
        try:
            os.unlink(temporary)
        except FileNotFoundError:
            pass
    os.unlink(path)
