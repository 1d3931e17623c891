"""The files of several layers as one folder, for a while, without a mount that anybody else sees.

A thread of its own takes a mount namespace of its own, mounts overlayfs there and opens it; when the thread ends, the
namespace goes, and the mount lives on for as long as the descriptor is open. So nothing is left to unmount, whatever
happens to the process.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import syscalls

OPTIONS = "redirect_dir=off,metacopy=off,index=off"
"""What is written must be understood without the layers below: as a layer of an image."""


@contextlib.contextmanager
def merged(layers: Path, lower: Sequence[str], upper: Path | None = None, work: Path | None = None) -> Iterator[int]:
    """A descriptor of the folder; `lower` are names in `layers`, topmost first. Without `upper` nobody can write."""
    descriptor = _mounted(layers, lower, upper, work) if upper or len(lower) > 1 else _one(layers, lower)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _one(layers: Path, lower: Sequence[str]) -> int:
    """overlayfs wants two folders at least."""
    return os.open(layers / lower[0], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _mounted(layers: Path, lower: Sequence[str], upper: Path | None, work: Path | None) -> int:
    found: list[int] = []
    failed: list[OSError] = []

    def mount() -> None:
        try:
            syscalls.unshare(syscalls.NEWNS)  # this thread's alone, and with it the current folder
            syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
            os.chdir(layers)  # short names: all options of a mount must fit into one page
            options = f"lowerdir={':'.join(lower)},{OPTIONS}"
            if upper:
                options += f",upperdir={upper},workdir={work}"
            place = str(layers)
            syscalls.mount("overlay", place, "overlay", 0 if upper else syscalls.MS_RDONLY, options)
            found.append(os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=mount, name="mount")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
