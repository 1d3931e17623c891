"""Packs the folder of an OCI layout (skopeo's `oci:`, umoci, an archive that was unpacked) into an archive.

The folder is not trusted: only the files of a layout are taken, and a blob only with the content that its name
promises. So a link in place of one, which some builders make, brings nothing in that the image has not.
"""

from __future__ import annotations

import os
import re
import stat
import tarfile
from pathlib import Path
from typing import IO

from pybernetes.cluster.errors import ClusterError
from pybernetes.cri.embedded.images.archive import LARGEST
from pybernetes.cri.embedded.images.hashed import Hashed

DOCUMENTS = ("oci-layout", "index.json")
DOCKERS = "manifest.json"
"""`docker save` writes it beside those of the layout; it has names."""
_BLOB = re.compile("[0-9a-f]{64}")


def pack(folder: Path, target: Path, room: int) -> None:
    """Writes the archive of a layout, which may have so many bytes; ClusterError if the folder is none."""
    missing = [name for name in DOCUMENTS if not (folder / name).is_file()]
    if missing:
        raise ClusterError(f"{folder} is a folder, but not that of an OCI layout: it has no {' and no '.join(missing)}")
    blobs = folder / "blobs" / "sha256"
    found = sorted(each for each in os.listdir(blobs) if _BLOB.fullmatch(each)) if blobs.is_dir() else []
    documents = [*DOCUMENTS, *([DOCKERS] if (folder / DOCKERS).is_file() else [])]
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in [*documents, *(f"blobs/sha256/{each}" for each in found)]:
            with _open(folder / name) as file:
                size = os.fstat(file.fileno()).st_size
                if name in documents and size > LARGEST:
                    raise ClusterError(f"{folder / name} is longer than {LARGEST} bytes")
                room -= size
                if room < 0:
                    raise ClusterError(f"{folder}: there is no room for its content beside {target.parent}")
                content = Hashed(file)
                info = tarfile.TarInfo(name)
                info.size, info.mode = size, 0o644
                archive.addfile(info, content)
            if name not in documents and content.digest != f"sha256:{Path(name).name}":
                raise ClusterError(f"{folder / name} has other content than its name says")


def _open(path: Path) -> IO[bytes]:
    """A file to read; one that is a pipe is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ClusterError(f"{path} is no file")
    return open(descriptor, "rb")
