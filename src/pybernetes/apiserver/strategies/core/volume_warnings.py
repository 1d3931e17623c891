"""Volumes of plugins that are gone, and files of one volume that lie in each other's way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from pybernetes.api.core.podresources import quantity
from pybernetes.api.core.v1 import Volume, VolumeProjection
from pybernetes.api.field import Path
from pybernetes.api.gocompat.quote import quote

_GONE: Final = (
    ("photon_persistent_disk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("git_repo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scale_io", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
)


MAX_NAMES: Final = 100_000
"""Names in the paths of one volume that are compared; overlaps of later files are not warned of."""


class _File(NamedTuple):
    path: str
    source: str

    def __str__(self) -> str:
        return f"{quote(self.path)} ({self.source})" if self.source else quote(self.path)


def volume_warnings(volumes: list[Volume], path: Path) -> Iterator[str]:
    """Warnings about the volumes of a pod."""
    for index, volume in enumerate(volumes):
        for field, wire, message in _GONE:
            if getattr(volume, field) is not None:
                yield f"{path.index(index).child(wire)}: {message}"
        template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
        resources = template.spec.resources if template is not None and template.spec is not None else None
        if resources is not None:
            at = path.index(index).child("ephemeral", "volumeClaimTemplate", "spec", "resources")
            for wire, part in (("requests", resources.requests), ("limits", resources.limits)):
                if part and "storage" in part and not quantity(part["storage"]).is_whole():
                    value = quote(str(part["storage"]))
                    yield (
                        f"{at.child(wire).key('storage')}: fractional byte value {value} is invalid, must be an integer"
                    )
    for volume in volumes:
        yield from _overlaps(volume)


def _overlaps(volume: Volume) -> Iterator[str]:
    name = quote(volume.name or "")
    if volume.config_map is not None and volume.config_map.items:
        what = f"ConfigMap {quote(volume.config_map.name or '')}"
        yield from _collisions(name, what, (_File(each.path or "", "") for each in volume.config_map.items))
    if volume.secret is not None and volume.secret.items:
        what = f"Secret {quote(volume.secret.secret_name or '')}"
        yield from _collisions(name, what, (_File(each.path or "", "") for each in volume.secret.items))
    if volume.downward_api is not None and volume.downward_api.items:
        files = (_File(each.path or "", "") for each in volume.downward_api.items)
        yield from _collisions(name, "DownwardAPI", files)
    if volume.projected is not None:
        seen = _Folder()
        for source in volume.projected.sources or ():
            if source == VolumeProjection():
                yield f"volume {name} (Projected) has no sources provided"
            yield from _collisions(name, "Projected", _files(source), seen)


def _files(source: VolumeProjection) -> list[_File]:
    if source.config_map is not None and source.config_map.items:
        what = f"ConfigMap {quote(source.config_map.name or '')}"
        return [_File(each.path or "", what) for each in source.config_map.items]
    if source.secret is not None and source.secret.items:
        what = f"Secret {quote(source.secret.name or '')}"
        return [_File(each.path or "", what) for each in source.secret.items]
    if source.downward_api is not None and source.downward_api.items:
        return [_File(each.path or "", "DownwardAPI") for each in source.downward_api.items]
    if source.service_account_token is not None:
        return [_File(source.service_account_token.path or "", "ServiceAccountToken")]
    return []


class _Folder:
    """A folder or file of a volume: the files of the pod at this path, and those below."""

    __slots__ = ("below", "children", "here", "names")

    def __init__(self) -> None:
        self.names = 0
        self.children: dict[str, _Folder] = {}
        self.here: list[tuple[int, _File]] = []
        self.below: list[tuple[int, _File]] = []

    def add(self, file: _File, number: int) -> list[tuple[int, _File]]:
        """Put a file here; those in whose way it is are returned."""
        found: list[tuple[int, _File]] = []
        folder = self
        for name in file.path.split("/"):
            found += folder.here
            folder.below.append((number, file))
            folder = folder.children.setdefault(name, _Folder())
        found += folder.here
        found += folder.below
        folder.here.append((number, file))
        return sorted(found)


def _collisions(volume: str, what: str, files: Iterable[_File], root: _Folder | None = None) -> Iterator[str]:
    """Files that are in the way of others, among these and those that the root has already."""
    root = root or _Folder()
    for file in files:
        this = _File(file.path.rstrip("/"), file.source)
        root.names += this.path.count("/") + 1
        if root.names > MAX_NAMES:
            return
        if this.path:
            for _, other in root.add(this, len(root.below)):
                yield f"volume {volume} ({what}): overlapping paths: {this} with {other}"
