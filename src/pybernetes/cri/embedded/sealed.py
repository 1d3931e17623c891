"""The Python that pods' processes are forked from, as a file that no container can change.

A process runs our interpreter until it executes its program, and `/proc/self/exe` leads to it: as a command, or as the
interpreter of a script in an image. Root in a container would then hold the node's own binary and could change its
mode or attributes. So the launcher runs from a read-only overlay, whose files are not the node's (they share its page
cache), or from a sealed copy in memory where there is no overlayfs.
"""

from __future__ import annotations

import fcntl
import os

from . import syscalls

_F_ADD_SEALS = 1033
_SEALS = 0x1 | 0x2 | 0x4 | 0x8
"""Neither more seals nor other content: SEAL, SHRINK, GROW, WRITE."""


def executable(path: str, empty: str) -> int:
    """A descriptor to execute instead of the file at `path`; `empty` is an empty folder."""
    real = os.path.realpath(path)
    try:
        return _in_overlay(real, empty)
    except OSError:
        return _in_memory(real)


def _in_overlay(path: str, empty: str) -> int:
    folder, name = os.path.split(path)
    lower = [os.open(each, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for each in (folder, empty)]
    try:
        # By descriptors: an option has at most 255 bytes. Overlayfs without a writable layer wants two layers.
        root = syscalls.private_mount("overlay", lowerdir=":".join(f"/proc/self/fd/{each}" for each in lower))
    finally:
        for each in lower:
            os.close(each)
    try:
        return os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=root)
    finally:
        os.close(root)


def _in_memory(path: str) -> int:
    copy = os.memfd_create("python", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(path, "rb") as file:
        while os.sendfile(copy, file.fileno(), None, 1 << 24):
            pass
    fcntl.fcntl(copy, _F_ADD_SEALS, _SEALS)
    return copy
