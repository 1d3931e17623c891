"""Mounting and unmounting a FUSE file system with mount(2): no fusermount, so root only."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

MS_NOATIME, MS_RELATIME, MS_STRICTATIME = 1024, 1 << 21, 1 << 24
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_SYNCHRONOUS = 1, 2, 4, 8, 16
MNT_DETACH = 2

# Words of mount(8) that are flags of mount(2).
FLAGS = {
    "ro": MS_RDONLY,
    "nosuid": MS_NOSUID,
    "nodev": MS_NODEV,
    "noexec": MS_NOEXEC,
    "sync": MS_SYNCHRONOUS,
    "noatime": MS_NOATIME,
    "relatime": MS_RELATIME,
    "strictatime": MS_STRICTATIME,
}


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, path: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)


def mount(source: str, kind: str, target: str, flags: int = 0, allow_other: bool = True) -> int:
    """Mounts at `target` and returns the descriptor of `/dev/fuse` that serves it."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},default_permissions"
    if allow_other:
        options += ",allow_other"
    try:
        _check(
            _libc().mount(
                source.encode(),
                os.fsencode(target),
                f"fuse.{kind}".encode(),
                ctypes.c_ulong(flags | MS_NOSUID | MS_NODEV),
                options.encode(),
            ),
            target,
        )
    except OSError:
        os.close(device)
        raise
    return device


def unmount(target: str, lazy: bool = False) -> None:
    """Unmounts `target`; `lazy` detaches it while files are open."""
    _check(_libc().umount2(os.fsencode(target), MNT_DETACH if lazy else 0), target)


def mounted(target: str) -> tuple[str, str] | None:
    """The source and type of the file system mounted at `target`, or None. A hung mount cannot block it."""
    found = None
    # The mount point itself must not be looked at: only its parent is resolved.
    parent, name = os.path.split(os.path.abspath(target))
    wanted = os.path.join(os.path.realpath(parent), name)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        place = left.split(" ")[4].encode().decode("unicode_escape")
        if place == wanted:
            kind, source = right.split(" ")[:2]
            found = source.encode().decode("unicode_escape"), kind
    return found
