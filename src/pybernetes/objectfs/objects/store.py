"""The interface of an object store, and the store that a volume's format names.

Objects are immutable: a key is written once and read until it is deleted. A store raises `ObjectMissing` for a key that
is not there and `ObjectStoreError` for everything that a later attempt may mend.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from pybernetes.objectfs.errors import Failure, ObjectFSError
from pybernetes.objectfs.format import Format


class ObjectStoreError(Failure):
    """The store did not do what it was asked for."""


class ObjectMissing(ObjectStoreError):
    """No object has this key."""


class ObjectRefused(ObjectStoreError):
    """The store refuses the credentials: no later attempt will do better."""


class ObjectInfo(NamedTuple):
    key: str
    size: int
    mtime: float


class ObjectStore(Protocol):
    """Bytes by key."""

    def put(self, key: str, data: bytes) -> None: ...

    def get(self, key: str, offset: int = 0, length: int = -1) -> bytes: ...

    def delete(self, key: str) -> None:
        """Deletes a key; one that is not there is no error."""

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects whose key begins with `prefix`, in the order of their keys."""

    def create(self) -> None:
        """Makes the bucket where it is missing."""


# Stores that speak S3 under another name.
S3_ALIASES = ("s3", "minio", "ceph", "oss")


def open_store(format: Format) -> ObjectStore:
    """The store of a volume; keys are below the volume's name."""
    if format.storage == "file":
        from pybernetes.objectfs.objects.folder import FolderStore

        return FolderStore(Path(format.bucket) / format.name)
    if format.storage in S3_ALIASES:
        from pybernetes.objectfs.objects.s3 import Credentials, S3Store

        credentials = Credentials(format.access_key, format.secret_key, format.session_token)
        return S3Store(format.bucket, f"{format.name}/", credentials)
    known = ", ".join(("file", *S3_ALIASES))
    raise ObjectFSError(f"object store {format.storage!r} is not built in; there are: {known}")
