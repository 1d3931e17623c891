"""Answers to the kernel: attributes, entries and directories as bytes."""

from __future__ import annotations

from typing import NamedTuple

from pybernetes.objectfs.fuse import protocol
from pybernetes.objectfs.meta.namespace import Entry
from pybernetes.objectfs.meta.records import Attributes

STATX_BASIC = 0x7FF
STATX_BTIME = 0x800
_PADDING = b"\0" * 8


class Timeouts(NamedTuple):
    """For how many nanoseconds the kernel may use what it was answered without asking again."""

    entry: int = 1_000_000_000
    attributes: int = 1_000_000_000


def attributes(found: Attributes) -> bytes:
    size = found.size
    return protocol.ATTR.pack(
        found.inode, size, -(-size // 512),
        _seconds(found.atime), _seconds(found.mtime), _seconds(found.ctime),
        found.atime % 1_000_000_000, found.mtime % 1_000_000_000, found.ctime % 1_000_000_000,
        found.mode, found.nlink, found.uid, found.gid, found.rdev, 4096, 0,
    )  # fmt: skip


def attr_out(found: Attributes, timeouts: Timeouts) -> bytes:
    seconds, nanoseconds = divmod(timeouts.attributes, 1_000_000_000)
    return protocol.ATTR_OUT.pack(seconds, nanoseconds, 0) + attributes(found)


def entry_out(found: Attributes, timeouts: Timeouts) -> bytes:
    entry, entry_rest = divmod(timeouts.entry, 1_000_000_000)
    attr, attr_rest = divmod(timeouts.attributes, 1_000_000_000)
    return protocol.ENTRY_OUT.pack(found.inode, 0, entry, attr, entry_rest, attr_rest) + attributes(found)


def statx_out(found: Attributes, timeouts: Timeouts) -> bytes:
    seconds, nanoseconds = divmod(timeouts.attributes, 1_000_000_000)
    times = [
        part for each in (found.atime, found.btime, found.ctime, found.mtime) for part in (*divmod(each, 10**9), 0)
    ]
    major, minor = (found.rdev >> 8) & 0xFFF, (found.rdev & 0xFF) | ((found.rdev >> 12) & 0xFFF00)
    return protocol.STATX_OUT.pack(seconds, nanoseconds, 0) + protocol.STATX.pack(
        STATX_BASIC | STATX_BTIME, 4096, 0, found.nlink, found.uid, found.gid, found.mode, 0,
        found.inode, found.size, -(-found.size // 512), 0, *times, major, minor, 0, 0,
    )  # fmt: skip


def directory(entries: list[Entry], offset: int, size: int) -> bytes:
    """As many entries from number `offset` on as fit into `size` bytes."""
    parts, used = [], 0
    for index in range(offset, len(entries)):
        entry = _dirent(entries[index], index)
        used += len(entry)
        if used > size:
            break
        parts.append(entry)
    return b"".join(parts)


def directory_plus(found: list[tuple[Entry, Attributes | None]], offset: int, size: int, timeouts: Timeouts) -> bytes:
    """Entries with their attributes; `.` and `..` come without, which the kernel then does not remember."""
    parts, used = [], 0
    for index, (entry, attrs) in enumerate(found, offset):
        head = bytes(protocol.ENTRY_OUT.size + protocol.ATTR.size) if attrs is None else entry_out(attrs, timeouts)
        record = head + _dirent(entry, index)
        used += len(record)
        if used > size:
            break
        parts.append(record)
    return b"".join(parts)


def _dirent(entry: Entry, index: int) -> bytes:
    name = entry.name
    head = protocol.DIRENT.pack(entry.inode, index + 1, len(name), entry.kind >> 12)
    return head + name + _PADDING[: -len(name) % 8]


def _seconds(nanoseconds: int) -> int:
    """Times before 1970 travel as two's complement."""
    return nanoseconds // 1_000_000_000 & 0xFFFFFFFFFFFFFFFF
