"""Objects as files below a folder: for one machine, or a folder that all machines share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from pybernetes.objectfs.objects.store import ObjectInfo, ObjectMissing, ObjectStoreError

TEMPORARY = ".writing-"


class FolderStore:
    """A file an object; it appears under its name when it is whole and on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def create(self) -> None:
        try:
            os.makedirs(self._folder, exist_ok=True)
        except OSError as error:
            raise ObjectStoreError(error.errno, f"cannot make the folder {self._folder}: {error.strerror}") from error

    def put(self, key: str, data: bytes) -> None:
        path = f"{self._folder}/{key}"
        folder, _, name = path.rpartition("/")
        temporary = f"{folder}/{TEMPORARY}{os.getpid()}-{name}"
        try:
            try:
                file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                _make_folders(folder)
                file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(file, view) :]
                os.fdatasync(file)
            finally:
                os.close(file)
            os.rename(temporary, path)
            _sync_folder(folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise ObjectStoreError(error.errno, f"cannot write object {key}: {error.strerror}") from error

    def get(self, key: str, offset: int = 0, length: int = -1) -> bytes:
        try:
            file = os.open(f"{self._folder}/{key}", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise ObjectMissing(2, f"object {key} is missing") from None
        except OSError as error:
            raise ObjectStoreError(error.errno, f"cannot read object {key}: {error.strerror}") from error
        try:
            left = os.fstat(file).st_size - offset if length < 0 else length
            parts = []
            while left > 0:
                part = os.pread(file, left, offset)
                if not part:
                    break
                parts.append(part)
                offset, left = offset + len(part), left - len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            os.close(file)

    def delete(self, key: str) -> None:
        _remove(f"{self._folder}/{key}")

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        for folder, folders, names in os.walk(self._folder):
            folders.sort()
            for name in sorted(names):
                path = f"{folder}/{name}"
                key = path[len(self._folder) + 1 :]
                if key.startswith(prefix) and not name.startswith(TEMPORARY):
                    try:
                        found = os.stat(path)
                    except FileNotFoundError:
                        continue
                    yield ObjectInfo(key, found.st_size, found.st_mtime)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _make_folders(folder: str) -> None:
    """Makes a folder with its parents, so that they survive a power failure."""
    parent = os.path.dirname(folder)
    if not os.path.isdir(parent):
        _make_folders(parent)
    os.makedirs(folder, exist_ok=True)
    _sync_folder(parent)


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
