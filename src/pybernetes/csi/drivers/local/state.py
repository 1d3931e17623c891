"""The volumes and snapshots of this node: a folder for each, with `volume.json` or `snapshot.json` beside its content.

    ROOT/volumes/ID/{volume.json, data/ | disk.img}
    ROOT/snapshots/ID/{snapshot.json, data/ | disk.img}

An entry is made in a folder with another name and renamed when all of it is there, and renamed before it is removed:
whatever a crash leaves is either whole, or garbage that the next start removes. Everything here blocks.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeVar

from pybernetes.component import state_files
from pybernetes.component.removal import remove_tree
from pybernetes.csi.errors import CSIError, invalid

FOLDER: Final = "folder"
IMAGE: Final = "image"
"""A file of the volume's size with a file system in it, so that the size is the limit."""
BLOCK: Final = "block"
"""A file of the volume's size, given as a device."""
KINDS: Final = (FOLDER, IMAGE, BLOCK)
_MAKING: Final = ".making-"
_REMOVING: Final = ".removing-"


@dataclass(frozen=True, slots=True)
class Entry:
    """A volume, or a snapshot of one."""

    id: str
    name: str
    """As it was asked for: the same name again is the same volume."""
    kind: str
    size: int
    made: float
    source: str = ""
    """`snapshot:ID` or `volume:ID` of what it was made from."""


T = TypeVar("T", bound=Entry)


class Entries:
    """One kind of entries below a folder."""

    def __init__(self, folder: Path, file: str) -> None:
        self.folder, self._file = folder, file
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in folder.iterdir():
            if left.name.startswith((_MAKING, _REMOVING)):
                remove_tree(left, ignore_errors=True)

    def path(self, id: str) -> Path:
        """The folder of an entry; raises `CSIError` for what cannot be one's id."""
        if not id or "/" in id or id.startswith(".") or len(id) > 200:
            raise CSIError("NotFound", f"no such volume or snapshot: {id!r}")
        return self.folder / id

    def get(self, id: str) -> Entry | None:
        """The entry; None if there is none."""
        try:
            path = self.path(id) / self._file
        except CSIError:
            return None
        return state_files.read(path, lambda text: Entry(**json.loads(text)))

    def all(self) -> Iterator[Entry]:
        """All entries, in the order of their ids."""
        for folder in sorted(self.folder.iterdir()):
            if not folder.name.startswith("."):
                entry = self.get(folder.name)
                if entry is not None:
                    yield entry

    def make(self, entry: Entry, fill: Callable[[Path], None]) -> Entry:
        """Make an entry; `fill` puts its content into the folder."""
        making = self.folder / f"{_MAKING}{entry.id}-{os.getpid()}-{time.monotonic_ns()}"
        making.mkdir(mode=0o700)
        try:
            fill(making)
            state_files.write(making / self._file, json.dumps(asdict(entry)).encode())
            os.rename(making, self.folder / entry.id)
        except BaseException:
            remove_tree(making, ignore_errors=True)
            raise
        state_files.sync_folder(self.folder)
        return entry

    def write(self, entry: Entry) -> None:
        """Write a changed entry."""
        state_files.write(self.folder / entry.id / self._file, json.dumps(asdict(entry)).encode())

    def remove(self, id: str) -> None:
        """Remove an entry with its content; one that is not there is fine."""
        try:
            path = self.path(id)
        except CSIError:
            return
        removing = self.folder / f"{_REMOVING}{id}-{time.monotonic_ns()}"
        try:
            os.rename(path, removing)
        except FileNotFoundError:
            return
        remove_tree(removing)


def free_space(folder: Path) -> int:
    """Bytes that are free on the disk of the volumes."""
    found = shutil.disk_usage(folder)
    return found.free


def kind_of(parameters: dict[str, str], *, block: bool) -> str:
    """The kind of volume that a StorageClass asks for; raises `CSIError` for parameters that are not known."""
    unknown = sorted(set(parameters) - {"capacity"})
    if unknown:
        raise invalid(f"StorageClass parameters: {', '.join(unknown)} not known, only capacity (shared or enforced)")
    capacity = parameters.get("capacity", "shared")
    if capacity not in ("shared", "enforced"):
        raise invalid(f"StorageClass parameters: capacity is {capacity!r}, must be shared or enforced")
    if block:
        return BLOCK
    return IMAGE if capacity == "enforced" else FOLDER
