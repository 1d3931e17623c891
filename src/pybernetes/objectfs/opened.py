"""Shared by commands that work without a mount: the engine and format of a volume, and paths in it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from pybernetes.objectfs import format as formats
from pybernetes.objectfs.errors import NotFormatted, ObjectFSError
from pybernetes.objectfs.format import Format
from pybernetes.objectfs.meta import records
from pybernetes.objectfs.meta.engine import Engine
from pybernetes.objectfs.meta.namespace import Namespace
from pybernetes.objectfs.meta.records import Attributes
from pybernetes.objectfs.meta.urls import connect, masked
from pybernetes.objectfs.meta.usage import Limits

Item = TypeVar("Item")


class Opened(NamedTuple):
    engine: Engine
    settings: Format

    def namespace(self) -> Namespace:
        """The volume's tree, for a command: no session, nothing open."""
        limits = Limits(self.settings.capacity, self.settings.inodes, self.settings.trash_days)
        return Namespace(self.engine, 0, time.time_ns, lambda inode: False, limits, self.settings.acl)

    def find(self, path: str) -> Attributes:
        """The inode of a path from the volume's root, or of a number."""
        names = self.namespace()
        if path.isdigit():
            return names.get(int(path))
        inode = records.ROOT
        for name in path.encode().split(b"/"):
            if name:
                try:
                    inode = names.lookup(inode, name).inode
                except (FileNotFoundError, NotADirectoryError):
                    raise ObjectFSError(f"{path}: {name.decode(errors='replace')} does not exist") from None
        return names.get(inode)

    def parent(self, path: str) -> tuple[int, bytes]:
        """The directory of a path and the last name, which need not exist."""
        folder, _, name = path.rstrip("/").rpartition("/")
        if not name:
            raise ObjectFSError(f"{path!r}: the volume's root is not meant here")
        return self.find(folder or "/").inode, name.encode()


@contextlib.contextmanager
def opened(meta: str) -> Iterator[Opened]:
    engine = connect(meta)
    try:
        settings = formats.load(engine)
        if settings is None:
            raise NotFormatted(f"{masked(meta)} holds no volume")
        yield Opened(engine, settings)
    finally:
        engine.close()


def progress(items: Iterable[Item], what: str, total: int | None = None) -> Iterable[Item]:
    """The items, with a bar on the terminal, if standard error is one."""
    if not sys.stderr.isatty():
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, what, total=total, console=Console(stderr=True), transient=True)
