"""Binding a folder of a mounted volume somewhere on the node, and undoing it.

What lies in a volume is written by others: the folder is walked to without following links, so that a link in the
volume never leads to a folder of the node.
"""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from pybernetes.csi.errors import CSIError
from pybernetes.objectfs.fuse import mount_point

MS_BIND, MS_REMOUNT, MS_RDONLY = 4096, 32, 1


def bind(source: Path, folder: str, target: str, *, read_only: bool, over: bool = False) -> None:
    """Bind `folder` below a mount at `target`, which is made; a folder that is not there is made too.

    `over`: also on top of what is mounted at `target`, so that the containers that have that get the new mount.
    """
    descriptor = _open(source, folder)
    try:
        there = mount_point.mounted(target) is not None
        if not there:
            os.makedirs(target, exist_ok=True, mode=0o750)
        if over or not there:
            _mount(f"/proc/self/fd/{descriptor}", target, MS_BIND)
    finally:
        os.close(descriptor)
    if read_only:  # also where an earlier process was killed in between
        _mount("", target, MS_BIND | MS_REMOUNT | MS_RDONLY)


def unmount(target: str) -> None:
    """Unmount all that is at `target`."""
    while mount_point.mounted(target) is not None:
        mount_point.unmount(target, lazy=True)


def unbind(target: str) -> None:
    """Unmount what is at `target`, and remove it if it is empty; fine if it is not there."""
    unmount(target)
    try:
        os.rmdir(target)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


def is_dead(target: str) -> bool:
    """Whether a mount's client is gone for good. Not by stat(2), which the kernel may answer from its cache."""
    try:
        os.statvfs(target)
    except OSError as error:
        return error.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    return False


def _open(source: Path, folder: str) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(source, flags)
    for part in folder.split("/") if folder else ():
        try:
            try:
                inner = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            except FileNotFoundError:
                os.mkdir(part, 0o777, dir_fd=descriptor)
                inner = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            message = f"volumeAttributes.folder {folder!r}: {part!r} in the volume is a link or a file, not a folder"
            raise CSIError("FailedPrecondition", message) from None
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _mount(source: str, target: str, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(flags), None) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"cannot mount {source} at {target}: {os.strerror(code)}")
