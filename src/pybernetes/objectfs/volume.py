"""The mounted file system: metadata and data together, one method an operation, with the handles of open files.

Consistency is close-to-open: `open` reads the attributes from the database, and lets the kernel keep its cached pages
only if the file is as this client left it; `flush` (close) returns when what was written is stored and committed.
Handles are conveniences: an unknown one is made anew from the inode, so a successor can go on with its predecessor's.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable
from errno import EFBIG, EINVAL, EISDIR, ENXIO, EOPNOTSUPP
from pathlib import Path
from typing import Any

from pybernetes.objectfs import format as formats
from pybernetes.objectfs.access_times import AccessTimes
from pybernetes.objectfs.data.blocks import Blocks
from pybernetes.objectfs.data.cache import BlockCache
from pybernetes.objectfs.data.codec import open_codec
from pybernetes.objectfs.data.collector import Collector
from pybernetes.objectfs.data.pace import DataOptions, paces
from pybernetes.objectfs.data.reader import Reader, ReadPattern
from pybernetes.objectfs.data.writer import Writer
from pybernetes.objectfs.format import Format
from pybernetes.objectfs.meta import records, trash, usage
from pybernetes.objectfs.meta.engine import Engine
from pybernetes.objectfs.meta.locks import F_UNLCK, FLOCK, POSIX, WHOLE_FILE, Locks
from pybernetes.objectfs.meta.namespace import Changes, Entry, Namespace, Removed
from pybernetes.objectfs.meta.numbers import NumberPool
from pybernetes.objectfs.meta.records import Attributes, fail
from pybernetes.objectfs.meta.sessions import Sessions
from pybernetes.objectfs.meta.slices import Slices
from pybernetes.objectfs.meta.usage import Limits
from pybernetes.objectfs.meta.xattrs import Xattrs
from pybernetes.objectfs.objects.store import ObjectStore
from pybernetes.objectfs.open_files import OpenFiles

log = logging.getLogger(__name__)
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE = 1, 2, 16
SEEK_DATA, SEEK_HOLE = 3, 4
# What statfs says of a volume without a limit.
UNLIMITED = 1 << 50


class Handle:
    """An open file or directory."""

    __slots__ = ("entries", "inode", "pattern", "writable")

    def __init__(self, inode: int, writable: bool = False) -> None:
        self.inode, self.writable = inode, writable
        self.pattern = ReadPattern()
        self.entries: list[Entry] | None = None


class Volume:
    """One client of a volume."""

    def __init__(
        self,
        engine: Engine,
        format: Format,
        store: ObjectStore,
        folder: Path,
        cache_size: int = 10 << 30,
        free_ratio: float = 0.1,
        information: dict[str, Any] | None = None,
        now: Callable[[], int] = time.time_ns,
        session: int = 0,
        data: DataOptions | None = None,
        resumable: bool = False,
        access_times: str = "noatime",
    ) -> None:
        self.engine, self.format, self._now = engine, format, now
        self.limits = Limits(format.capacity, format.inodes, format.trash_days)
        self.sessions = Sessions(engine, now)
        resumed = bool(session) and self.sessions.resume(session)
        if session and not resumed:
            log.warning("session %d was ended meanwhile: its locks are gone", session)
        self.session = session if resumed else self.sessions.open(information or {})
        cache = BlockCache(folder / "cache", cache_size, free_ratio) if cache_size else None
        self.cache = cache
        self.blocks = Blocks(
            store, format.block_size, cache, codec=open_codec(format), pace=paces(format, data or DataOptions())
        )
        self.names = Namespace(engine, self.session, now, self._is_open, self.limits, format.acl)
        self.slices = Slices(engine, now, self.limits)
        self.access_times = AccessTimes(self.names, now, access_times)
        self.xattrs = Xattrs(engine, self.names.journal)
        self.locks = Locks(engine, self.session)
        numbers = NumberPool(engine, records.NEXT_SLICE)
        self.writer = Writer(folder / "staging", self.blocks, self.slices, numbers, now)
        self._reader = Reader(self.blocks, self.slices, self.writer)
        self.collector = Collector(engine, self.blocks, self.slices, numbers)
        self.bytes_read = self.bytes_written = 0
        self._lock = threading.Lock()
        self._handles: dict[int, Handle] = {}
        # What is open is also in a file, so that a successor knows it.
        self._table = OpenFiles(folder / "open") if resumable else None
        self._opens: dict[int, int] = {}
        # (family, inode, owner) of locks taken here, so that a close without locks asks the database nothing.
        self._locked: set[tuple[bytes, int, int]] = set()
        newest = 0
        if self._table is not None and resumed:
            for number, (inode, writable) in self._table.load().items():
                self._handles[number] = Handle(inode, writable)
                self._opens[inode] = self._opens.get(inode, 0) + 1
                newest = max(newest, number)
        elif self._table is not None:
            self._table.clear()
        self._next_handle = itertools.count(newest + 1)
        if resumed:
            self.names.resume()
            self._locked = self.locks.held()
        # (mtime, size) of a file when this client last looked: its pages in the kernel's cache are of that version.
        self._versions: dict[int, tuple[int, int]] = {}

    def recover(self) -> None:
        """Takes up what an earlier client left in the staging folder: it reads back now, and is stored when the object
        store answers."""
        for inode in self.writer.recover():
            log.info("inode %d: storing what an earlier client had written", inode)

    def close(self) -> None:
        """Stores everything pending and ends the session."""
        for inode in self.writer.inodes():
            try:
                self.writer.flush(inode)
            except OSError as error:
                log.error("inode %d: not stored, its data stays in the staging folder: %s", inode, error)
        self.blocks.close()
        self.sessions.close(self.session)

    # Attributes

    def lookup(self, parent: int, name: bytes) -> Attributes:
        return self._with_pending(self.names.lookup(parent, name))

    def getattr(self, inode: int) -> Attributes:
        file = self.writer.file(inode)
        size, mtime = (file.size, file.mtime) if file is not None else (0, 0)
        attributes = self.names.get(inode)
        return _grown(attributes, size, mtime)

    def setattr(self, inode: int, changes: Changes, size: int | None) -> Attributes:
        """Times set by the program must not be overtaken by a write that is stored later: pending ones go first."""
        if size is not None:
            _check_size(size)
        if size is not None or changes.mtime is not None:
            self.writer.flush(inode)
        attributes = None
        if size is not None:
            attributes = self.slices.truncate(inode, size)
            self.collector.wake()
            self._versions.pop(inode, None)
        if attributes is None or any(value is not None for value in changes):
            attributes = self.names.set(inode, changes)
        return self._with_pending(attributes)

    def statfs(self, inode: int = records.ROOT) -> tuple[int, int, int, int]:
        """Bytes and inodes: total and used, of the limits of the volume, or of the quota that an inode counts for."""
        quota = self.names.get(inode).quota if inode != records.ROOT else 0
        limits = self.engine.read(lambda tx: usage.limits_and_use(tx, quota)) if quota else None
        if limits is not None and limits[0].size:
            (_, size, most), (used, inodes) = limits
            return size, used, most or max(10 << 20, inodes * 2), inodes
        used, inodes = self.names.usage()
        capacity = self.limits.capacity or max(UNLIMITED, used * 2)
        limit = self.limits.inodes or max(10 << 20, inodes * 2)
        return capacity, used, limit, inodes

    def reload(self) -> None:
        """Takes over limits that `config` changed."""
        found = formats.load(self.engine)
        if found is not None:
            self.limits.capacity, self.limits.inodes = found.capacity, found.inodes
            self.limits.trash_days = found.trash_days

    def empty_trash(self) -> int:
        """Removes what is in the trash for longer than the volume keeps it; returns how many files."""
        oldest = self._now() - int(self.limits.trash_days * 86400e9)
        return trash.empty(self.engine, oldest, self.unlink)

    # Names

    def unlink(self, parent: int, name: bytes) -> None:
        self._removed(self.names.unlink(parent, name))

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int) -> None:
        removed = self.names.rename(parent, name, new_parent, new_name, flags)
        if removed is not None:
            self._removed(removed)

    def _removed(self, removed: Removed) -> None:
        inode = removed.attributes.inode
        if removed.last and not self._is_open(inode):
            self._gone(inode)

    def _gone(self, inode: int) -> None:
        self.writer.discard(inode)
        self._versions.pop(inode, None)
        self.collector.wake()

    # Open files

    def open(self, inode: int, flags: int, unique: int = 0) -> tuple[int, bool]:
        """A handle, and whether the kernel may keep the pages it has of the file."""
        attributes = self.getattr(inode)
        writable = flags & os.O_ACCMODE != os.O_RDONLY
        if attributes.is_directory and writable:
            raise fail(EISDIR)
        version = (attributes.mtime, attributes.size)
        keep = self._versions.get(inode) == version
        self._versions[inode] = version
        return self._add_handle(Handle(inode, writable), unique), keep

    def opened(self, inode: int) -> int:
        """A handle of a file that was made just now."""
        return self._add_handle(Handle(inode, True))

    def _add_handle(self, handle: Handle, unique: int = 0) -> int:
        if self._table is not None:
            known = self._table.made_for(unique)
            if known is not None and known in self._handles:
                return known
        number = next(self._next_handle)
        if self._table is not None:
            self._table.opened(number, handle.inode, handle.writable, unique)
        with self._lock:
            self._handles[number] = handle
            self._opens[handle.inode] = self._opens.get(handle.inode, 0) + 1
        return number

    def handle(self, number: int, inode: int) -> Handle:
        found = self._handles.get(number)
        return found if found is not None and found.inode == inode else Handle(inode, True)

    def release(self, number: int, inode: int) -> None:
        with self._lock:
            handle = self._handles.pop(number, None)
            if handle is None:
                return
            left = self._opens.get(inode, 1) - 1
            if left:
                self._opens[inode] = left
            else:
                self._opens.pop(inode, None)
        if self._table is not None:
            self._table.closed(number)
        if not left:
            try:
                if handle.writable:
                    self.writer.flush(inode)
            finally:
                if self.names.closed(inode):
                    self._gone(inode)

    def _is_open(self, inode: int) -> bool:
        return inode in self._opens

    def read(self, number: int, inode: int, offset: int, length: int) -> bytes:
        handle = self.handle(number, inode)
        attributes = self.getattr(inode)
        data = self._reader.read(inode, offset, length, attributes.size, handle.pattern)
        self.access_times.read(attributes)
        self.bytes_read += len(data)
        return data

    def write(self, number: int, inode: int, offset: int, data: memoryview) -> int:
        _check_size(offset + len(data))
        self.writer.write(inode, offset, data)
        self.bytes_written += len(data)
        return len(data)

    def flush(self, inode: int) -> None:
        """close(2): what was written is stored; the kernel's pages are of the version that results."""
        if self.writer.file(inode) is None:
            return
        self.writer.flush(inode)
        if self.slices.crowded:
            self.collector.wake()
        try:
            attributes = self.names.get(inode)
        except FileNotFoundError:
            return
        self._versions[inode] = (attributes.mtime, attributes.size)

    def fsync(self, inode: int) -> None:
        self.flush(inode)
        self.engine.sync()

    def fallocate(self, inode: int, mode: int, offset: int, length: int) -> None:
        _check_size(offset + length)
        self.writer.flush(inode)
        if mode & ~(FALLOC_KEEP_SIZE | FALLOC_PUNCH_HOLE | FALLOC_ZERO_RANGE):
            raise fail(EOPNOTSUPP)
        keep = bool(mode & FALLOC_KEEP_SIZE)
        if mode & (FALLOC_PUNCH_HOLE | FALLOC_ZERO_RANGE):
            self.slices.zero(inode, offset, offset + length, keep)
        elif not keep:
            self.slices.grow(inode, offset + length)
        self._versions.pop(inode, None)

    def copy(self, source: int, start: int, inode: int, target: int, length: int) -> int:
        self.writer.flush(source)
        self.writer.flush(inode)
        length = min(length, max(0, self.getattr(source).size - start))
        _check_size(target + length)
        if source == inode and start < target + length and target < start + length:
            raise fail(EINVAL)
        self._versions.pop(inode, None)
        return self.slices.copy(source, start, inode, target, length)[0]

    def lseek(self, inode: int, offset: int, whence: int) -> int:
        """SEEK_DATA and SEEK_HOLE; a chunk that was never written is a hole, everything else is data."""
        self.writer.flush(inode)
        size = self.getattr(inode).size
        if offset >= size:
            raise fail(ENXIO)
        written = self.slices.written(inode)
        chunk = offset // records.CHUNK_SIZE
        if whence == SEEK_DATA:
            later = [each for each in written if each >= chunk and each * records.CHUNK_SIZE < size]
            if not later:
                raise fail(ENXIO)
            return max(offset, min(later) * records.CHUNK_SIZE)
        while chunk in written:
            chunk += 1
        return min(size, max(offset, chunk * records.CHUNK_SIZE))

    # Locks

    def lock(self, family: bytes, inode: int, owner: int, kind: int, start: int, end: int, pid: int) -> None:
        self.locks.set(family, inode, owner, kind, start, end, pid)
        with self._lock:
            self._locked.add((family, inode, owner))

    def unlock_owner(self, inode: int, owner: int) -> None:
        """close(2) releases the POSIX locks of its process on the file."""
        self._unlock(POSIX, inode, owner)

    def unlock_flock(self, inode: int, owner: int) -> None:
        self._unlock(FLOCK, inode, owner)

    def _unlock(self, family: bytes, inode: int, owner: int) -> None:
        with self._lock:
            if (family, inode, owner) not in self._locked:
                return
            self._locked.discard((family, inode, owner))
        self.locks.set(family, inode, owner, F_UNLCK, 0, WHOLE_FILE, 0)

    # Directories

    def opendir(self, inode: int) -> int:
        handle = Handle(inode)
        handle.entries = self._list(inode)
        return self._add_handle(handle)

    def entries(self, number: int, inode: int, offset: int) -> list[Entry]:
        """The directory as it was when it was opened; rewinding reads it again."""
        handle = self.handle(number, inode)
        if handle.entries is None or offset == 0:
            handle.entries = self._list(inode)
        return handle.entries

    def attributes_of(self, inodes: list[int]) -> dict[int, Attributes]:
        """The attributes of many inodes; those that are gone are left out."""
        found = self.names.get_many(inodes)
        return {inode: self._with_pending(each) for inode, each in found.items()}

    def _list(self, inode: int) -> list[Entry]:
        parent = self.names.get(inode).parent
        return [Entry(b".", 0o040000, inode), Entry(b"..", 0o040000, parent), *self.names.entries(inode)]

    def _with_pending(self, attributes: Attributes) -> Attributes:
        file = self.writer.file(attributes.inode)
        return attributes if file is None else _grown(attributes, file.size, file.mtime)


def _grown(attributes: Attributes, size: int, mtime: int) -> Attributes:
    """Attributes as the client that writes sees them, before its writes are committed."""
    if mtime:
        attributes.size = max(attributes.size, size)
        attributes.mtime = attributes.ctime = max(attributes.mtime, mtime)
    return attributes


def _check_size(size: int) -> None:
    if size > records.MAX_FILE_SIZE:
        raise fail(EFBIG)
