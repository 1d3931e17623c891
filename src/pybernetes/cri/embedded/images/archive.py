"""Reads image archives: OCI layouts in a tar file, and what `docker save` writes."""

from __future__ import annotations

import hashlib
import json
import platform
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .compression import plain
from .names import full_name
from .unpack import Header

NAME = "io.containerd.image.name"
REFERENCE = "org.opencontainers.image.ref.name"
LARGEST = 16 << 20
"""Bytes of an index, manifest or configuration."""
DEPTH = 4
"""Indexes in indexes."""
INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "ppc64le": "ppc64le", "s390x": "s390x"}


@dataclass(frozen=True)
class Contained:
    """An image in an archive: its names, its configuration as it is, and the members that are its layers."""

    names: tuple[str, ...]
    config: bytes
    layers: tuple[str, ...]
    manifest: str = ""
    """The manifest's digest, if there is one."""

    @property
    def id(self) -> str:
        return "sha256:" + hashlib.sha256(self.config).hexdigest()


class Archive:
    """An open archive. Everything wrong with it is a ValueError."""

    def __init__(self, path: Path) -> None:
        try:
            self._tar = tarfile.open(path, tarinfo=Header)  # noqa: SIM115 - closed by close()
            self._members = {member.name.removeprefix("./"): member for member in self._tar}
        except (tarfile.TarError, EOFError) as error:
            why, formats, _ = str(error).partition(":\n")  # then what each of the formats has to say against it
            raise ValueError("no tar file, plain or packed" if formats else why) from None

    def close(self) -> None:
        """Closes the file."""
        self._tar.close()

    def images(self) -> list[Contained]:
        """The images for this machine's processor."""
        if "index.json" in self._members:
            return self._from_layout()
        if "manifest.json" in self._members:
            return self._from_docker()
        raise ValueError("neither an OCI layout (index.json) nor a docker archive (manifest.json)")

    def layer(self, member: str) -> IO[bytes]:
        """A layer as a plain tar stream; the archive may have it compressed."""
        return plain(self._open(member))

    def packed(self, member: str) -> tuple[IO[bytes], int]:
        """A layer as it is in the archive, and its size."""
        stream = self._open(member)
        size = stream.seek(0, 2)
        stream.seek(0)
        return stream, size

    def _from_layout(self) -> list[Contained]:
        docker_names = self._docker_names()
        found: dict[str, Contained] = {}
        for entry in self._json("index.json").get("manifests", []):
            descriptor = self._for_this_machine(entry)
            if descriptor is None:
                continue
            digest = str(descriptor["digest"])
            manifest = json.loads(self._blob(digest))
            config = self._blob(manifest["config"]["digest"])
            layers = tuple(_blob_path(layer["digest"]) for layer in manifest["layers"])
            names = {
                *_names(entry.get("annotations") or {}),
                *docker_names.get(_blob_path(manifest["config"]["digest"]), ()),
            }
            before = found[digest].names if digest in found else ()
            found[digest] = Contained(tuple(dict.fromkeys([*before, *sorted(names)])), config, layers, digest)
        return list(found.values())

    def _for_this_machine(self, descriptor: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any] | None:
        """The manifest that an entry of an index stands for; None if it is another machine's."""
        is_index = descriptor.get("mediaType") in INDEXES
        if depth > DEPTH or not fits(descriptor.get("platform"), must_tell=depth > 0 and not is_index):
            return None
        if depth and _blob_path(str(descriptor["digest"])) not in self._members:
            return None  # of some platforms an archive may have the entries only
        if not is_index:
            return descriptor
        entries = json.loads(self._blob(descriptor["digest"])).get("manifests", [])
        return next((found for each in entries if (found := self._for_this_machine(each, depth + 1))), None)

    def _from_docker(self) -> list[Contained]:
        found = []
        for entry in self._json("manifest.json"):
            names = tuple(_name(name) for name in entry.get("RepoTags") or ())
            found.append(Contained(names, self._read(entry["Config"]), tuple(entry["Layers"])))
        return found

    def _docker_names(self) -> dict[str, list[str]]:
        if "manifest.json" not in self._members:
            return {}
        entries = self._json("manifest.json")
        return {entry["Config"]: [_name(name) for name in entry.get("RepoTags") or ()] for entry in entries}

    def _blob(self, digest: str) -> bytes:
        data = self._read(_blob_path(digest))
        if "sha256:" + hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"blob {digest} has other content than its name says")
        return data

    def _json(self, name: str) -> Any:
        return json.loads(self._read(name))

    def _read(self, name: str) -> bytes:
        with self._open(name) as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ValueError(f"{name} is longer than {LARGEST} bytes")
        return data

    def _open(self, name: str) -> IO[bytes]:
        member = self._members.get(name)
        for _ in range(8):  # docker writes links to layers that several images have
            if member is None or not (member.issym() or member.islnk()):
                break
            target = member.linkname
            if member.issym():
                folder = member.name.removeprefix("./").split("/")[:-1]
                for part in target.split("/"):
                    folder = folder[:-1] if part == ".." else [*folder, part] if part not in ("", ".") else folder
                target = "/".join(folder)
            member = self._members.get(target.removeprefix("./"))
        stream = self._tar.extractfile(member) if member is not None and member.isreg() else None
        if stream is None:
            raise ValueError(f"the archive has no {name}")
        return stream


def fits(platform_: Mapping[str, Any] | None, *, must_tell: bool = False) -> bool:
    """Whether an entry is for this machine; one that does not tell is, unless it must."""
    if not platform_:
        return not must_tell
    here = ARCHITECTURES.get(platform.machine(), platform.machine())
    return platform_.get("os") == "linux" and platform_.get("architecture") == here


def _blob_path(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    if algorithm != "sha256" or len(value) != 64 or any(each not in "0123456789abcdef" for each in value):
        raise ValueError(f"{digest!r} is no sha256 digest")
    return f"blobs/sha256/{value}"


def _names(annotations: Mapping[str, str]) -> list[str]:
    if NAME in annotations:
        return [_name(annotations[NAME])]
    reference = annotations.get(REFERENCE, "")
    return [_name(reference)] if "/" in reference or ":" in reference else []


def _name(name: str) -> str:
    try:
        return full_name(name)
    except ValueError as error:
        raise ValueError(f"invalid image name {name!r}: {error}") from None
