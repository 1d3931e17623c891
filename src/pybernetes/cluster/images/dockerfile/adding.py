"""ADD beyond COPY: archives, which are unpacked, and URLs, which are loaded."""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import tarfile
from collections.abc import Callable
from pathlib import Path

from pybernetes.cluster.images.dockerfile.sources import NOTHING, Source, Tree
from pybernetes.cri.embedded.images.compression import Damaged, plain
from pybernetes.cri.embedded.images.unpack import UnsafeArchive, unpack

LARGEST = 4 << 30
"""Bytes of a file that is loaded, and of the files of an archive."""
TIMEOUT = 60.0


class Scratch:
    """Folders for files that a step needs for a moment; they go with the stack."""

    def __init__(
        self, stack: contextlib.ExitStack, temporary: Callable[[], contextlib.AbstractContextManager[Path]]
    ) -> None:
        self._stack = stack
        self._temporary = temporary

    def file(self, name: str, content: bytes) -> Source:
        """A file with this content."""
        folder = self._stack.enter_context(self._temporary())
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o644)
        os.utime(folder / name, (0, 0))
        return self._source(folder, name, keeps_owners=False)

    def download(self, url: str, checksum: str) -> Source:
        """The file of a URL, readable by its owner only, as docker has it. ValueError tells why not."""
        import urllib.parse
        import urllib.request
        from email.utils import parsedate_to_datetime

        name = posixpath.basename(urllib.parse.urlsplit(url).path)
        if not name:
            raise ValueError(f"{url} names no file")
        folder = self._stack.enter_context(self._temporary())
        hashed = hashlib.sha256()
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as answer, open(folder / "content", "wb") as out:
                size = 0
                while data := answer.read(1 << 20):
                    size += len(data)
                    if size > LARGEST:
                        raise ValueError(f"{url} has more than {LARGEST} bytes")
                    hashed.update(data)
                    out.write(data)
                changed = answer.headers.get("Last-Modified")
        except (OSError, ValueError) as error:
            raise ValueError(f"{url} cannot be loaded: {error}") from None
        if checksum and checksum != f"sha256:{hashed.hexdigest()}":
            raise ValueError(f"{url} is sha256:{hashed.hexdigest()}, not {checksum}")
        time = 0.0
        with contextlib.suppress(ValueError, TypeError):
            time = parsedate_to_datetime(changed).timestamp()
        (folder / "content").chmod(0o600)
        os.utime(folder / "content", (time, time))
        return self._source(folder, "content", keeps_owners=False, shown=name)

    def unpacked(self, source: Source) -> Source:
        """The content of an archive, as a folder. ValueError."""
        folder = self._stack.enter_context(self._temporary())
        folder.chmod(0o755)
        try:
            with open(source.open(), "rb") as file, plain(file) as stream:
                unpack(stream, folder, most_bytes=LARGEST)
        except (UnsafeArchive, Damaged, ValueError) as error:
            raise ValueError(f"{source.name}: {error}") from None
        return self._source(folder, "", keeps_owners=True)

    def _source(self, folder: Path, name: str, *, keeps_owners: bool, shown: str = "") -> Source:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._stack.callback(os.close, root)
        state = os.stat(name or ".", dir_fd=root)
        return Source(Tree(root, NOTHING, keeps_owners), name, shown or name, state)


def is_remote(path: str) -> bool:
    """Whether it is a URL; ValueError for those that are not loaded."""
    if path.startswith("git@") or (path.startswith(("http://", "https://", "git://", "ssh://")) and _is_git(path)):
        raise ValueError(f"{path}: repositories of git are not loaded; clone them in a RUN, or before the build")
    return path.startswith(("http://", "https://"))


def is_archive(source: Source) -> bool:
    """Whether a file is a tar, packed or not: by its content, not by its name."""
    if source.is_folder:
        return False
    try:
        with open(source.open(), "rb") as file, plain(file) as stream:
            block = stream.read(512)
            tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.TarError, Damaged):
        return False
    return True


def _is_git(url: str) -> bool:
    scheme, _, rest = url.partition("://")
    return scheme in ("git", "ssh") or rest.partition("#")[0].endswith(".git")
