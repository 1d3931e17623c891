"""How full file systems are, and how much a folder holds."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A file system, in bytes and inodes."""

    capacity: int
    available: int
    used: int
    inodes: int
    inodes_free: int

    @property
    def inodes_used(self) -> int:
        return self.inodes - self.inodes_free


def file_system(path: str | Path) -> FileSystem | None:
    """The file system that a path is on; None if there is no such path."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    size = found.f_frsize
    return FileSystem(
        capacity=found.f_blocks * size,
        available=found.f_bavail * size,
        used=(found.f_blocks - found.f_bfree) * size,
        inodes=found.f_files,
        inodes_free=found.f_ffree,
    )


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a folder: bytes on disk, and inodes with its own."""

    bytes: int = 0
    inodes: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.bytes + other.bytes, self.inodes + other.inodes)


def size_of(path: str | Path) -> Size:
    """The size of a folder or file, on its own file system only, hard links counted once; 0 if it does not exist."""
    try:
        top = os.lstat(path)
    except OSError:
        return Size()
    total, inodes = top.st_blocks * 512, 1
    linked: set[int] = set()
    folders = [os.fspath(path)] if stat.S_ISDIR(top.st_mode) else []
    while folders:
        try:
            entries = os.scandir(folders.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone meanwhile
                if found.st_dev != top.st_dev:
                    continue
                if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
                    if found.st_ino in linked:
                        continue
                    linked.add(found.st_ino)
                total += found.st_blocks * 512
                inodes += 1
                if stat.S_ISDIR(found.st_mode):
                    folders.append(entry.path)
    return Size(total, inodes)
