"""Walks and copies trees of files that strangers made: owners, modes, times, links, hard links and attributes stay.

All paths are opened as if the tree were the root (openat2), so that links lead nowhere else; device nodes and sockets
are left out.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..syscalls import open_in_root

CHUNK = 1 << 20
KEPT_ATTRIBUTES = ("security.capability", "user.")


@dataclass(frozen=True)
class Entry:
    """Something in a tree; `path` is below where the walk began."""

    path: str
    state: os.stat_result
    link: str = ""


def walk(root: int, start: str = "", skip: Callable[[str], bool] = lambda path: False) -> Iterator[Entry]:
    """All below a folder of a root, folders before what is in them, in an order that is always the same."""
    left = [""]
    while left:
        above = left.pop()
        folder = open_in_root(root, join(start, above) or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            folders = []
            for name in sorted(os.listdir(folder)):
                path = join(above, name)
                if skip(path):
                    continue
                state = os.stat(name, dir_fd=folder, follow_symlinks=False)
                link = os.readlink(name, dir_fd=folder) if stat.S_ISLNK(state.st_mode) else ""
                if stat.S_ISDIR(state.st_mode):
                    folders.append(path)
                yield Entry(path, state, link)
        finally:
            os.close(folder)
        left += reversed(folders)


def join(above: str, name: str) -> str:
    """A path below another; either may be empty."""
    return f"{above}/{name}" if above and name else above or name


def attributes(descriptor: int) -> dict[str, bytes]:
    """The extended attributes that belong to a file's content."""
    found = {}
    with contextlib.suppress(OSError):
        for name in sorted(os.listxattr(descriptor)):
            if name.startswith(KEPT_ATTRIBUTES):
                found[name] = os.getxattr(descriptor, name)
    return found


def copy_file(source: int, above: int, name: str, *, owner: tuple[int, int], mode: int, time: int) -> None:
    """Makes a file with the content and attributes of an open one; `time` is in nanoseconds."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    target = os.open(name, flags, 0o600, dir_fd=above)
    try:
        while data := os.read(source, CHUNK):
            while data:
                data = data[os.write(target, data) :]
        os.fchown(target, *owner)  # before the mode and capabilities, which it takes away
        os.fchmod(target, mode)
        for key, value in attributes(source).items():
            with contextlib.suppress(OSError):
                os.setxattr(target, key, value)
        os.utime(target, ns=(time, time))
    finally:
        os.close(target)


def copy_folder(root: int, start: str, target: int) -> None:
    """Copies what is in a folder of a root into an empty folder, and makes that one look like it."""
    linked: dict[tuple[int, int], str] = {}
    folders: list[tuple[str, os.stat_result]] = []
    for entry in walk(root, start):
        above, _, name = entry.path.rpartition("/")
        place = open_in_root(target, above or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            state, mode = entry.state, entry.state.st_mode
            inode = (state.st_dev, state.st_ino)
            if stat.S_ISDIR(mode):
                os.mkdir(name, 0o700, dir_fd=place)
                folders.append((entry.path, state))
            elif stat.S_ISREG(mode) and inode in linked:
                os.link(linked[inode], name, src_dir_fd=target, dst_dir_fd=place, follow_symlinks=False)
            elif stat.S_ISREG(mode):
                source = open_in_root(root, join(start, entry.path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    owner, rights = (state.st_uid, state.st_gid), stat.S_IMODE(mode)
                    copy_file(source, place, name, owner=owner, mode=rights, time=state.st_mtime_ns)
                finally:
                    os.close(source)
                if state.st_nlink > 1:
                    linked[inode] = entry.path
            elif stat.S_ISLNK(mode):
                os.symlink(entry.link, name, dir_fd=place)
                _own(place, name, state)
            elif stat.S_ISFIFO(mode):
                os.mkfifo(name, stat.S_IMODE(mode), dir_fd=place)
                _own(place, name, state)
        finally:
            os.close(place)
    for path, state in [*reversed(folders), ("", _state(root, start))]:
        folder = open_in_root(target, path or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fchown(folder, state.st_uid, state.st_gid)
            os.fchmod(folder, stat.S_IMODE(state.st_mode))
            os.utime(folder, ns=(state.st_mtime_ns, state.st_mtime_ns))
        finally:
            os.close(folder)


def _own(place: int, name: str, state: os.stat_result) -> None:
    os.chown(name, state.st_uid, state.st_gid, dir_fd=place, follow_symlinks=False)
    os.utime(name, ns=(state.st_mtime_ns, state.st_mtime_ns), dir_fd=place, follow_symlinks=False)


def _state(root: int, start: str) -> os.stat_result:
    folder = open_in_root(root, start or ".", os.O_PATH)
    try:
        return os.fstat(folder)
    finally:
        os.close(folder)
