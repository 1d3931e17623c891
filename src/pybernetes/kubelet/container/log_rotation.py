"""Logs of containers are cut into pieces, and old pieces are compressed and removed.

A log that has grown too large is renamed (`0.log.20240102-150405`) and the runtime opens a new one. The newest piece
stays as it is, because the container or a reader may still have it open; older ones are compressed. Readers go from
the oldest piece to the newest, so pieces are removed from the oldest on.

A container may write a hundred megabytes in a second. So sizes are looked at every second, a log is cut before older
pieces are compressed, and of a piece that has become far too long only the end is kept: all pieces of a log together
stay within `max_files` x `max_size`, and one second of output more.

All of it happens in threads: a disk or a file system mounted over the logs may not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import glob
import gzip
import logging
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO, Final

from pybernetes.api.quantity import parse
from pybernetes.client.clock import Clock
from pybernetes.component import offload
from pybernetes.component.openat2 import open_without_links

COMPRESSED: Final = ".gz"
TEMPORARY: Final = ".tmp"
TIMESTAMP: Final = "%Y%m%d-%H%M%S"
LOOK_EVERY: Final = 1.0
"""Seconds between looks, if the configured interval is longer."""
LOOK_WITHIN: Final = 10.0
"""Seconds for the sizes of all logs, or to rename one."""
TIDY_WITHIN: Final = 300.0
"""Seconds to compress the pieces of one log."""
LEVEL: Final = 1
"""Of compression: gzip's usual level is slower than a container writes."""

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
        """Look until cancelled."""
        while self._max_size >= 0:
            await self.rotate_all()
            await self._clock.sleep(min(self._interval, LOOK_EVERY))

    async def rotate_all(self) -> None:
        """Look once at the logs of everything that runs."""
        logs = [(id, path) for id, path in self._running() if path]
        try:
            sizes = await offload.run("logs of containers", LOOK_WITHIN, _sizes, [path for _, path in logs])
        except offload.Overdue as error:
            log.error("failed to rotate logs: %s", error)
            return
        await asyncio.gather(*(self._look(id, path, size) for (id, path), size in zip(logs, sizes, strict=True)))

    def clean(self, path: str) -> None:
        """Remove a dead container's log and all pieces of it."""
        for each in glob.glob(glob.escape(path) + "*"):
            try:
                os.unlink(each)
            except FileNotFoundError:
                pass

    async def _look(self, id: str, path: str, size: int | OSError) -> None:
        try:
            if isinstance(size, FileNotFoundError):
                await self._reopen(id)  # it was removed: the container writes to a deleted file
            elif isinstance(size, OSError):
                raise size
            elif size >= self._max_size:
                async with self._workers:
                    await self._cut(id, path)
                    await offload.run(f"log {path}", TIDY_WITHIN, self._tidy, path)
        except Exception as error:
            log.error("failed to rotate log %s of container %s: %s", path, id, error)

    async def _cut(self, id: str, path: str) -> None:
        moment = datetime.fromtimestamp(self._clock.now(), UTC)
        rotated = f"{path}.{moment.strftime(TIMESTAMP)}"
        if not await offload.run(f"log {path}", LOOK_WITHIN, _moved_away, path, rotated):
            return  # cut in this very second
        try:
            await self._reopen(id)
        except BaseException:
            os.rename(rotated, path)  # so that the next turn can try again
            raise

    def _tidy(self, path: str) -> None:
        """Take away what is too much, and compress all pieces but the newest."""
        pieces = glob.glob(glob.escape(path) + ".*")
        used = sorted(in_use(pieces))
        for each in set(pieces) - set(used):
            os.unlink(each)
        first_kept = max(0, len(used) - (self._max_files - 1))  # the log itself counts too
        for each in used[:first_kept]:
            os.unlink(each)
        for each in used[first_kept:]:
            if not each.endswith(COMPRESSED):
                keep_end(each, self._max_size)
        for each in used[first_kept:-1]:
            if not each.endswith(COMPRESSED):
                compress(each)


def in_use(pieces: Iterable[str]) -> list[str]:
    """Those that are no left-overs: neither temporary nor compressed already."""
    there = set(pieces)
    return [each for each in there if not each.endswith(TEMPORARY) and each + COMPRESSED not in there]


def all_logs(path: str) -> list[str]:
    """All pieces of a log, from the oldest to the newest, for a reader."""
    return [*sorted(in_use(glob.glob(glob.escape(path) + ".*"))), path]


def keep_end(path: str, size: int) -> None:
    """Of a piece that is more than twice as long as it should be, keep the last whole lines."""
    with _opened(path) as source:
        if os.fstat(source.fileno()).st_size <= 2 * size:
            return
        source.seek(-size, os.SEEK_END)
        source.readline()
        with _replacing(path, path, source) as target:
            shutil.copyfileobj(source, target)


def compress(path: str) -> None:
    """Put a compressed file in the place of a file, whole or not at all."""
    with (
        _opened(path) as source,
        _replacing(path, path + COMPRESSED, source) as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=LEVEL) as target,
    ):
        shutil.copyfileobj(source, target)
    os.unlink(path)


def _sizes(paths: Iterable[str]) -> list[int | OSError]:
    """The size of each log, or why it cannot be had."""
    found: list[int | OSError] = []
    for path in paths:
        try:
            descriptor = open_without_links(path, os.O_PATH | os.O_NOFOLLOW)
            try:
                found.append(os.fstat(descriptor).st_size)
            finally:
                os.close(descriptor)
        except OSError as error:
            found.append(error)
    return found


def _moved_away(path: str, to: str) -> bool:
    """Rename a log, unless there is something of the new name."""
    if os.path.lexists(to):
        return False
    os.rename(path, to)
    return True


def _opened(path: str) -> BinaryIO:
    """A piece; never through a link, which a pod with a hostPath of /var/log may have put there."""
    file = open(path, "rb", opener=lambda each, flags: open_without_links(each, flags | os.O_NONBLOCK))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", path)
    return file


@contextlib.contextmanager
def _replacing(path: str, final: str, source: BinaryIO) -> Iterator[BinaryIO]:
    """A new file, with the mode of `source`, that takes the name `final` when it is written."""
    temporary = path + TEMPORARY
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        mode = os.fstat(source.fileno()).st_mode & 0o777
        with open(open_without_links(temporary, flags, mode), "wb") as target:
            yield target
        os.rename(temporary, final)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
