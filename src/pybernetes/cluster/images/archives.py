"""Archives of images as files: what they hold, whether it is sound, and a copy whose parts can be read by themselves.

They are not trusted: nothing is read at once without a bound, and everything wrong is one line.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import folders, oci
from pybernetes.cri.embedded.images.archive import LARGEST, NAME, REFERENCE, Archive
from pybernetes.cri.embedded.images.compression import kind_of, plain
from pybernetes.cri.embedded.images.config import read_config
from pybernetes.cri.embedded.images.store import RESERVE
from pybernetes.cri.embedded.images.unpack import Header

_WRONG = (tarfile.TarError, EOFError, ValueError, AttributeError, TypeError, KeyError, RecursionError)
"""The exceptions caused by bad archives, also by JSON of another shape."""


def names(archive: Path) -> list[str]:
    """The full names of an archive's images for this machine; ClusterError if there are none."""
    try:
        opened = Archive(archive)
        try:
            found = [name for image in opened.images() for name in image.names]
        finally:
            opened.close()
    except _WRONG as error:
        raise ClusterError(f"{archive} is not an archive of images: {error}") from None
    if not found:
        raise ClusterError(f"{archive} holds no image for this machine with a name")
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
            if name in names(path):
                found.append(path)
        except ClusterError:
            continue
    return found


def copy(source: Path, target: Path) -> None:
    """Copies an archive; one that is packed as a whole is unpacked, and the folder of an OCI layout becomes one.

    ClusterError if it is damaged, or too large.
    """
    disk = os.statvfs(target.parent)
    room = int(disk.f_bavail * disk.f_frsize - RESERVE * disk.f_blocks * disk.f_frsize)
    if source.is_dir():
        folders.pack(source, target, room)
        return
    try:
        with open(source, "rb") as file, plain(file) as stream, open(target, "wb") as out:
            while data := stream.read(1 << 20):
                room -= len(data)
                if room < 0:
                    raise ClusterError(f"{source}: there is no room for its content beside {target.parent}")
                out.write(data)
    except ValueError as error:
        raise ClusterError(f"{source} is {error}") from None


def check(archive: Path, shown: Path) -> list[str]:
    """The names in an archive whose blobs are what their names say; ClusterError, with the name for the user."""
    try:
        opened = Archive(archive)
        try:
            images = opened.images()
            for image in images:
                diffs = read_config(image.config).diffs
                if len(diffs) != len(image.layers):
                    raise ValueError(f"{len(image.layers)} layers, but the configuration tells of {len(diffs)}")
                for member in image.layers:
                    _check_layer(opened, member)
        finally:
            opened.close()
        found = [oci.full_name(name) for image in images for name in image.names]
    except _WRONG as error:
        raise ClusterError(f"{shown} is not an archive of images: {error}") from None
    if not images:
        raise ClusterError(f"{shown} holds no image for this machine ({oci.this_architecture()})")
    if not found:
        raise ClusterError(f"{shown} holds no image with a name; --tag NAME:TAG gives it one")
    return found


def _check_layer(archive: Archive, member: str) -> None:
    stream, _ = archive.packed(member)
    folder, _, name = member.rpartition("/")
    with stream:
        if folder == "blobs/sha256" and hashlib.file_digest(stream, "sha256").hexdigest() != name:  # type: ignore[arg-type]
            raise ValueError(f"the layer sha256:{name} has other content than its name says")


def name_for_containerd(archive: Path) -> None:
    """Adds containerd's own annotation to an OCI archive whose names are in OCI's: it takes those for tags."""
    with _Documents(archive) as documents:
        index = documents.read("index.json")
        if index is None:
            return
        changed = False
        for entry in index.get("manifests") or ():
            annotations = entry.setdefault("annotations", {})
            reference = str(annotations.get(REFERENCE) or "")
            if NAME not in annotations and ("/" in reference or ":" in reference):
                annotations[NAME] = full_name(reference)
                changed = True
        if changed:
            documents.replace({"index.json": index})


def is_oci(archive: Path) -> bool:
    """Whether an archive that is kept is an OCI layout, and not docker's alone."""
    with _Documents(archive) as documents:
        return documents.read("index.json") is not None


def write_as_oci(archive: Path, name: str, out: BinaryIO) -> None:
    """Writes the image of this full name of an archive as an OCI layout; its id stays. ClusterError if damaged."""
    try:
        opened = Archive(archive)
        try:
            image = next(each for each in opened.images() if name in each.names)
            oci.write_layout(out, [name], image.config, [_blob(opened, member) for member in image.layers])
        finally:
            opened.close()
    except _WRONG as error:
        raise ClusterError(f"{archive} is not an archive of images: {error}") from None


def _blob(archive: Archive, member: str) -> oci.Blob:
    stream, size = archive.packed(member)
    with stream:
        kind = kind_of(stream.read(6))
        stream.seek(0)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    if kind not in ("", "gzip", "zstd"):
        raise ValueError(f"a layer is packed by {kind}, which OCI does not know")
    media = f"{oci.PLAIN_LAYER}+{kind}" if kind else oci.PLAIN_LAYER
    return oci.Blob(media, f"sha256:{digest}", size, lambda: archive.packed(member)[0])


def rename(archive: Path, names: Sequence[str], shown: Path) -> None:
    """Gives the only image of an archive other names, in full. ClusterError if there are several, or none."""
    try:
        with _Documents(archive) as documents:
            index, manifest = documents.read("index.json"), documents.read("manifest.json")
            told: dict[str, Any] = {}
            for name, entries in (("index.json", index and index["manifests"]), ("manifest.json", manifest)):
                if entries is not None and len({each.get("digest") or each["Config"] for each in entries}) != 1:
                    raise ClusterError(f"{shown} holds {len(entries)} images, and a name is for one")
                if entries is not None:
                    told[name] = entries[0]
            if "index.json" in told:
                kept = {**(told["index.json"].get("annotations") or {})}
                told["index.json"] = {
                    **index,
                    "manifests": [
                        {**told["index.json"], "annotations": {**kept, NAME: name, REFERENCE: name.rpartition(":")[2]}}
                        for name in names
                    ],
                }
            if "manifest.json" in told:
                told["manifest.json"] = [{**told["manifest.json"], "RepoTags": list(names)}]
            documents.replace(told)
    except _WRONG as error:
        raise ClusterError(f"{shown} is not an archive of images: {error}") from None


class _Documents:
    """The JSON documents of an archive, which may be replaced."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive

    def __enter__(self) -> _Documents:
        self._tar = tarfile.open(self._archive, tarinfo=Header)
        self._members = {member.name.removeprefix("./"): member for member in self._tar}
        return self

    def __exit__(self, *_: object) -> None:
        self._tar.close()

    def read(self, name: str) -> Any:
        """Read a member; None if it does not exist."""
        if name not in self._members:
            return None
        with _file(self._tar, self._members[name]) as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(f"{name} is longer than {LARGEST} bytes")
        return json.loads(content)

    def replace(self, documents: Mapping[str, Any]) -> None:
        """Writes the archive anew, in one step."""
        temporary = self._archive.with_name(f"{self._archive.name}.named")
        try:
            with tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as out:
                for name, member in self._members.items():
                    if name in documents:
                        content = json.dumps(documents[name]).encode()
                        member.size = len(content)
                        out.addfile(member, io.BytesIO(content))
                    else:
                        out.addfile(member, _file(self._tar, member) if member.isreg() else None)
            temporary.replace(self._archive)
        finally:
            temporary.unlink(missing_ok=True)


def _file(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(member)
    if file is None:
        raise ValueError(f"{member.name} is no file")
    return file
