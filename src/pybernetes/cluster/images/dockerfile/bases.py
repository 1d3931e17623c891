"""Images that a Dockerfile begins from or copies from: those that the cluster keeps, else a registry's.

What is loaded for a build is kept with the builds, not given to the nodes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import oci, store, transfer
from pybernetes.cluster.images.dockerfile.keeping import Kept
from pybernetes.cluster.images.dockerfile.stage import Layer
from pybernetes.cluster.layout import Layout
from pybernetes.cri.embedded.images.archive import Archive, Contained
from pybernetes.cri.embedded.images.compression import kind_of
from pybernetes.cri.embedded.images.config import read_config
from pybernetes.cri.embedded.images.names import full_name


class Bases:
    """Finds images by name, each once."""

    def __init__(self, layout: Layout, kept: Kept, tell: Callable[[str], object], *, pull: bool) -> None:
        self._layout = layout
        self._kept = kept
        self._tell = tell
        self._pull = pull
        self._found: dict[str, tuple[bytes, list[Layer]]] = {}

    def find(self, name: str) -> tuple[bytes, list[Layer]]:
        """An image's configuration, and its layers, unpacked. Raises ClusterError and ValueError."""
        wanted = full_name(name)
        if wanted not in self._found:
            self._found[wanted] = self._unpacked(*self._archive(name, wanted))
        return self._found[wanted]

    def _archive(self, name: str, wanted: str) -> tuple[Path, Contained]:
        pulled = self._kept.bases / f"{store.file_name(wanted)}.tar"
        if not self._pull:
            found = self._kept_here(wanted) or _image(pulled, wanted)
            if found is None:
                store.ensure_builtin(self._layout)
                found = self._kept_here(wanted)
            if found is not None:
                if found[0] == pulled:
                    os.utime(pulled)  # it is used, and stays for a while
                return found
        self._tell(f"pulling {wanted}")
        transfer.pull_to(self._layout, name, pulled)
        found = _image(pulled, wanted, any_name=True)
        if found is None:
            raise ClusterError(f"{wanted}: its archive has no image for this machine")
        return found

    def _kept_here(self, wanted: str) -> tuple[Path, Contained] | None:
        """The image among those that the cluster's nodes have."""
        paths = sorted(self._layout.images.glob("*.tar"))
        return next((each for path in paths if (each := _image(path, wanted))), None)

    def _unpacked(self, path: Path, contained: Contained) -> tuple[bytes, list[Layer]]:
        diffs = read_config(contained.config).diffs
        if len(diffs) != len(contained.layers):
            raise ValueError(f"{len(contained.layers)} layers, but the configuration tells of {len(diffs)}")
        archive = Archive(path)
        try:
            found = []
            for diff, member in zip(diffs, contained.layers, strict=True):
                folder = self._kept.unpack(archive, diff, member)
                found.append(Layer(diff, folder, _blob(path, archive, member)))
        finally:
            archive.close()
        return contained.config, found


def _image(path: Path, wanted: str, *, any_name: bool = False) -> tuple[Path, Contained] | None:
    """The image of a name, or of a digest, in an archive."""
    digest = wanted.partition("@")[2]
    if not path.exists():
        return None
    try:
        archive = Archive(path)
        try:
            images = archive.images()
        finally:
            archive.close()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError):
        return None  # another image's archive; `image import` has reported its errors
    for each in images:
        if wanted in each.names or (digest and each.manifest == digest) or any_name:
            return path, each
    return None


def _blob(path: Path, archive: Archive, member: str) -> oci.Blob:
    stream, size = archive.packed(member)
    with stream:
        kind = kind_of(stream.read(6))
        stream.seek(0)
        folder, _, name = member.rpartition("/")
        digest = f"sha256:{name}" if folder == "blobs/sha256" else _digest(stream)
    plain = oci.LAYER.removesuffix("+gzip")
    return oci.Blob(f"{plain}+{kind}" if kind else plain, digest, size, lambda: _Open(path, member))  # type: ignore[arg-type, return-value]


def _digest(stream: IO[bytes]) -> str:
    import hashlib

    return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"  # type: ignore[arg-type]


class _Open:
    """A layer in an archive, which is open for as long as the layer."""

    def __init__(self, path: Path, member: str) -> None:
        self._archive = Archive(path)
        self._stream, _ = self._archive.packed(member)
        self.read = self._stream.read

    def __enter__(self) -> _Open:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._archive.close()
