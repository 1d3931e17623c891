"""Files of the kubelet that a pod may write to: its hosts file and the termination messages of its containers.

They are on the node's disk and no volume, so nothing limits them (CVE-2020-8557). Looked at every second; of one that
has grown beyond `MOST` only the end stays, which is what the kubelet reads of a termination message. The rest becomes
a hole: a program that has the file open goes on where it was, and gets no room back by that.

In a thread for all pods; where one of them does not answer, because a pod has mounted something on its folder, in a
thread for each.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from pybernetes.client.clock import Clock
from pybernetes.component import offload

from ..container.mounts import ETC_HOSTS_FILE
from ..stats.filesystem import Size, size_of

EVERY: Final = 1.0
LOOK_WITHIN: Final = 10.0
OWNER: Final = "files that pods write to"
MOST: Final = 1 << 20
"""Bytes on disk; a message has 4 KiB, a hosts file seldom more than a few."""
KEPT: Final = 64 << 10
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
log = logging.getLogger(__name__)


class WrittenFiles:
    """Bounds the files of the pods that run."""

    def __init__(self, *, folders: Callable[[], Iterable[Path]], clock: Clock) -> None:
        """`folders()`: those of the pods that have running containers."""
        self._folders, self._clock = folders, clock

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(EVERY)

    async def look(self) -> None:
        """Look once."""
        folders = list(self._folders())
        try:
            await offload.run(OWNER, LOOK_WITHIN, bound_all, folders)
        except offload.Overdue:
            await asyncio.gather(*map(self._look_at, folders))

    async def _look_at(self, folder: Path) -> None:
        try:
            await offload.run(f"files of pod {folder.name}", LOOK_WITHIN, bound_all, [folder])
        except offload.Overdue as error:
            log.warning("%s", error)


def files(folder: Path) -> Iterator[str]:
    """The files in a pod's folder that the pod may write to."""
    yield f"{folder}/{ETC_HOSTS_FILE}"
    messages = f"{folder}/containers"
    for container in _names(messages):
        for name in _names(f"{messages}/{container}"):
            yield f"{messages}/{container}/{name}"


def used(folder: Path) -> Size:
    """The disk usage of these files, which counts against the pod's ephemeral storage."""
    return sum((size_of(path) for path in files(folder)), Size())


def _names(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def bound_all(folders: Iterable[Path]) -> None:
    """Bound the files of pods; for a thread."""
    for path in (path for folder in folders for path in files(folder)):
        try:
            bound(path)
        except OSError as error:
            log.warning("%s cannot be kept small: %s", path, error)


def bound(path: str) -> bool:
    """Whether a file was too large: then its last bytes are left. Raises OSError."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode) or found.st_blocks * 512 <= MOST:
        return False
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _punch(descriptor, os.fstat(descriptor).st_size - KEPT)
    finally:
        os.close(descriptor)
    return True


def _punch(descriptor: int, length: int) -> None:
    """Give the room of the first bytes back; all of it where the file system has no holes."""
    if length > 0:
        flags, size = ctypes.c_int(_PUNCH_HOLE | _KEEP_SIZE), ctypes.c_int64
        if ctypes.CDLL(None, use_errno=True).fallocate(descriptor, flags, size(0), size(length)) == 0:
            return
    os.ftruncate(descriptor, 0)
