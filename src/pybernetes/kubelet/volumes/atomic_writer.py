"""Files that change all at once: what containers see of a ConfigMap is either the old one or the new one, never a mix.

    name          -> ..data/name
    ..data        -> ..2026_01_02_03_04_05.123456789     renamed into place: this is the moment of change
    ..2026_.../name                                      the file itself

Names that begin with `..` are reserved. Programs that watch the volume watch `..data`.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pybernetes.api.gocompat.quote import quote
from pybernetes.component.removal import remove_tree

DATA: Final = "..data"
_NEW_DATA: Final = "..data_tmp"
MAX_NAME: Final = 255
MAX_PATH: Final = 4096
PAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class File:
    """One file of a volume."""

    data: bytes
    mode: int
    user: int | None = None
    """Its owner, where that is not root."""


Payload = Mapping[str, File]
"""Files by their paths in the volume."""


def size_of(payload: Payload) -> int:
    """The bytes that files take on a disk or in memory: whole pages."""
    return sum(pages(file.data) for file in payload.values())


def pages(data: bytes) -> int:
    """The bytes that one file takes."""
    return max(-len(data) // PAGE * -PAGE, PAGE)


def write(folder: Path, payload: Payload, set_permissions: Callable[[], None], now: float | None = None) -> bool:
    """Make the folder show exactly these files; says whether anything has changed.

    `set_permissions` is called when all new files are written and before they are visible.
    """
    files = {os.path.normpath(_checked(path)): file for path, file in payload.items()}
    old = _current(folder)
    changed = old is None or _differs(folder / old, files)
    if changed:
        stamp = time.strftime("..%Y_%m_%d_%H_%M_%S.", time.gmtime(now))
        new = Path(tempfile.mkdtemp(prefix=stamp, dir=folder))
        try:
            _fill(new, files)
            set_permissions()
            link = folder / _NEW_DATA
            link.unlink(missing_ok=True)  # of an attempt that did not get further
            link.symlink_to(new.name)
            link.rename(folder / DATA)
        except BaseException:
            remove_tree(new, ignore_errors=True)
            raise
    _link(folder, files)
    if changed and old is not None:
        _unlink(folder, old, files)
        remove_tree(folder / old)
    return changed


def _checked(path: str) -> str:
    if not path:
        raise ValueError(f"invalid path: must not be empty: {quote(path)}")
    if path.startswith("/"):
        raise ValueError(f"invalid path: must be relative path: {path}")
    if len(path) > MAX_PATH:
        raise ValueError(f"invalid path: must be less than or equal to {MAX_PATH} characters")
    parts = path.split("/")
    if ".." in parts:
        raise ValueError(f"invalid path: must not contain '..': {path}")
    if any(len(os.fsencode(part)) > MAX_NAME for part in parts):
        raise ValueError(f"invalid path: filenames must be less than or equal to {MAX_NAME} characters")
    if parts[0].startswith(".."):
        raise ValueError(f"invalid path: must not start with '..': {path}")
    return path


def _current(folder: Path) -> str | None:
    try:
        return os.readlink(folder / DATA)
    except FileNotFoundError:
        return None


def _differs(old: Path, files: Mapping[str, File]) -> bool:
    found = {
        os.path.relpath(os.path.join(path, name), old) for path, _, names in os.walk(old) for name in names
    }  # a folder that has gone counts as empty
    if found != set(files):
        return True
    return any((old / path).read_bytes() != file.data for path, file in files.items())


def _fill(new: Path, files: Mapping[str, File]) -> None:
    os.chmod(new, 0o755)  # mkdtemp keeps others out
    for path, file in files.items():
        target = new / path
        parent = new
        for part in path.split("/")[:-1]:
            parent = parent / part
            if not parent.is_dir():
                parent.mkdir()
                os.chmod(parent, 0o777 & ~0o022)
        target.write_bytes(file.data)
        os.chmod(target, file.mode)
        _own(target, file.user)


def _link(folder: Path, files: Mapping[str, File]) -> None:
    for path, file in files.items():
        name = path.split("/", 1)[0]
        link = folder / name
        if not os.path.lexists(link):
            link.symlink_to(f"{DATA}/{name}")
            _own(link, file.user)


def _own(path: Path, user: int | None) -> None:
    """Gives a file to a user; without root it stays ours, who are all users of containers then."""
    if user is not None:
        try:
            os.lchown(path, user, -1)
        except OSError as error:
            if error.errno != (errno.EINVAL if os.geteuid() == 0 else errno.EPERM):
                raise


def _unlink(folder: Path, old: str, files: Mapping[str, File]) -> None:
    names = {path.split("/", 1)[0] for path in files}
    for name in os.listdir(folder / old):
        if name not in names and (folder / name).is_symlink():
            (folder / name).unlink()
