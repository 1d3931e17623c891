"""Measures trees of files that containers and images made, with a list instead of recursion: they may be very deep."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Usage:
    """Bytes on disk, and inodes."""

    bytes: int = 0
    inodes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.bytes + other.bytes, self.inodes + other.inodes)


def measure(path: Path) -> Usage:
    """The disk usage of a tree; a file with several names counts once, and files that vanish meanwhile do not count."""
    size = inodes = 0
    linked: set[int] = set()
    left = [str(path)]
    with contextlib.suppress(OSError):
        size, inodes = os.lstat(path).st_blocks * 512, 1
    while left:
        with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        left.append(entry.path)
                    elif found.st_nlink > 1:
                        if found.st_ino in linked:
                            continue
                        linked.add(found.st_ino)
                    size, inodes = size + found.st_blocks * 512, inodes + 1
    return Usage(size, inodes)
