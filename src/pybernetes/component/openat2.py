"""openat2(2): open a path and let the kernel refuse ways that lead elsewhere."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Final

RESOLVE_NO_XDEV: Final = 0x01
"""Refuse to cross a mount point, binds of the same file system included (EXDEV)."""
RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_NO_SYMLINKS: Final = 0x04
"""Refuse every symbolic link on the way (ELOOP)."""
RESOLVE_BENEATH: Final = 0x08
"""Refuse every way out of the base folder (EXDEV)."""
RESOLVE_IN_ROOT: Final = 0x10
"""Treat the base folder as the root, for absolute links and `..` too."""
_SYS_OPENAT2: Final = 437  # the same number on all architectures
LOG_PARTS: Final = 3
"""The parts of a log's path that belong to its pod: the pod's folder, the container's, the file."""
POD_FOLDER_UNDERSCORES: Final = 2
"""A pod's folder is `NAMESPACE_NAME_UID`. Other clients of CRI may keep logs where a file system is mounted."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def openat2(base: int, path: str | bytes, flags: int, resolve: int, mode: int = 0) -> int:
    """A descriptor (close-on-exec) of `path` seen from the folder `base`; raises OSError."""
    how = _OpenHow(flags | os.O_CLOEXEC, mode, resolve)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    found = _libc().syscall(ctypes.c_long(_SYS_OPENAT2), base, os.fsencode(path), ctypes.byref(how), size)
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return int(found)


def open_without_links(path: str, flags: int, mode: int = 0) -> int:
    """A descriptor of a file in a pod's folder of logs; OSError if a part that belongs to the pod is a link (ELOOP).

    Nor does it enter what is mounted in the folder that the kubelet made for a pod (EXDEV): such a file system might
    never answer, and the kernel refuses it without asking it.
    """
    parts = path.rsplit("/", LOG_PARTS)
    resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS
    if parts[1:] and parts[1].count("_") == POD_FOLDER_UNDERSCORES:
        resolve |= RESOLVE_NO_XDEV
    folder = os.open(parts[0] or "/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return openat2(folder, "/".join(parts[1:]), flags, resolve, mode)
    finally:
        os.close(folder)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
