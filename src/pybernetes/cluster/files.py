"""Files that are never seen half written, and never readable by others."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def make_private_folder(path: Path) -> None:
    """Makes a folder (and its parents) that only its owner may enter; an existing one is left as it is."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    # One by one: `parents=True` would make the parents readable by others.
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def require_private(path: Path) -> None:
    """Raises PermissionError for a folder that is not this user's alone; in /tmp another user may have made it before
    us."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(errno.EPERM, "not a private folder of this user (mode 0700)", str(path))


def write_private(path: Path, content: bytes) -> None:
    """Replaces a file in one step; its mode is 0600 from the first byte on."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
