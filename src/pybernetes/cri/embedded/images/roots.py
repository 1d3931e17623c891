"""The files of several layers as one folder, for a while, without a mount that other processes see.

A thread takes a mount namespace of its own, mounts overlayfs there, opens it and waits; when it ends, the namespace and
the mount go. So nothing is left to unmount, whatever happens to the process. (The mount would live on for a descriptor
alone, but then openat2 fails for every path with a link and a `..`: EAGAIN.)
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import syscalls

OPTIONS = "redirect_dir=off,metacopy=off,index=off"
"""Upper folders must be readable without the layers below: as a layer of an image."""


@contextlib.contextmanager
def merged(layers: Path, lower: Sequence[str], upper: Path | None = None, work: Path | None = None) -> Iterator[int]:
    """A descriptor of the folder; `lower` are names in `layers`, topmost first. Without `upper` it is read-only."""
    if upper is None and len(lower) == 1:  # overlayfs wants two folders at least
        descriptor = os.open(layers / lower[0], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
        return
    mount = _Mount(layers, lower, upper, work)
    mount.start()
    mount.ready.wait()
    try:
        if mount.error is not None:
            raise mount.error
        yield mount.descriptor
    finally:
        if mount.descriptor >= 0:
            os.close(mount.descriptor)
        mount.done.set()
        mount.join()


class _Mount(threading.Thread):
    def __init__(self, layers: Path, lower: Sequence[str], upper: Path | None, work: Path | None) -> None:
        super().__init__(name="mount", daemon=True)
        self._layers = layers
        # In a user namespace overlayfs keeps its notes as a user's, and has none of the other features.
        rootless = syscalls.users() < syscalls.ALL_USERS
        self._options = f"lowerdir={':'.join(lower)},{'userxattr' if rootless else OPTIONS}"
        self._flags = 0 if upper else syscalls.MS_RDONLY
        if upper:
            self._options += f",upperdir={syscalls.escaped(str(upper))},workdir={syscalls.escaped(str(work))}"
        self.ready, self.done = threading.Event(), threading.Event()
        self.descriptor = -1
        self.error: OSError | None = None

    def run(self) -> None:
        """Mounts, and keeps the namespace."""
        try:
            syscalls.unshare(syscalls.NEWNS)  # this thread's alone, and with it the current folder
            syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
            os.chdir(self._layers)  # short names: all options of a mount must fit into one page
            syscalls.mount("overlay", str(self._layers), "overlay", self._flags, self._options)
            self.descriptor = os.open(self._layers, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            self.error = error
        finally:
            self.ready.set()
        self.done.wait()
