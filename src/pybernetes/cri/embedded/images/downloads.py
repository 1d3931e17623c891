"""Blobs on their way from a registry: a file for each, that grows, is checked, and is taken up where it broke off.

downloads/sha256-HEX.part     the beginning of a blob
downloads/sha256-HEX          all of it, checked
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import IO

from .manifests import Descriptor
from .registry import Registry, RegistryError

CHUNK = 1 << 18
ATTEMPTS = 5
"""Without a single new byte; one that brought some does not count."""
PAUSE = 0.2
"""Seconds before the second attempt; doubled for each further one."""
KEEP = 24 * 3600.0
"""Seconds that the beginning of a blob is kept for another pull."""


class Cancelled(Exception):
    """No pull waits for it any more."""


class DiskError(Exception):
    """This machine's disk, not the registry, is at fault."""


Progress = Callable[[Descriptor, int], object]
"""Hears how many bytes of a blob are here."""


class Downloads:
    """The blobs in a folder. Two that want the same blob get it from one download."""

    _locks: dict[str, threading.Lock] = {}
    _guard = threading.Lock()

    def __init__(self, folder: Path, progress: Progress = lambda blob, have: None) -> None:
        self.folder = folder
        self._progress = progress
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise DiskError(str(error)) from error

    def path(self, blob: Descriptor) -> Path:
        """Where a blob is when it is here."""
        return self.folder / blob.digest.replace(":", "-")

    def open(self, registry: Registry, blob: Descriptor, cancelled: threading.Event) -> BufferedReader:
        """A blob, loaded unless it is here; raises RegistryError, `Cancelled` or `DiskError`."""
        path = self.path(blob)
        with self._guard:
            lock = self._locks.setdefault(str(path), threading.Lock())
        with lock:  # an open file stays one if another pull forgets it
            if not path.exists():
                self._load(registry, blob, path.with_name(path.name + ".part"), cancelled)
            self._progress(blob, blob.size)
            return path.open("rb")

    def forget(self, *blobs: Descriptor, beginnings: bool = False) -> None:
        """Removes blobs that have been used (also partial ones), and abandoned ones."""
        for blob in blobs:
            path = self.path(blob)
            with self._guard:
                lock = self._locks.setdefault(str(path), threading.Lock())
            with lock:
                path.unlink(missing_ok=True)
                if beginnings:
                    path.with_name(path.name + ".part").unlink(missing_ok=True)
        old = time.time() - KEEP
        for path in self.folder.iterdir():
            try:
                if path.stat().st_mtime < old:
                    path.unlink()
            except FileNotFoundError:
                pass

    def _load(self, registry: Registry, blob: Descriptor, part: Path, cancelled: threading.Event) -> None:
        failures = 0
        while True:
            before = part.stat().st_size if part.exists() else 0
            try:
                self._attempt(registry, blob, part, cancelled)
                break
            except RegistryError as error:
                grown = part.exists() and part.stat().st_size > before
                failures = 0 if grown else failures + 1
                if not error.transient or failures >= ATTEMPTS:
                    raise
                if cancelled.wait(PAUSE * 2**failures):
                    raise Cancelled from None
        part.rename(part.with_name(part.name.removesuffix(".part")))

    def _attempt(self, registry: Registry, blob: Descriptor, part: Path, cancelled: threading.Event) -> None:
        try:
            with part.open("a+b") as out:
                out.seek(0)
                digest = hashlib.sha256()
                have = _copy(lambda: out.read(CHUNK), [digest.update])
                if have > blob.size:
                    have, digest = 0, hashlib.sha256()
                    out.truncate(0)
                if have < blob.size:
                    have, digest = self._receive(registry, blob, out, have, digest, cancelled)
        except OSError as error:
            raise DiskError(str(error)) from error
        if have != blob.size:
            raise RegistryError(f"failed to copy: unexpected EOF: {have} of {blob.size} bytes of {blob.digest}")
        if f"sha256:{digest.hexdigest()}" != blob.digest:
            part.unlink()
            told = f"unexpected commit digest sha256:{digest.hexdigest()}, expected {blob.digest}: failed precondition"
            raise RegistryError(f'failed commit on ref "layer-{blob.digest}": {told}', "FailedPrecondition")

    def _receive(
        self,
        registry: Registry,
        blob: Descriptor,
        out: IO[bytes],
        have: int,
        digest: hashlib._Hash,
        cancelled: threading.Event,
    ) -> tuple[int, hashlib._Hash]:
        try:
            opened = registry.blob(blob.digest, have)
            with opened as (stream, begins):
                if begins != have:
                    have, digest = 0, hashlib.sha256()
                    out.truncate(0)
                while have < blob.size:
                    if cancelled.is_set():
                        raise Cancelled
                    data = stream.read(min(CHUNK, blob.size - have))
                    if not data:
                        break
                    try:
                        out.write(data)
                    except OSError as error:  # not the connection's, which would be tried again
                        raise DiskError(str(error)) from error
                    digest.update(data)
                    have += len(data)
                    if have < blob.size:  # all of it counts only when it has been checked
                        self._progress(blob, have)
                else:
                    if stream.read(1):
                        told = f"unexpected commit size, expected {blob.size}: failed precondition"
                        raise RegistryError(f'failed commit on ref "layer-{blob.digest}": {told}', "FailedPrecondition")
        except RegistryError as error:
            if error.status == 416:  # what is here is not the beginning of what is there
                out.truncate(0)
                raise RegistryError(str(error)) from None
            raise
        return have, digest


def _copy(read: Callable[[], bytes], write: list[Callable[[bytes], object]]) -> int:
    size = 0
    while data := read():
        size += len(data)
        for each in write:
            each(data)
    return size
