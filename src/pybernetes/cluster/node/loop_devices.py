"""Detaches the loop devices of a node's volumes. They are the machine's, and do not end with the node's namespaces.

A device is known by the file behind it, by device and inode: its path is that of a mount namespace that is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from pathlib import Path
from typing import Final

CLR_FD: Final = 0x4C01
GET_STATUS64: Final = 0x4C05
INFO64: Final = 232
"""Bytes of struct loop_info64; the first two numbers are the file's device and inode."""
DISKS: Final = "lib-kubelet/plugins/*/volumes/*/disk.img"


def release(node: Path) -> list[str]:
    """Detach the devices of the images in a node's folder; answers what could not be detached."""
    files = set()
    for each in node.glob(DISKS):
        with contextlib.suppress(OSError):
            found = each.stat()
            files.add((found.st_dev, found.st_ino))
    left = []
    for entry in Path("/sys/block").glob("loop*/loop") if files else ():
        device = f"/dev/{entry.parent.name}"
        try:
            descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # no such device in this machine's /dev: not made by our nodes, which share it
            continue
        try:
            if _file(descriptor) in files:
                fcntl.ioctl(descriptor, CLR_FD)
        except OSError as error:
            left.append(f"{device}: {error.strerror}")
        finally:
            os.close(descriptor)
    return left


def _file(descriptor: int) -> tuple[int, int]:
    """Device and inode of the file behind a loop device; zeros if there is none any more."""
    information = bytearray(INFO64)
    try:
        fcntl.ioctl(descriptor, GET_STATUS64, information)
    except OSError:
        return 0, 0
    device, inode = struct.unpack_from("=QQ", information)
    return device, inode
