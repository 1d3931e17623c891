"""Images of a fixed size: made, formatted, attached to loop devices, grown. Everything here blocks and needs root."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

from pybernetes.csi.errors import CSIError


def available() -> bool:
    """Whether this process may make loop devices."""
    return os.access("/dev/loop-control", os.R_OK | os.W_OK)


def make_image(path: Path, size: int, *, formatted: bool) -> None:
    """A sparse file of this size, with ext4 in it if asked."""
    with open(path, "xb") as file:
        os.ftruncate(file.fileno(), size)
    if formatted:
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", "-m", "0", str(path))


def grow_image(path: Path, size: int) -> None:
    """Make the file larger; never smaller."""
    with open(path, "r+b") as file:
        if os.fstat(file.fileno()).st_size < size:
            os.ftruncate(file.fileno(), size)


def attach(path: Path) -> str:
    """The loop device of an image, a new one if it has none."""
    return find(path) or _run("losetup", "--find", "--show", "--nooverlap", str(path)).strip()


def find(path: Path) -> str:
    """The loop device of an image; empty if it has none."""
    lines = _run("losetup", "--list", "--noheadings", "--output", "NAME", "--associated", str(path)).split()
    return lines[0] if lines else ""


def detach(path: Path) -> None:
    """Detach an image from its loop device; fine if it has none."""
    device = find(path)
    if device:
        _run("losetup", "--detach", device)


def file_system_size(path: Path) -> int:
    """Bytes that the ext4 in an image (or device) takes, by its superblock."""
    with open(path, "rb") as file:
        file.seek(1024)
        block = file.read(1024)
    low, size, high = (struct.unpack_from("<I", block, offset)[0] for offset in (0x4, 0x18, 0x150))
    return int((high << 32 | low) * (1024 << size))


def has_grown(path: Path) -> bool:
    """Whether an image is larger than the file system in it, by more than its last block group."""
    size = os.stat(path).st_size
    return size - file_system_size(path) >= 64 << 10


def grow_unused(path: Path) -> None:
    """Let the file system of an image that is not mounted have the whole image."""
    if has_grown(path):
        _run("e2fsck", "-f", "-y", str(path), good=(0, 1))
        _run("resize2fs", str(path))


def grow_mounted(path: Path) -> None:
    """Let the file system of an image that is mounted have the whole image; the kernel asks for CAP_SYS_RESOURCE."""
    device = find(path)
    if device and has_grown(path):
        _run("losetup", "--set-capacity", device)
        try:
            _run("resize2fs", device)
        except CSIError as error:
            if "Permission denied" not in error.message:
                raise
            raise CSIError(
                "FailedPrecondition", "this machine does not let a mounted file system grow: restart the pod"
            ) from None


def grow_device(path: Path) -> None:
    """Let the device have the whole image."""
    device = find(path)
    if device:
        _run("losetup", "--set-capacity", device)


def _run(*words: str, good: tuple[int, ...] = (0,)) -> str:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    try:
        done = subprocess.run(
            words, capture_output=True, check=False, stdin=subprocess.DEVNULL, env={**os.environ, "PATH": path}
        )
    except FileNotFoundError:
        raise CSIError("FailedPrecondition", f"the node has no {words[0]}, which volumes of this class need") from None
    if done.returncode not in good:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        problem = lines[-1] if lines else f"exit code {done.returncode}"
        raise CSIError("Internal", f"{words[0]}: {problem}")
    return done.stdout.decode()
