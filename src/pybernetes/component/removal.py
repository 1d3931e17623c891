"""Removes trees of files that others made: volumes of pods, writable layers, image layers, a cluster's data.

The tree is walked by descriptors and never by a path, so a symbolic link that another process puts in the place of a
folder leads nowhere. It is walked with a list and not by recursion: a container may nest folders deeper than Python's
stack, or than a path may be long. Nothing behind a mount point is removed, because that is another owner's data.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Final

from .openat2 import RESOLVE_NO_XDEV, openat2

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER: Final = (errno.ENOTDIR, errno.ELOOP)
_NO_OPENAT2: Final = (errno.ENOSYS, errno.EPERM)
"""A kernel before 5.6, or a seccomp filter that does not know the call."""


def remove_tree(path: Path | str, dir_fd: int | None = None, *, ignore_errors: bool = False) -> None:
    """Remove a folder with all that is in it, or a file; a path that is not there is fine.

    Goes on after an error and removes what it can. Raises the first OSError if something is left, unless
    `ignore_errors`. A folder is emptied by moving the folders in it to the top: no name is ever deeper than two.
    """
    head, name = os.path.split(os.fspath(path).rstrip("/"))
    if name in ("", ".", ".."):
        raise ValueError(f"{path} names no folder that can be removed")
    try:
        parent = os.open(head or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    except FileNotFoundError:
        return
    except OSError:
        if ignore_errors:
            return
        raise
    removal = _Removal()
    try:
        removal.remove(parent, name)
    finally:
        os.close(parent)
    if removal.error is not None and not ignore_errors:
        raise removal.error


class _Removal:
    """One removal, and the first error that kept something in its place."""

    def __init__(self) -> None:
        self.error: OSError | None = None
        # Unlike any earlier name: a process that was killed while it removed this tree has left such names.
        self._prefix = f".removed-{os.urandom(8).hex()}-"
        self._moved = 0

    def remove(self, parent: int, name: str) -> None:
        try:
            top = _open(parent, name)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno in _NO_FOLDER:
                self._try(os.unlink, name, parent)
            else:
                self._note(error)
            return
        try:
            self._empty(top)
        finally:
            os.close(top)
        self._try(os.rmdir, name, parent)

    def _empty(self, top: int) -> None:
        refused: set[str] = set()
        while folders := [name for name in self._unlink_files(top) if name not in refused]:
            for name in folders:
                self._flatten(top, name)
                if not self._try(os.rmdir, name, top):
                    refused.add(name)

    def _flatten(self, top: int, name: str) -> None:
        """Unlink the files of a folder and move its folders beside it."""
        try:
            folder = _open(top, name)
        except OSError as error:
            self._note(error)
            return
        try:
            for each in self._unlink_files(folder):
                with contextlib.suppress(OSError):
                    os.rmdir(each, dir_fd=folder)  # most folders are empty by now, or were
                    continue
                self._moved += 1
                try:
                    os.rename(each, f"{self._prefix}{self._moved}", src_dir_fd=folder, dst_dir_fd=top)
                except OSError as error:
                    self._note(error)
        finally:
            os.close(folder)

    def _unlink_files(self, folder: int) -> list[str]:
        """Unlink all files of a folder; the names of the folders in it."""
        folders = []
        try:
            with os.scandir(folder) as entries:
                for entry in list(entries):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    else:
                        self._try(os.unlink, entry.name, folder)
        except OSError as error:
            self._note(error)
        return folders

    def _try(self, function: object, name: str, dir_fd: int) -> bool:
        try:
            function(name, dir_fd=dir_fd)  # type: ignore[operator]
        except FileNotFoundError:
            return True
        except OSError as error:
            self._note(error)
            return False
        return True

    def _note(self, error: OSError) -> None:
        if self.error is None:
            self.error = error


def _open(parent: int, name: str) -> int:
    try:
        return openat2(parent, name, _FOLDER, RESOLVE_NO_XDEV)
    except OSError as error:
        if error.errno not in _NO_OPENAT2:
            raise
    return os.open(name, _FOLDER, dir_fd=parent)
