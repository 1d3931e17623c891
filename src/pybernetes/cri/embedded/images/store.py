"""The images on this node: configurations by id, layers unpacked once and shared, a writable folder for each container.

    index.json          names and digests -> ids, archives that were read
    configs/ID          an image's configuration, as it is
    layers/DIFF         a layer, unpacked (the first characters of its diff id: overlayfs has little room for names)
    containers/ID/      a container's own files: fs (upper), work, layers (those it stands on)

A layer counts only when it has its final name, an image only when it is in the index: a crash in between leaves
rubbish that `collect` takes away.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any, Protocol

from pybernetes.component import state_files
from pybernetes.component.removal import remove_tree

from ..leftovers import Leftovers
from .archive import Archive, Contained
from .compression import Damaged
from .config import ImageConfig, read_config
from .hashed import Hashed
from .names import full_name, is_id
from .unpack import ENTRIES, unpack
from .usage import Usage, measure

log = logging.getLogger(__name__)

SHORT = 24
"""Characters of a layer's name: 96 bits, and 150 layers fit into one mount."""
EMPTY = "empty"
"""The layer of images without any."""
_LAYER = re.compile(f"[0-9a-f]{{{SHORT}}}")
RESERVE = 0.05
"""The part of the file system that no layer may fill."""


@dataclass
class Image:
    """An image that is here."""

    id: str
    layers: list[str]
    size: int
    names: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)

    def shown_name(self, wanted: str) -> str:
        """The name to show: the wanted one if it has that, else its first; empty if it has none."""
        with contextlib.suppress(ValueError):
            if full_name(wanted) in self.names:
                return full_name(wanted)
        return next(iter([*self.names, *self.digests]), "")


@dataclass(frozen=True)
class Rootfs:
    """The layers of a container's root: names of folders in `layers`, topmost first, and its own folder on top."""

    layers: Path
    lower: tuple[str, ...]
    upper: Path
    work: Path
    config: ImageConfig


class Layers(Protocol):
    """Where the layers of a new image are read from: an archive, or what a registry gave."""

    def layer(self, member: str) -> IO[bytes]:
        """A layer as a plain tar stream."""


class ImageStore:
    """See the module. Its methods block for as long as disks do; one that unpacks is for a thread."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.layers = root / "layers"
        for folder in ("configs", "layers", "containers"):
            (root / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        self._leftovers = Leftovers()
        self._images: dict[str, Image] = {}
        self._archives: dict[str, dict[str, Any]] = {}
        """The archives read of a folder: `stamp` (size and time) and `names` of each."""
        self._configs: dict[str, ImageConfig] = {}
        self._usages: dict[str, Usage] = {}
        self._adding = threading.RLock()
        """Held for as long as an image is taken in."""
        self._wanted: set[str] = set()
        """Layers of the image that is being taken in: in use, though no image in the index says so yet."""
        self._changing = threading.RLock()
        """Held for moments, by all that changes the index or the set of layers; a container's start waits for it."""
        for rubbish in self.layers.glob(".*"):
            remove_tree(rubbish, ignore_errors=True)
        self._load()
        for config in (root / "configs").iterdir():
            if f"sha256:{config.name}" not in self._images:
                remove_tree(config, ignore_errors=True)

    def images(self) -> list[Image]:
        """All of them."""
        return list(self._images.values())

    def find(self, reference: str) -> Image | None:
        """The image of a name, a name with a digest, or an id. ValueError for what cannot be a name."""
        if is_id(reference):
            return self._images.get("sha256:" + reference.removeprefix("sha256:"))
        wanted = full_name(reference)
        return next((each for each in self._images.values() if wanted in each.names or wanted in each.digests), None)

    def config(self, image: Image) -> ImageConfig:
        """How its containers start. FileNotFoundError if the image was removed meanwhile."""
        if image.id not in self._configs:
            self._configs[image.id] = read_config(self.raw_config(image))
        return self._configs[image.id]

    def raw_config(self, image: Image) -> bytes:
        """Its configuration as it is."""
        return state_files.content(self.root / "configs" / image.id.removeprefix("sha256:"))

    def has_layer(self, diff: str) -> bool:
        """Whether a layer is here, unpacked."""
        return self._size(layer_name(diff)) is not None

    def _size(self, layer: str) -> int | None:
        """The size of a layer that is here; None if it is not, or if that cannot be known.

        Without a record of its size a layer is unpacked once more, unless a container stands on it.
        """
        if not (self.layers / layer).is_dir():
            return None
        try:
            return int(state_files.content(self.layers / f"{layer}.size"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            if not any(layer in (self._stands_on(each) or (layer,)) for each in self.containers()):
                return None
            log.error("the size of layer %s cannot be read and is measured: %s", layer, error)
            return measure(self.layers / layer).bytes

    def _stands_on(self, container_id: str) -> set[str] | None:
        """The layers of a container; None if that cannot be read."""
        try:
            found = set(state_files.content(self.root / "containers" / container_id / "layers").decode().split())
            if not found or not all(each == EMPTY or _LAYER.fullmatch(each) for each in found):
                raise ValueError("not names of layers")
            return found
        except (FileNotFoundError, NotADirectoryError):
            return set()
        except (OSError, ValueError) as error:
            log.error("the layers of container %s cannot be read: %s", container_id, error)
            return None

    def rootfs(self, reference: str, container_id: str) -> Rootfs:
        """A root for a container; KeyError if the image is not here."""
        with self._changing:
            image = self.find(reference)
            if image is None:
                raise KeyError(reference)
            folder = self.root / "containers" / container_id
            for name in ("fs", "work"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            config = self.config(image)
            # overlayfs needs a lower folder
            lower = tuple(reversed(image.layers)) or (self._empty(),)
            (folder / "layers").write_text("\n".join(lower))
        return Rootfs(self.layers, lower, folder / "fs", folder / "work", config)

    def volume(self, reference: str, container_id: str) -> list[str]:
        """The layers of an image that a container mounts, topmost first; they stay as long as it. KeyError."""
        with self._changing:
            image = self.find(reference)
            if image is None:
                raise KeyError(reference)
            with open(self.root / "containers" / container_id / "layers", "a") as file:
                file.write("".join(f"\n{layer}" for layer in image.layers))
        return list(reversed(image.layers)) or [self._empty()]

    def release(self, container_id: str) -> None:
        """Takes a container's files away, and the layers if its image has gone; may be repeated."""
        folder = self.root / "containers" / container_id
        stood_on = self._stands_on(container_id)
        self._leftovers.remove(folder)
        if stood_on is None or stood_on - {layer for image in self.images() for layer in image.layers}:
            self.collect()

    def containers(self) -> list[str]:
        """The containers with files here."""
        return [each.name for each in (self.root / "containers").iterdir()]

    def import_archive(self, path: Path) -> list[Image]:
        """Takes the images of an archive in. ValueError says what is wrong with it."""
        archive = Archive(path)
        try:
            with self._adding:
                found = [self._take(archive, each) for each in archive.images()]
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path}: the archive's documents are not those of an image: {error!r}") from None
        finally:
            archive.close()
        return found

    def add(self, source: Layers, contained: Contained, digests: tuple[str, ...] = ()) -> Image:
        """Takes one image in; `digests` are names with the digest of the manifest, as `repository@sha256:...`."""
        with self._adding:
            return self._take(source, contained, digests)

    def import_folder(self, folder: Path) -> list[Image]:
        """Import the archives of a folder that are new or changed; an invalid one is logged and skipped."""
        found: list[Image] = []
        for path in sorted(folder.glob("*.tar")):
            with contextlib.suppress(FileNotFoundError):
                stamp = [path.stat().st_size, path.stat().st_mtime_ns]
                if self._archives.get(str(path), {}).get("stamp") == stamp:
                    continue
                images: list[Image] = []
                try:
                    images = self.import_archive(path)
                except (ValueError, OSError) as error:
                    log.error("cannot import %s: %s", path, error)
                with self._changing:
                    names = [name for image in images for name in image.names]
                    self._archives[str(path)] = {"stamp": stamp, "names": names}
                    self._save()
                found += images
        return found

    def from_archive(self, reference: str) -> Image | None:
        """The image that an archive of a folder has under a name; read again if it was removed since."""
        wanted = full_name(reference)
        for path, archive in self._archives.items():
            if wanted in archive["names"] and os.path.exists(path):
                found = self.find(wanted)
                return found or next((each for each in self.import_archive(Path(path)) if wanted in each.names), None)
        return None

    def remove(self, reference: str) -> None:
        """Removes an image with all its names; one that is not here is no error."""
        with self._changing:
            image = self.find(reference)
            if image is None:
                return
            del self._images[image.id]
            self._configs.pop(image.id, None)
            self._save()
            (self.root / "configs" / image.id.removeprefix("sha256:")).unlink(missing_ok=True)
        self.collect()

    def usage(self) -> tuple[Usage, Usage]:
        """The disk usage of layers, and of containers' writes. A layer is measured once: it does not change."""
        names = {each.name for each in self.layers.iterdir() if each.is_dir()}
        self._usages = {name: self._usages.get(name) or measure(self.layers / name) for name in names}
        written = [measure(self.root / "containers" / each) for each in self.containers()]
        return sum(self._usages.values(), Usage()), sum(written, Usage())

    def collect(self) -> None:
        """Takes layers away that neither an image nor a container stands on."""
        with self._changing:
            doomed = [self._doom(layer) for layer in self._unused()]
        for layer in doomed:
            remove_tree(layer, ignore_errors=True)

    def _unused(self) -> list[Path]:
        used = self._wanted | {layer for image in self._images.values() for layer in image.layers} | {EMPTY}
        for each in self.containers():
            layers = self._stands_on(each)
            if layers is None:
                return []  # until that container is gone
            used |= layers
        # Those with a dot are being unpacked or removed.
        found = [each for each in self.layers.iterdir() if not each.name.startswith(".")]
        return [each for each in found if each.name.removesuffix(".size") not in used]

    def _doom(self, layer: Path) -> Path:
        """Takes a layer's name from it, which is quick."""
        doomed = Path(tempfile.mkdtemp(prefix=".old-", dir=self.layers)) / layer.name
        with contextlib.suppress(OSError):
            layer.rename(doomed)
        return doomed.parent

    def _take(self, source: Layers, contained: Contained, digests: tuple[str, ...] = ()) -> Image:
        diffs = read_config(contained.config).diffs
        if len(diffs) != len(contained.layers):
            raise ValueError(f"{len(contained.layers)} layers, but the configuration tells of {len(diffs)}")
        layers = [layer_name(diff) for diff in diffs]
        with self._changing:
            self._wanted = set(layers)
        try:
            size = len(contained.config)
            for diff, member in zip(diffs, contained.layers, strict=True):
                size += self.unpack_layer(source, diff, member)
            with self._changing:
                state_files.write(self.root / "configs" / contained.id.removeprefix("sha256:"), contained.config)
                image = self._images.setdefault(contained.id, Image(contained.id, layers, size))
                self._name(image, contained.names)
                image.digests += [digest for digest in digests if digest not in image.digests]
                self._save()
        finally:
            with self._changing:
                self._wanted = set()
        return image

    def _name(self, image: Image, names: Iterable[str]) -> None:
        for name in names:
            for other in self._images.values():
                if name in other.names and other is not image:
                    other.names.remove(name)
            if name not in image.names:
                image.names.append(name)

    def unpack_layer(self, source: Layers, diff: str, member: str) -> int:
        """Unpacks a layer if it is not here yet; its size."""
        final = self.layers / layer_name(diff)
        record = self.layers / f"{layer_name(diff)}.size"
        known = self._size(final.name)
        if known is not None:
            return known
        disk = os.statvfs(self.root)
        room = int(disk.f_bavail * disk.f_frsize - RESERVE * disk.f_blocks * disk.f_frsize)
        inodes = int(disk.f_favail - RESERVE * disk.f_files) if disk.f_files else ENTRIES  # some file systems need none
        temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=self.layers))
        try:
            temporary.chmod(0o755)
            with source.layer(member) as plain:
                checked = Hashed(plain)
                size = unpack(
                    checked,  # type: ignore[arg-type]
                    temporary,
                    most_bytes=max(0, room),
                    most_entries=max(0, min(ENTRIES, inodes)),
                )
                checked.finish()
            if checked.digest != diff:
                raise ValueError(f"layer {member} has other content than its image says ({diff})")
            remove_tree(final)
            if not record.is_file():
                remove_tree(record)
            record.write_text(str(size))
            temporary.rename(final)
        except Damaged as error:
            raise ValueError(f"layer {member} is {error}") from None
        finally:
            remove_tree(temporary, ignore_errors=True)
        return size

    def _empty(self) -> str:
        (self.layers / EMPTY).mkdir(exist_ok=True)
        return EMPTY

    def _load(self) -> None:
        found = state_files.read(self.root / "index.json", _decode)
        if found is None:
            return
        images, self._archives = found
        for image in images:
            if all((self.layers / layer).is_dir() for layer in image.layers) and self._has_config(image):
                self._images[image.id] = image

    def _has_config(self, image: Image) -> bool:
        """Whether an image's configuration is what its id says; without it no container could be made of it."""
        try:
            found = hashlib.sha256(self.raw_config(image)).hexdigest()
        except OSError as error:
            log.error("the configuration of image %s cannot be read: %s", image.id, error)
            return False
        if found != image.id.removeprefix("sha256:"):
            log.error("the configuration of image %s is damaged", image.id)
            return False
        return True

    def _save(self) -> None:
        document: dict[str, Any] = {"images": [vars(each) for each in self.images()], "archives": self._archives}
        state_files.write(self.root / "index.json", json.dumps(document).encode())


def _decode(content: bytes) -> tuple[list[Image], dict[str, Any]]:
    """The images and archives of an index; fields that a later version wrote are left out."""
    raw = json.loads(content)
    known = {each.name for each in fields(Image)}
    images = [Image(**{name: value for name, value in each.items() if name in known}) for each in raw["images"]]
    return images, dict(raw["archives"])


def layer_name(diff: str) -> str:
    """The name of a layer's folder, by its digest; ValueError for what is no digest."""
    algorithm, _, value = diff.partition(":")
    if algorithm != "sha256" or len(value) != 64 or any(each not in "0123456789abcdef" for each in value):
        raise ValueError(f"{diff!r} is no sha256 digest")
    return value[:SHORT]
