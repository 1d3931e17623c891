"""The build cache of a cluster, DATA/build:

    lock               one build at a time
    layers/DIFF        layers, unpacked: of base images and of steps
    blobs/HEX          layers of steps, packed
    steps/KEY.json     which layer a step made; KEY names the step, its content and all before it
    bases/NAME.tar     images that were pulled for a FROM
    caches/HEX         folders of RUN --mount=type=cache
    work/              steps that are being made

A step's layer counts when its record exists. Records that were not used for a while are deleted, with their layers.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pybernetes.cluster import files
from pybernetes.cluster.images import oci
from pybernetes.cluster.images.dockerfile import layers
from pybernetes.cluster.images.dockerfile.stage import Layer
from pybernetes.component.removal import remove_tree
from pybernetes.cri.embedded.images import roots
from pybernetes.cri.embedded.images.archive import Archive
from pybernetes.cri.embedded.images.store import ImageStore, layer_name

KEEP = 14 * 24 * 3600.0
"""Seconds that a step is kept after its last use."""


class Kept:
    """The folder; `with` it, no other build of the cluster runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bases = root / "bases"
        self._work = root / "work"

    def __enter__(self) -> Kept:
        for folder in ("", "blobs", "steps", "bases", "work", "root", "caches"):
            files.make_private_folder(self.root / folder)
        self._lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another build", file=sys.stderr)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        for left in self._work.iterdir():
            remove_tree(left, ignore_errors=True)
        self._store = ImageStore(self.root)
        (self._store.layers / "empty").mkdir(exist_ok=True)
        self._prune()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    @property
    def layers(self) -> Path:
        return self._store.layers

    def unpack(self, archive: Archive, diff: str, member: str) -> str:
        """Makes a layer of a base image be here; its folder's name. ValueError and OSError as the store's."""
        self._store.unpack_layer(archive, diff, member)
        return layer_name(diff)

    def find(self, key: str) -> Layer | bool | None:
        """Find the result of a step: a layer, nothing (None), or False if it is not in the cache."""
        try:
            record = json.loads((self.root / "steps" / f"{key}.json").read_bytes())
            made = record["made"]
            layer = self._layer(*made) if made else None
        except (OSError, ValueError, KeyError, TypeError):
            return False
        if layer and not ((self.layers / layer.folder).is_dir() and self._blob(layer.blob.digest).exists()):
            return False
        os.utime(self.root / "steps" / f"{key}.json")
        return layer

    @contextlib.contextmanager
    def step(self) -> Iterator[tuple[Path, Path]]:
        """Two new folders on one disk, for overlayfs to write to; gone afterwards unless `take` took the first."""
        place = Path(tempfile.mkdtemp(dir=self._work))
        upper, work = place / "upper", place / "work"
        upper.mkdir()
        upper.chmod(0o755)
        work.mkdir()
        try:
            yield upper, work
        finally:
            remove_tree(place, ignore_errors=True)

    @contextlib.contextmanager
    def temporary(self) -> Iterator[Path]:
        """A new folder, for a while."""
        place = Path(tempfile.mkdtemp(dir=self._work))
        try:
            yield place
        finally:
            remove_tree(place, ignore_errors=True)

    def take(self, key: str, upper: Path, below: Sequence[Layer], latest: int | None) -> Layer | None:
        """Makes a layer of what a step wrote, and remembers it; None if it wrote nothing. ValueError."""
        made: list[object] = []
        layer = None
        if not layers.is_empty(upper):
            temporary = upper.with_name("blob")
            packed = layers.pack(upper, temporary, latest)
            temporary.replace(self._blob(packed.digest))
            made = [packed.diff, packed.digest, packed.size]
            layer = self._layer(packed.diff, packed.digest, packed.size)
            final = self.layers / layer.folder
            if not final.is_dir():
                (self.layers / f"{layer.folder}.size").write_text(str(packed.size))
                upper.rename(final)
        record = {"made": made, "folders": [each.folder for each in (*below, *([layer] if layer else []))]}
        files.write_private(self.root / "steps" / f"{key}.json", json.dumps(record).encode())
        return layer

    def merged(
        self, layers_below: Iterable[Layer], upper: Path | None = None, work: Path | None = None
    ) -> contextlib.AbstractContextManager[int]:
        """A descriptor of the files of these layers, from the lowest."""
        return roots.merged(self.layers, self.lower(layers_below), upper, work)

    @staticmethod
    def lower(layers_below: Iterable[Layer]) -> list[str]:
        """The names of their folders, topmost first."""
        return [each.folder for each in layers_below][::-1] or ["empty"]

    def _layer(self, diff: str, digest: str, size: int) -> Layer:
        path = self._blob(digest)
        return Layer(diff, layer_name(diff), oci.Blob(oci.LAYER, digest, size, lambda: open(path, "rb")))

    def _blob(self, digest: str) -> Path:
        return self.root / "blobs" / digest.removeprefix("sha256:")

    def _prune(self) -> None:
        """Deletes entries that were not used for long, and unreferenced ones."""
        old = time.time() - KEEP
        folders, blobs = {"empty"}, set()
        for path in (self.root / "steps").iterdir():
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                if path.stat().st_mtime >= old:
                    record = json.loads(path.read_bytes())
                    folders.update(record["folders"])
                    blobs.update([str(record["made"][1]).removeprefix("sha256:")] if record["made"] else [])
                    continue
            path.unlink(missing_ok=True)
        for path in self.layers.iterdir():
            if path.name.removesuffix(".size") not in folders:
                remove_tree(path, ignore_errors=True)
        for path in (self.root / "blobs").iterdir():
            if path.name not in blobs:
                path.unlink()
        for path in [*self.bases.iterdir(), *(self.root / "caches").iterdir()]:
            if path.stat().st_mtime < old:
                remove_tree(path, ignore_errors=True)
