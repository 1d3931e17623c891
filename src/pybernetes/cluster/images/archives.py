"""Archives of images as files: what they hold, whether it is sound, and a copy whose parts can be read by themselves.

They come from anybody: nothing is read at once without a bound, and everything wrong is one line.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path
from typing import IO, Any

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import oci
from pybernetes.cri.embedded.images.archive import LARGEST, Archive
from pybernetes.cri.embedded.images.compression import plain
from pybernetes.cri.embedded.images.config import read_config
from pybernetes.cri.embedded.images.store import RESERVE
from pybernetes.cri.embedded.images.unpack import Header

_WRONG = (tarfile.TarError, EOFError, ValueError, AttributeError, TypeError, KeyError, RecursionError)
"""What bad archives lead to, also JSON of another shape."""


def names(archive: Path) -> list[str]:
    """The names of the images in an archive, OCI's or docker's; ClusterError if there are none."""
    try:
        with open(archive, "rb") as file, plain(file) as stream, _tar(stream, file) as tar:
            found = _names_in(tar)
    except _WRONG as error:
        raise ClusterError(f"{archive} is not an archive of images: {error}") from error
    if not found:
        raise ClusterError(f"{archive} holds no image with a name")
    return found


def full_name(name: str) -> str:
    """A name as runtimes keep it; ClusterError if it cannot be one."""
    try:
        return oci.full_name(name)
    except ValueError as error:
        raise ClusterError(str(error)) from None


def holding(folder: Path, name: str) -> list[Path]:
    """The archives of a folder that have an image of this full name; those that cannot be read are passed over."""
    found = []
    for path in sorted(folder.glob("*.tar")):
        try:
            if name in map(full_name, names(path)):
                found.append(path)
        except ClusterError:
            continue
    return found


def copy(source: Path, target: Path) -> None:
    """Copies an archive; one that is packed as a whole is unpacked. ClusterError if it is damaged, or too large."""
    disk = os.statvfs(target.parent)
    room = int(disk.f_bavail * disk.f_frsize - RESERVE * disk.f_blocks * disk.f_frsize)
    try:
        with open(source, "rb") as file, plain(file) as stream, open(target, "wb") as out:
            while data := stream.read(1 << 20):
                room -= len(data)
                if room < 0:
                    raise ClusterError(f"{source}: there is no room for its content beside {target.parent}")
                out.write(data)
    except ValueError as error:
        raise ClusterError(f"{source} is {error}") from None


def check(archive: Path, shown: Path) -> None:
    """Refuses an archive whose blobs are not what their names say; `shown` is its name for the user."""
    try:
        opened = Archive(archive)
        try:
            for image in opened.images():
                diffs = read_config(image.config).diffs
                if len(diffs) != len(image.layers):
                    raise ValueError(f"{len(image.layers)} layers, but the configuration tells of {len(diffs)}")
                for member in image.layers:
                    _check_layer(opened, member)
        finally:
            opened.close()
    except _WRONG as error:
        raise ClusterError(f"{shown} is not a sound archive of images: {error}") from None


def _check_layer(archive: Archive, member: str) -> None:
    stream, _ = archive.packed(member)
    folder, _, name = member.rpartition("/")
    with stream:
        if folder == "blobs/sha256" and hashlib.file_digest(stream, "sha256").hexdigest() != name:  # type: ignore[arg-type]
            raise ValueError(f"the layer sha256:{name} has other content than its name says")


def _tar(stream: IO[bytes], file: IO[bytes]) -> tarfile.TarFile:
    if stream is file:
        return tarfile.open(fileobj=file, mode="r:", tarinfo=Header)
    return tarfile.open(fileobj=stream, mode="r|", tarinfo=Header)


def _names_in(tar: tarfile.TarFile) -> list[str]:
    documents: dict[str, Any] = {}
    for member in tar:
        name = member.name.removeprefix("./")
        if name in ("index.json", "manifest.json") and member.isreg():
            file = tar.extractfile(member)
            content = file.read(LARGEST + 1) if file is not None else b""
            if len(content) > LARGEST:
                raise ValueError(f"{name} is longer than {LARGEST} bytes")
            documents[name] = json.loads(content)
    found: list[str] = []
    for manifest in documents.get("index.json", {}).get("manifests") or ():
        annotations = manifest.get("annotations") or {}
        found += [str(annotations[key]) for key in (oci.NAME, oci.REFERENCE) if annotations.get(key)][:1]
    if not found:
        found = [str(name) for image in documents.get("manifest.json", []) for name in image.get("RepoTags") or ()]
    return found
