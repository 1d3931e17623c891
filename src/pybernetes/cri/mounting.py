"""mount(2), umount(2) and the kernel's list of mounts."""

from __future__ import annotations

import ctypes
import errno
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pybernetes.cri import capabilities

MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_REMOUNT: Final = 32
MS_BIND: Final = 4096
MS_REC: Final = 16384
MNT_DETACH: Final = 2
UMOUNT_NOFOLLOW: Final = 8

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of mountinfo."""

    path: str
    root: str
    """The folder of its file system that is seen there."""
    type: str
    options: str
    source: str = ""
    """The mounted source, such as a device."""


def mount(source: str, target: str | Path, type: str = "", flags: int = 0, options: str = "") -> None:
    """Mount something somewhere; raises OSError."""
    arguments = (source.encode(), os.fsencode(target), type.encode() or None, ctypes.c_ulong(flags), options.encode())
    if _libc().mount(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


@cache
def may_mount() -> bool:
    """Whether this process may mount anything: it has CAP_SYS_ADMIN over its mount namespace."""
    return capabilities.has("SYS_ADMIN")


def bind(source: str, target: str | Path, *, read_only: bool = False) -> None:
    """Show a file or folder at a second place too; read-only takes a second call, the first ignores it."""
    mount(source, target, flags=MS_BIND)
    if read_only:
        try:
            mount("none", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)
        except OSError:
            unmount(target)
            raise


def unmount(target: str | Path, *, lazily: bool = False) -> None:
    """Unmount; nothing happens if nothing is mounted there. `lazily` takes it away from sight although it is in use."""
    flags = UMOUNT_NOFOLLOW | (MNT_DETACH if lazily else 0)
    if _libc().umount2(os.fsencode(target), flags) != 0:
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOENT):
            raise OSError(number, os.strerror(number), str(target))


def mounts(below: str | Path = "/", mountinfo: str = "/proc/self/mountinfo") -> list[Mount]:
    """All mounts at or below a path, those that are mounted later or deeper behind the others."""
    prefix = os.path.realpath(below).rstrip("/")
    found = []
    with open(mountinfo, errors="surrogateescape") as file:
        for line in file:
            fields = line.split(" ")
            path = _unescaped(fields[4])
            if path == prefix or path.startswith(prefix + "/"):
                rest = fields[fields.index("-", 6) + 1 :]
                found.append(Mount(path, _unescaped(fields[3]), rest[0], fields[5], _unescaped(rest[1])))
    return found


def is_mount_point(path: str | Path) -> bool:
    """Whether something is mounted at exactly this path; binds on the same file system count too."""
    try:
        if os.lstat(path).st_dev != os.lstat(os.path.dirname(path)).st_dev:
            return True
    except FileNotFoundError:
        return False
    real = os.path.realpath(path)
    return any(each.path == real for each in mounts(real))


def _unescaped(text: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text) if "\\" in text else text


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
