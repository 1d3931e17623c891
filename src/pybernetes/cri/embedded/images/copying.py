"""A container's root as a copy of its image's layers, where they cannot be laid over each other by overlayfs.

Absolute links are made relative, so that they stay in the copy also for who is not locked into it. A marker of
something that an upper layer takes away (a device 0/0, as overlayfs has them) takes it away here.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from pybernetes.component.removal import remove_tree

OPAQUE = "user.overlay.opaque"


def copy_layers(layers: Iterable[Path], target: Path) -> None:
    """Copies layers, the lowest first, into an empty folder. Raises OSError."""
    for layer in layers:
        _copy(str(layer), str(target), "")


def _copy(source: str, target: str, inner: str) -> None:
    with os.scandir(source) as entries:
        for entry in entries:
            found = entry.stat(follow_symlinks=False)
            there = f"{target}/{entry.name}"
            path = f"{inner}/{entry.name}"
            if stat.S_ISDIR(found.st_mode):
                _folder(entry.path, there, found)
                _copy(entry.path, there, path)
                continue
            remove_tree(there)
            if stat.S_ISREG(found.st_mode):
                shutil.copy2(entry.path, there)
            elif stat.S_ISLNK(found.st_mode):
                link = os.readlink(entry.path)
                os.symlink(os.path.relpath(link, os.path.dirname(path)) if link.startswith("/") else link, there)
            elif stat.S_ISFIFO(found.st_mode):
                os.mkfifo(there, stat.S_IMODE(found.st_mode))


def _folder(source: str, there: str, found: os.stat_result) -> None:
    if os.path.islink(there) or not os.path.isdir(there) or OPAQUE in os.listxattr(source):
        remove_tree(there)
        os.mkdir(there)
    os.chmod(there, stat.S_IMODE(found.st_mode) | stat.S_IRWXU)
