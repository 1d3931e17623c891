"""Opening what lies inside a volume while its owner may change it under our hands.

A container that can write to a volume can put a symbolic link where a folder was. So a path inside a volume is opened
once, by openat2(2), which lets the kernel refuse every way out (RESOLVE_BENEATH), and everything after that uses the
descriptor. Links that stay inside are followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pybernetes.component.openat2 import RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS, openat2

MAX_ENV_FILE: Final = 1 << 20


@contextmanager
def opened_beneath(folder: str | Path, path: str, flags: int = os.O_PATH) -> Iterator[int]:
    """A descriptor of what is at `path` inside the folder; OSError (EXDEV) if that leads out of it."""
    base = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        descriptor = openat2(base, path or ".", flags, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
    finally:
        os.close(base)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_inside(folder: str | Path, path: str) -> bytes:
    """Read a file in a volume; absolute links resolve from the volume's root, and no link leads out of it."""
    base = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        descriptor = openat2(base, path.lstrip("/"), os.O_RDONLY | os.O_NONBLOCK, RESOLVE_IN_ROOT)
    finally:
        os.close(base)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is no file")
        return file.read(MAX_ENV_FILE)


def make_folders_beneath(folder: str | Path, path: str, mode: int) -> None:
    """Make a folder inside another, with those on the way to it, all with this mode."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    base = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    parent = os.dup(base)
    try:
        for index, name in enumerate(parts, 1):
            try:  # always from the top: a link on the way may lead up again and still stay inside
                deeper = openat2(base, "/".join(parts[:index]), os.O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
            except FileNotFoundError:
                os.mkdir(name, mode, dir_fd=parent)
                deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
                os.fchmod(deeper, mode)  # the umask has had its say before
            os.close(parent)
            parent = deeper
    finally:
        os.close(parent)
        os.close(base)
