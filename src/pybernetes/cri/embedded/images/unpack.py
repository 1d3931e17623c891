"""Unpacks a layer into a folder such that overlayfs can use it as a lower one; trusts nothing in the archive.

Every path is opened as if the folder were the root (openat2), so neither `..` nor links lead out of it, and nothing is
ever written through a link as its last part. Device nodes are left out: a container gets its devices from the runtime.
Size, number and depth of entries are bounded, and so is what is read for their headers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tarfile
from functools import cache
from pathlib import Path
from typing import IO, NoReturn, Self

from pybernetes.component.removal import remove_tree

from ..syscalls import ALL_USERS, open_in_root, users

WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
METADATA, AUFS_LINKS = ".wh..wh.", ".wh..wh.plnk"
"""Names that AUFS kept for its own books, still in old images: not files of the image, so they are left out."""
ENTRIES = 1_000_000
"""More than any image has; less than what fills a file system with empty files."""
LONGEST = 4096
DEEPEST = 512
"""Folders in folders: a path has no room for many more."""
HEADER = 1 << 20
"""Bytes of a long name or of extended headers, which are read at once; names have 4 KiB, attributes 64."""
OVERHEAD = 4 << 30
"""Bytes of a stream beside the files' own."""
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_XATTR = "SCHILY.xattr."
_KEPT = ("security.capability", "user.")
_OVERLAY = "user.overlay."
"""The prefix of overlayfs' attributes without root."""


class UnsafeArchive(ValueError):
    """The archive has what no image needs."""


def unpack(stream: IO[bytes], target: Path, *, most_bytes: int, most_entries: int = ENTRIES) -> int:
    """Unpacks a plain tar stream; the bytes of its files. Raises `UnsafeArchive`, ValueError or OSError."""
    root = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    total = 0
    count = _Count(most_entries)
    folders: list[tuple[str, tarfile.TarInfo]] = []
    try:
        with tarfile.open(  # type: ignore[call-overload] # of a file it only reads
            fileobj=_Bounded(stream, most_bytes + OVERHEAD),
            mode="r|",
            encoding="utf-8",
            errors="surrogateescape",
            tarinfo=Header,
        ) as archive:
            for member in archive:
                count.one()
                if member.size < 0:
                    raise UnsafeArchive(f"the file {member.name[:80]!r} of {member.size} bytes")
                total += member.size if member.isreg() else 0
                if total > most_bytes:
                    raise UnsafeArchive(f"a layer of more than {most_bytes} bytes")
                path = _checked(member.name)
                if path and not _is_metadata(path, member):
                    _safely_entry(root, path, member, archive, count)
                if member.isdir():
                    folders.append((path or ".", member))
                archive.members = []  # it remembers all of them otherwise
        remove_tree(AUFS_LINKS, root)
        for path, member in reversed(folders):
            _finish_folder(root, path, member)
    except (tarfile.TarError, OverflowError) as error:
        raise ValueError(f"not a layer: {error}") from None
    finally:
        os.close(root)
    return total


class Header(tarfile.TarInfo):
    """Refuses what tarfile would read into memory at once, however much it is."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """A header of 512 bytes."""
        header = super().frombuf(buf, encoding, errors)
        if header.type in _EXTENDED and not 0 <= header.size <= HEADER:
            raise UnsafeArchive(f"a header of {header.size} bytes")
        if header.type == tarfile.GNUTYPE_SPARSE:
            raise UnsafeArchive(f"the sparse file {header.name!r}: not supported in layers")
        return header

    def _proc_gnusparse_00(self, *_: object) -> NoReturn:
        raise UnsafeArchive(f"the sparse file {self.name!r}: not supported in layers")

    _proc_gnusparse_01 = _proc_gnusparse_10 = _proc_gnusparse_00


class _Count:
    """Of what is made."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def one(self) -> None:
        """Another one; UnsafeArchive if it is too many."""
        self._left -= 1
        if self._left < 0:
            raise UnsafeArchive(f"more than {self._most} entries in a layer")


class _Bounded:
    """A stream that ends with an error if it does not end by itself."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream = stream
        self._left = most

    def read(self, size: int) -> bytes:
        """The stream's."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise UnsafeArchive("a layer that does not end")
        return data


def _safely_entry(root: int, path: str, member: tarfile.TarInfo, archive: tarfile.TarFile, count: _Count) -> None:
    """Makes an entry; what the file system cannot have is the archive's fault, what the disk has not is not."""
    try:
        _entry(root, path, member, archive, count)
    except OSError as error:
        if error.errno in _DISK:
            raise
        raise UnsafeArchive(f"the entry {member.name[:80]!r} cannot be made: {error.strerror or error}") from None


def _checked(name: str) -> str:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UnsafeArchive(f"the path {name!r} leads out of the layer")
    if "\0" in name or len(os.fsencode(name)) > LONGEST:
        raise UnsafeArchive(f"the path {name[:80]!r} is none")
    if len(parts) > DEEPEST:
        raise UnsafeArchive(f"the path {name[:80]!r} nests more than {DEEPEST} folders")
    return "/".join(parts)


def _is_metadata(path: str, member: tarfile.TarInfo) -> bool:
    """Whether an entry is AUFS's own. Files of which others are hard links are made, and removed in the end."""
    folder, _, name = path.rpartition("/")
    if folder == AUFS_LINKS and member.isreg() and not name.startswith(WHITEOUT):
        return False
    return any(part.startswith(METADATA) for part in folder.split("/")) or (
        name.startswith(METADATA) and name != OPAQUE
    )


def _entry(root: int, path: str, member: tarfile.TarInfo, archive: tarfile.TarFile, count: _Count) -> None:
    folder, _, name = path.rpartition("/")
    above = _folder(root, folder, count)
    try:
        if name == OPAQUE:
            os.setxattr(above, "user.overlay.opaque" if _rootless() else "trusted.overlay.opaque", b"y")
            return
        if name.startswith(WHITEOUT):
            hidden = name.removeprefix(WHITEOUT)
            if hidden in ("", ".", ".."):
                raise UnsafeArchive(f"the whiteout {path!r} hides nothing that can be hidden")
            remove_tree(hidden, above)
            os.mknod(hidden, stat.S_IFCHR, 0, dir_fd=above)
            return
        if member.isdir():
            _make_folder(above, name)
            return
        if member.islnk():
            _link(root, member, above, name)
            return
        if not (member.isreg() or member.issym() or member.isfifo()):
            return
        remove_tree(name, above)
        if member.isreg():
            _file(above, name, member, archive)
        elif member.issym():
            os.symlink(member.linkname, name, dir_fd=above)
            _own(name, member, above)
        else:
            os.mkfifo(name, member.mode & 0o7777, dir_fd=above)
            _own(name, member, above)
        if not member.isreg():
            os.utime(name, (member.mtime, member.mtime), dir_fd=above, follow_symlinks=False)
    finally:
        os.close(above)


def _folder(root: int, path: str, count: _Count) -> int:
    """A descriptor of a folder in the layer; made if it is missing."""
    try:
        return open_in_root(root, path or ".", os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        raise UnsafeArchive(f"{path!r} is no folder") from None
    folder, _, name = path.rpartition("/")
    above = _folder(root, folder, count)
    count.one()  # folders that no entry tells of take room as well
    try:
        _make_folder(above, name)
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    finally:
        os.close(above)


def _make_folder(above: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            return
        os.unlink(name, dir_fd=above)
    os.mkdir(name, 0o755, dir_fd=above)


def _file(above: int, name: str, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, 0o600, dir_fd=above), "wb") as out:
        source = archive.extractfile(member)
        if source is not None:
            shutil.copyfileobj(source, out, 1 << 16)
        out.flush()
        _finish(out.fileno(), member)


def _link(root: int, member: tarfile.TarInfo, above: int, name: str) -> None:
    target = _checked(member.linkname)
    folder, _, last = target.rpartition("/")
    try:
        place = open_in_root(root, folder or ".", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        raise UnsafeArchive(f"the hard link {member.name!r} leads to {member.linkname!r}, not in the layer") from None
    try:
        if not stat.S_ISREG(os.stat(last, dir_fd=place, follow_symlinks=False).st_mode):
            raise UnsafeArchive(f"the hard link {member.name!r} leads to {member.linkname!r}, which is no file")
        if os.path.samestat(os.fstat(place), os.fstat(above)) and last == name:
            return
        remove_tree(name, above)
        os.link(last, name, src_dir_fd=place, dst_dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        raise UnsafeArchive(f"the hard link {member.name!r} leads to {member.linkname!r}, not in the layer") from None
    finally:
        os.close(place)


def _own(path: str | int, member: tarfile.TarInfo, folder: int | None = None) -> None:
    """Gives an entry to its owner; where there are fewer users than in the image (without root) it stays ours."""
    try:
        if isinstance(path, int):
            os.fchown(path, member.uid, member.gid)
        else:
            os.chown(path, member.uid, member.gid, dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EPERM) or not _rootless():
            raise


@cache
def _rootless() -> bool:
    return os.geteuid() != 0 or users() < ALL_USERS


def _finish(descriptor: int, member: tarfile.TarInfo) -> None:
    """Owner, mode, attributes and time; the owner first, because changing it takes set-uid bits away."""
    _own(descriptor, member)
    # Who is not root must not lock himself out: he could neither read nor remove it.
    own = 0 if os.geteuid() == 0 else 0o700 if member.isdir() else 0o600
    os.fchmod(descriptor, member.mode & 0o7777 | own)
    for key, value in member.pax_headers.items():
        name = key.removeprefix(_XATTR)
        if key.startswith(_XATTR) and name.startswith(_KEPT) and not name.startswith(_OVERLAY):
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, name, value.encode(errors="surrogateescape"))
    os.utime(descriptor, (member.mtime, member.mtime))


def _finish_folder(root: int, path: str, member: tarfile.TarInfo) -> None:
    try:
        descriptor = open_in_root(root, path, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return  # a later entry took its place
    try:
        _finish(descriptor, member)
    finally:
        os.close(descriptor)
