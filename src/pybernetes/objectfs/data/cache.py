"""Blocks on the local disk, with checksums, least recently used first out.

A cached block is its data followed by a CRC-32 for each 32 KiB, so that a small read checks only what it reads. A block
that does not match its checksum is removed and read from the object store again. Failures of the disk are failures to
cache, never of the read.
"""

from __future__ import annotations

import logging
import os
import threading
import zlib
from collections import OrderedDict
from pathlib import Path
from struct import Struct

log = logging.getLogger(__name__)
SEGMENT = 32 << 10
_CRC = Struct("<I")


class BlockCache:
    """A folder of blocks of at most `capacity` bytes that leaves `free_ratio` of its disk free."""

    def __init__(self, folder: Path, capacity: int, free_ratio: float = 0.1) -> None:
        self._folder, self._capacity, self._free_ratio = str(folder), capacity, free_ratio
        self._lock = threading.Lock()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self.used = self.hits = self.misses = 0
        os.makedirs(self._folder, exist_ok=True)
        self._load()

    def _load(self) -> None:
        """Takes over what an earlier client left, in the order of last use; half-written files go."""
        found = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    os.unlink(entry.path)
                    continue
                status = entry.stat()
                found.append((status.st_atime, entry.name, status.st_size))
        for _, name, size in sorted(found):
            self._sizes[name] = size
            self.used += size

    def has(self, name: str) -> bool:
        return name in self._sizes

    def get(self, name: str, size: int, offset: int, length: int) -> bytes | None:
        """Part of a cached block of `size` bytes, or None."""
        with self._lock:
            if name not in self._sizes:
                self.misses += 1
                return None
            self._sizes.move_to_end(name)
        first, last = offset // SEGMENT, (offset + length - 1) // SEGMENT
        start, end = first * SEGMENT, min(size, (last + 1) * SEGMENT)
        try:
            file = os.open(f"{self._folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = os.pread(file, end - start, start)
                sums = os.pread(file, _CRC.size * (last - first + 1), size + _CRC.size * first)
            finally:
                os.close(file)
        except OSError:
            data = sums = b""
        if not _matches(data, sums, end - start):
            log.warning("cache: block %s does not match its checksum; reading it from the object store", name)
            self.remove(name)
            return None
        self.hits += 1
        return data if start == offset and end - start == length else data[offset - start : offset - start + length]

    def put(self, name: str, data: bytes) -> None:
        """Keeps a block, unless the disk is too full or fails."""
        view = memoryview(data)
        sums = b"".join(_CRC.pack(zlib.crc32(view[at : at + SEGMENT])) for at in range(0, len(data), SEGMENT))
        size = len(data) + len(sums)
        if size > self._capacity or not self._make_room(size):
            return
        temporary = f"{self._folder}/.{name}.{threading.get_ident()}"
        try:
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                whole = os.writev(file, [data, sums]) == size
            finally:
                os.close(file)
            if not whole:
                os.unlink(temporary)
                return
            os.rename(temporary, f"{self._folder}/{name}")
        except OSError as error:
            log.warning("cache: cannot keep block %s: %s", name, error)
            return
        with self._lock:
            self.used += size - self._sizes.pop(name, 0)
            self._sizes[name] = size

    def remove(self, name: str) -> None:
        with self._lock:
            self.used -= self._sizes.pop(name, 0)
        try:
            os.unlink(f"{self._folder}/{name}")
        except OSError:
            pass

    def _make_room(self, size: int) -> bool:
        while True:
            disk = os.statvfs(self._folder)
            full = disk.f_bavail < disk.f_blocks * self._free_ratio
            with self._lock:
                if not full and self.used + size <= self._capacity:
                    return True
                oldest = next(iter(self._sizes), None)
            if oldest is None:
                return False
            self.remove(oldest)


def _matches(data: bytes, sums: bytes, length: int) -> bool:
    if len(data) != length or len(sums) != -(-length // SEGMENT) * _CRC.size:
        return False
    view = memoryview(data)
    return all(
        zlib.crc32(view[at * SEGMENT : (at + 1) * SEGMENT]) == expected
        for at, (expected,) in enumerate(_CRC.iter_unpack(sums))
    )
