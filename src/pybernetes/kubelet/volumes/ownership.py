"""`fsGroup`: a volume belongs to a group, and its members may do with it what its owner may.

Files become readable (and writable, unless the volume is read-only) for the group, folders also hand the group on to
what is made in them. With `fsGroupChangePolicy: OnRootMismatch` nothing is done if the topmost folder is right already.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_READ_WRITE: Final = 0o660
_READ_ONLY: Final = 0o440
_SEARCH: Final = 0o110


def set_group(folder: str | Path, group: int | None, *, read_only: bool, only_on_mismatch: bool = False) -> None:
    """Give a volume to a group; None is no group at all. Links are never followed."""
    if group is None or (only_on_mismatch and _matches(folder, group, read_only)):
        return
    folders = [os.fspath(folder)]
    for path in folders:  # which grows; no recursion, because a tree may be deeper than Python's stack
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        _change(entry.path, group, read_only)
        except OSError:  # gone meanwhile, or deeper than a path may be long
            continue
    for path in reversed(folders):  # the topmost last: `OnRootMismatch` takes it for a sign that all are done
        _change(path, group, read_only)


def _change(path: str, group: int, read_only: bool) -> None:
    try:
        os.lchown(path, -1, group)
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return  # chmod would go through it
        wanted = _READ_ONLY if read_only else _READ_WRITE
        if stat.S_ISDIR(mode):
            wanted |= stat.S_ISGID | _SEARCH
        if mode & wanted != wanted:
            os.chmod(path, stat.S_IMODE(mode) | wanted)
    except OSError:  # a file that went away, or a file system without owners: upstream goes on as well
        return


def _matches(folder: str | Path, group: int, read_only: bool) -> bool:
    try:
        found = os.stat(folder)
    except OSError:
        return False
    wanted = (_READ_ONLY if read_only else _READ_WRITE) | _SEARCH | stat.S_ISGID
    return found.st_gid == group and stat.S_ISDIR(found.st_mode) and found.st_mode & wanted == wanted
