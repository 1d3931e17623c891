"""openat2(2): open a path and let the kernel refuse ways that lead elsewhere."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Final

RESOLVE_NO_XDEV: Final = 0x01
"""Refuse to cross a mount point, binds of the same file system included (EXDEV)."""
RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_BENEATH: Final = 0x08
"""Refuse every way out of the base folder (EXDEV)."""
RESOLVE_IN_ROOT: Final = 0x10
"""Treat the base folder as the root, for absolute links and `..` too."""
_SYS_OPENAT2: Final = 437  # the same number on all architectures


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def openat2(base: int, path: str | bytes, flags: int, resolve: int) -> int:
    """A descriptor (close-on-exec) of `path` seen from the folder `base`; raises OSError."""
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    found = _libc().syscall(ctypes.c_long(_SYS_OPENAT2), base, os.fsencode(path), ctypes.byref(how), size)
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return int(found)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
