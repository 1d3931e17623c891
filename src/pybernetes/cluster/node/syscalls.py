"""System calls that Python 3.11 lacks: unshare, mount, umount and the signal at the parent's death."""

from __future__ import annotations

import ctypes
import os

NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWPID, NEWNET = 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
NEWUSER = 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC = 1, 2, 4, 8, 32, 4096, 16384
MS_SLAVE, MS_SHARED = 1 << 19, 1 << 20
MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leaves namespaces for new ones; a new PID namespace is for the children."""
    _check(_libc.unshare(flags), "")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mounts; OSError names the target."""
    _check(
        _libc.mount(source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode()),
        target,
    )


def bind(source: str, target: str, *, recursive: bool = False) -> None:
    """Shows a file or folder at a second place."""
    mount(source, target, flags=MS_BIND | (MS_REC if recursive else 0))


def umount(target: str, flags: int = 0) -> None:
    """Takes a mount away."""
    _check(_libc.umount2(target.encode(), flags), target)


def signal_at_parents_death(number: int) -> None:
    """The kernel sends this process a signal when the one that forked it ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number), 0, 0, 0), "")


def _check(result: int, subject: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), subject)
