"""Measures and removes trees of files that strangers made: containers and images may nest folders without an end.

Both work with a list instead of recursion, so that a tree deeper than Python's stack (or than a path may be long) harms
nobody.
"""

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
    """What a tree takes on its disk; a file with several names counts once, and what vanishes meanwhile not at all."""
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


def remove_tree(path: Path | str, dir_fd: int | None = None) -> None:
    """Removes a tree, or a file, as far as it can be; one that is not there is fine.

    A folder is emptied by moving the folders in it to the top, so that no path is ever longer than two names.
    """
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    except FileNotFoundError:
        return
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(path, dir_fd=dir_fd)
        return
    try:
        _empty(top)
    finally:
        os.close(top)
    with contextlib.suppress(OSError):
        os.rmdir(path, dir_fd=dir_fd)


def _empty(top: int) -> None:
    # As no name before: whoever was killed while removing this tree has left such names, and may have had our pid.
    prefix, moved = f".removed-{os.urandom(8).hex()}-", 0
    refused: set[str] = set()
    while True:
        with contextlib.suppress(OSError):
            _unlink_files(top)
        folders = [name for name in os.listdir(top) if name not in refused]
        if not folders:
            return
        for name in folders:
            moved = _empty_folder(top, name, prefix, moved)
            try:
                os.rmdir(name, dir_fd=top)
            except OSError:
                refused.add(name)


def _empty_folder(top: int, name: str, prefix: str, moved: int) -> int:
    """Removes the files of a folder and moves its folders beside it; how many have been moved in all."""
    with contextlib.suppress(OSError):
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
        try:
            _unlink_files(folder)
            for each in os.listdir(folder):
                moved += 1
                with contextlib.suppress(OSError):
                    os.rename(each, f"{prefix}{moved}", src_dir_fd=folder, dst_dir_fd=top)
        finally:
            os.close(folder)
    return moved


def _unlink_files(folder: int) -> None:
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if not entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    os.unlink(entry.name, dir_fd=folder)
