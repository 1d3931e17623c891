"""Files of a component that must survive a crash, a full disk and a power failure.

`write` replaces a file so that a reader, a crash or a power failure sees the old or the new content, never a part.
`read` gives what `decode` makes of a file; one that cannot be read is renamed to `NAME.unreadable-N` with an error in
the log, so that the component rebuilds its state instead of failing at every start.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TypeVar

from .removal import remove_tree

KEPT = 5
"""Unreadable versions of a file that are kept; the oldest number is replaced after that."""
T = TypeVar("T")
_numbers = count()
log = logging.getLogger(__name__)


def write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file durably: write beside it, fsync, rename, fsync the folder. The folder is made if it is missing."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{next(_numbers)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(temporary, flags, mode)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, flags, mode)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable: those that were made, renamed and removed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path, decode: Callable[[bytes], T]) -> T | None:
    """Read and decode a file; None if it does not exist, or could not be read and was set aside."""
    try:
        return decode(content(path))
    except FileNotFoundError:
        return None
    except Exception as error:  # decoders fail in their own ways, and a disk in its
        set_aside(path, error)
        return None


def content(path: Path) -> bytes:
    """The content of a regular file; OSError for others: opening a pipe would wait for a writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def set_aside(path: Path, error: Exception) -> None:
    """Rename a file that cannot be used, and log why. If even that fails the file stays, and the log says so."""
    names = [path.with_name(f"{path.name}.unreadable-{number}") for number in range(1, KEPT + 1)]
    try:
        aside = next((name for name in names if not os.path.lexists(name)), None)
        if aside is None:
            aside = names[-1]
            remove_tree(aside)
        os.rename(path, aside)
        log.error("%s cannot be read and is set aside as %s: %s", path, aside.name, error)
    except OSError as failure:
        log.error("%s cannot be read (%s) and cannot be set aside: %s", path, error, failure)
