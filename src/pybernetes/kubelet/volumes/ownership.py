"""`fsGroup`: a volume belongs to a group, and its members may do with it what its owner may.

Files become readable (and writable, unless the volume is read-only) for the group, folders also hand the group on to
what is made in them. With `fsGroupChangePolicy: OnRootMismatch` nothing is done if the topmost folder is right already.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pybernetes.component.openat2 import RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, openat2

_READ_WRITE: Final = 0o660
_READ_ONLY: Final = 0o440
_SEARCH: Final = 0o110


def set_group(folder: str | Path, group: int | None, *, read_only: bool, only_on_mismatch: bool = False) -> None:
    """Give a volume to a group; None is no group at all. Links are never followed.

    Another pod may use the volume and put a link in the place of a file or folder between two looks. So everything is
    opened once, without following links, and looked at and changed by that descriptor.
    """
    if group is None or (only_on_mismatch and _matches(folder, group, read_only)):
        return
    try:
        top = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        folders = ["."]
        for path in folders:  # which grows; no recursion, because a tree may be deeper than Python's stack
            try:
                with _opened(top, path, os.O_RDONLY | os.O_DIRECTORY) as opened, os.scandir(opened) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(f"{path}/{entry.name}")
                        else:
                            _change(opened, entry.name, group, read_only)
            except OSError:  # gone meanwhile, or deeper than a path may be long
                continue
        for path in reversed(folders):  # the topmost last: `OnRootMismatch` takes it for a sign that all are done
            _change(top, path, group, read_only)
    finally:
        os.close(top)


def _change(above: int, path: str, group: int, read_only: bool) -> None:
    try:
        with _opened(above, path, os.O_PATH | os.O_NOFOLLOW) as opened:
            itself = f"/proc/self/fd/{opened}"  # what was opened, whatever is at its path by now
            os.chown(itself, -1, group)
            mode = os.fstat(opened).st_mode
            if stat.S_ISLNK(mode):
                return
            wanted = _READ_ONLY if read_only else _READ_WRITE
            if stat.S_ISDIR(mode):
                wanted |= stat.S_ISGID | _SEARCH
            if mode & wanted != wanted:
                os.chmod(itself, stat.S_IMODE(mode) | wanted)
    except OSError:  # a file that went away, or a file system without owners: upstream goes on as well
        return


@contextmanager
def _opened(above: int, path: str, flags: int) -> Iterator[int]:
    descriptor = openat2(above, path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _matches(folder: str | Path, group: int, read_only: bool) -> bool:
    try:
        found = os.stat(folder)
    except OSError:
        return False
    wanted = (_READ_ONLY if read_only else _READ_WRITE) | _SEARCH | stat.S_ISGID
    return found.st_gid == group and stat.S_ISDIR(found.st_mode) and found.st_mode & wanted == wanted
