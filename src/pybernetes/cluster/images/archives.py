"""Archives of images as files: what they hold, whether it is sound, and a copy whose parts can be read by themselves.

They come from anybody: nothing is read at once without a bound, and everything wrong is one line.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import IO

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.images import oci
from pybernetes.cri.embedded.images.archive import NAME, REFERENCE, Archive
from pybernetes.cri.embedded.images.compression import plain
from pybernetes.cri.embedded.images.config import read_config
from pybernetes.cri.embedded.images.store import RESERVE
from pybernetes.cri.embedded.images.unpack import Header

_WRONG = (tarfile.TarError, EOFError, ValueError, AttributeError, TypeError, KeyError, RecursionError)
"""What bad archives lead to, also JSON of another shape."""


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
        raise ClusterError(f"{shown} holds no image with a name")
    return found


def _check_layer(archive: Archive, member: str) -> None:
    stream, _ = archive.packed(member)
    folder, _, name = member.rpartition("/")
    with stream:
        if folder == "blobs/sha256" and hashlib.file_digest(stream, "sha256").hexdigest() != name:  # type: ignore[arg-type]
            raise ValueError(f"the layer sha256:{name} has other content than its name says")


def name_for_containerd(archive: Path) -> None:
    """Adds containerd's own annotation to an OCI archive whose names are in OCI's: it takes those for tags."""
    with tarfile.open(archive, tarinfo=Header) as tar:
        members = {member.name.removeprefix("./"): member for member in tar}
        if "index.json" not in members:
            return
        index = json.load(_file(tar, members["index.json"]))
        changed = False
        for entry in index.get("manifests") or ():
            annotations = entry.setdefault("annotations", {})
            reference = str(annotations.get(REFERENCE) or "")
            if NAME not in annotations and ("/" in reference or ":" in reference):
                annotations[NAME] = full_name(reference)
                changed = True
        if not changed:
            return
        content = json.dumps(index).encode()
        temporary = archive.with_name(f"{archive.name}.named")
        try:
            with tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as out:
                for name, member in members.items():
                    if name == "index.json":
                        member.size = len(content)
                        out.addfile(member, io.BytesIO(content))
                    else:
                        out.addfile(member, _file(tar, member) if member.isreg() else None)
            temporary.replace(archive)
        finally:
            temporary.unlink(missing_ok=True)


def _file(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(member)
    if file is None:
        raise ValueError(f"{member.name} is no file")
    return file
