"""Makes a layer of what a step wrote: the upper folder of overlayfs as a tar, packed.

What was removed becomes a whiteout. Entries are in the order of their names, without names of users, so that the same
files make the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pybernetes.cluster.images import oci
from pybernetes.cri.embedded.images import trees
from pybernetes.cri.embedded.images.unpack import OPAQUE, WHITEOUT
from pybernetes.cri.embedded.syscalls import open_in_root

OPAQUE_MARK = "trusted.overlay.opaque"


@dataclass(frozen=True)
class Packed:
    """A layer's digest unpacked, and that and the size of its packed bytes."""

    diff: str
    digest: str
    size: int


def is_empty(upper: Path) -> bool:
    """Whether a step wrote nothing."""
    return not any(upper.iterdir())


def pack(upper: Path, target: Path, latest: int | None = None) -> Packed:
    """Writes the layer to a file; no time in it is later than `latest`. ValueError for what cannot be in a layer."""
    root = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with open(target, "wb") as file:
            outer = _Hashing(file)
            with gzip.GzipFile(filename="", mode="wb", compresslevel=oci.COMPRESSION, fileobj=outer, mtime=0) as zipped:
                inner = _Hashing(zipped)  # type: ignore[arg-type]
                with tarfile.open(  # type: ignore[call-overload]
                    fileobj=inner, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"
                ) as tar:
                    for info, content in _members(root, latest):
                        tar.addfile(info, content)
    finally:
        os.close(root)
    return Packed(inner.digest, outer.digest, outer.size)


def _members(root: int, latest: int | None) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    """The entries of the layer, each with its content, which is open until the next."""
    linked: dict[int, str] = {}
    for entry in trees.walk(root):
        state, mode = entry.state, entry.state.st_mode
        folder, _, name = entry.path.rpartition("/")
        if name.startswith(WHITEOUT):
            raise ValueError(f"a file named {entry.path!r} cannot be in an image: it would mean that a file is removed")
        info = tarfile.TarInfo(entry.path)
        info.mode, info.uid, info.gid = stat.S_IMODE(mode), state.st_uid, state.st_gid
        seconds = state.st_mtime_ns // 10**9
        info.mtime = seconds if latest is None else min(seconds, latest)
        if stat.S_ISCHR(mode) and state.st_rdev == 0:
            info.name, info.mode, info.mtime = trees.join(folder, WHITEOUT + name), 0o644, 0
            yield info, None
            continue
        if stat.S_ISDIR(mode):
            info.type = tarfile.DIRTYPE
            yield info, None
            if is_opaque(root, entry.path):
                mark = tarfile.TarInfo(f"{entry.path}/{OPAQUE}")
                yield mark, None
            continue
        if stat.S_ISREG(mode):
            first = linked.setdefault(state.st_ino, entry.path) if state.st_nlink > 1 else entry.path
            if first != entry.path:
                info.type, info.linkname = tarfile.LNKTYPE, first
            else:
                with open(open_in_root(root, entry.path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as content:
                    info.size = state.st_size
                    info.pax_headers = _attributes(content.fileno())
                    yield info, content
                continue
        elif stat.S_ISLNK(mode):
            info.type, info.linkname = tarfile.SYMTYPE, entry.link
        elif stat.S_ISFIFO(mode):
            info.type = tarfile.FIFOTYPE
        else:
            continue  # a socket is useless without its program; devices are the runtime's
        yield info, None


def is_opaque(root: int, path: str) -> bool:
    """Whether a folder that a step wrote hides all that was there before."""
    folder = open_in_root(root, path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return os.getxattr(folder, OPAQUE_MARK) == b"y"
    except OSError:
        return False
    finally:
        os.close(folder)


def _attributes(file: int) -> dict[str, str]:
    found = trees.attributes(file)
    return {f"SCHILY.xattr.{key}": value.decode("utf-8", "surrogateescape") for key, value in found.items()}


class _Hashing:
    """A file that is written, with the digest and size of what was."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"
