"""Events as lines of a file, which is put aside when it is large and begun anew."""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

log = logging.getLogger(__name__)
_STAMP = "%Y-%m-%dT%H-%M-%S"
_MEGABYTE = 1024 * 1024


class RotatingFile:
    """A file of limited size; older parts are beside it, with the time at which they were put aside in the name."""

    def __init__(
        self,
        path: Path,
        *,
        megabytes: int = 0,
        days: int = 0,
        backups: int = 0,
        compress: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises OSError for a file that cannot be written."""
        self._path = path
        self._limit = megabytes * _MEGABYTE
        self._days = days
        self._backups = backups
        self._compress = compress
        self._clock = clock
        self._tidiness = threading.Lock()
        self._tidying: threading.Thread | None = None
        self._open()

    def write(self, line: bytes) -> None:
        """Add a line. Raises OSError."""
        if self._limit and self._size + len(line) > self._limit and self._size:
            self._rotate()
        self._file.write(line)
        self._size += len(line)

    def close(self) -> None:
        """No more lines; what was put aside last is compressed first."""
        self._file.close()
        if self._tidying is not None:
            self._tidying.join()

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file: BinaryIO = os.fdopen(descriptor, "ab", buffering=0)
        self._size = os.fstat(descriptor).st_size

    def _rotate(self) -> None:
        now = datetime.fromtimestamp(self._clock(), UTC)
        stamp = f"{now.strftime(_STAMP)}.{now.microsecond // 1000:03d}"
        aside = self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}")
        self._path.rename(aside)
        full = self._file
        self._open()
        full.close()  # only now: if there can be no other file, this one goes on
        if self._compress:  # seconds for a large file, in which requests would not be answered
            self._tidying = threading.Thread(target=self._tidy, args=(aside, now), name="audit-log", daemon=True)
            self._tidying.start()
        else:
            self._tidy(None, now)

    def _tidy(self, aside: Path | None, now: datetime) -> None:
        """Compress what was put aside, and remove what is too much or too old."""
        with self._tidiness, contextlib.suppress(OSError):
            if aside is not None:
                packed = aside.with_name(f"{aside.name}.gz")
                with (
                    open(aside, "rb") as source,
                    open(packed, "wb", opener=_private) as raw,
                    gzip.open(raw, "wb") as out,
                ):
                    shutil.copyfileobj(source, out)
                aside.unlink()
            self._remove_old(now)

    def _remove_old(self, now: datetime) -> None:
        for kept, (moment, path) in enumerate(sorted(self._old(), reverse=True), 1):
            too_many = self._backups and kept > self._backups
            too_old = self._days and moment < now - timedelta(days=self._days)
            if too_many or too_old:
                path.unlink()

    def _old(self) -> list[tuple[datetime, Path]]:
        found = []
        prefix, suffix = f"{self._path.stem}-", self._path.suffix
        for path in self._path.parent.iterdir():
            name = path.name.removesuffix(".gz")
            if name.startswith(prefix) and name.endswith(suffix):
                stamp = name[len(prefix) : len(name) - len(suffix)].rpartition(".")[0]
                with contextlib.suppress(ValueError):
                    found.append((datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC), path))
        return found


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class LogBackend:
    """Writes events as they are given, encoded already."""

    def __init__(self, file: RotatingFile | None) -> None:
        self._file = file

    def write(self, events: Sequence[bytes]) -> bool:
        """Whether all were written."""
        try:
            for each in events:
                if self._file is None:
                    sys.stdout.buffer.write(each + b"\n")
                    sys.stdout.buffer.flush()
                else:
                    self._file.write(each + b"\n")
        except OSError as error:
            log.error("an audit event was not written: %s", error)
            return False
        return True

    async def send(self, events: Sequence[bytes]) -> bool:
        """As `write`, for batches."""
        return self.write(events)

    async def close(self) -> None:
        """No more events."""
        if self._file is not None:
            self._file.close()
