"""Loads an image from a registry into an archive (an OCI layout in a tar file) instead of a store.

The manifest and all blobs are written as the registry gave them, so that digests stay the registry's.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import threading
from collections.abc import Iterable
from pathlib import Path

from .archive import NAME, REFERENCE
from .downloads import Downloads, Progress
from .pulling import Reference, ask_servers, manifest_of, parse
from .registry import Credentials, Registry

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def archive(
    folders: Iterable[Path],
    name: str,
    login: Credentials | None,
    target: Path,
    progress: Progress = lambda blob, have: None,
) -> str:
    """Writes the archive of an image, in one step; the image's name in full. Raises PullError.

    What was loaded of an image that breaks off is kept beside the target, for the next time.
    """
    reference = parse(name)
    ask_servers(
        folders, reference, login, lambda registry, digest: _write(registry, digest, reference, target, progress)
    )
    return reference.name


def _write(registry: Registry, digest: str, reference: Reference, target: Path, progress: Progress) -> None:
    body, manifest = manifest_of(registry, digest)
    folder = target.with_name(f".{target.name}.downloads")
    downloads = Downloads(folder, progress)
    blobs = list({each.digest: each for each in (manifest.config, *manifest.layers)}.values())
    forever = threading.Event()
    temporary = target.with_name(f".{target.name}.new")
    for blob in blobs:
        downloads.open(registry, blob, forever).close()
    try:
        with tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as tar:
            _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
            _add(tar, "index.json", _index(body, reference))
            _add(tar, f"blobs/sha256/{hashlib.sha256(body).hexdigest()}", body)
            for blob in blobs:
                with downloads.open(registry, blob, forever) as file:
                    info = _info(f"blobs/sha256/{blob.digest.removeprefix('sha256:')}", blob.size)
                    tar.addfile(info, file)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    downloads.forget(*blobs)
    for left in folder.iterdir():
        left.unlink()
    folder.rmdir()


def _index(body: bytes, reference: Reference) -> bytes:
    entry = {
        "mediaType": json.loads(body).get("mediaType") or MANIFEST,
        "digest": "sha256:" + hashlib.sha256(body).hexdigest(),
        "size": len(body),
        "annotations": {NAME: reference.name, REFERENCE: reference.identifier},
    }
    return json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()


def _info(path: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.size, info.mode = size, 0o644
    return info


def _add(tar: tarfile.TarFile, path: str, content: bytes) -> None:
    tar.addfile(_info(path, len(content)), io.BytesIO(content))
