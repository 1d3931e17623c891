"""Writes that wait for their upload: each is a slice in a staging file on the local disk until it is committed.

A program's write returns when its bytes are in the staging file (the kernel's page cache), so they survive the death of
this process: `recover` takes up what a predecessor left. Full blocks are uploaded while the slice still grows; `flush`
uploads the rest and commits the slices of a file in the order in which they were begun, so that the newest wins.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from errno import EIO, ENOSPC
from pathlib import Path

from pybernetes.objectfs.data.blocks import Blocks
from pybernetes.objectfs.meta.numbers import NumberPool
from pybernetes.objectfs.meta.records import CHUNK_SIZE, Slice
from pybernetes.objectfs.meta.slices import Slices, Written, chunks

log = logging.getLogger(__name__)
# A write may go on with one of so many slices; more open ones are flushed.
MAX_PENDING = 128
# Slices that one transaction commits.
COMMIT_SLICES = 50
# Bytes that a file may have waiting before a write waits for uploads.
MAX_PENDING_BYTES = 256 << 20
# A full disk is logged so often.
FULL_SECONDS = 60.0


class PendingSlice:
    """A slice that is not committed. Bytes before `uploaded` are immutable: they are on their way."""

    __slots__ = ("chunk", "file", "id", "length", "path", "position", "uploaded", "uploads")

    def __init__(self, chunk: int, position: int, slice_id: int, path: str, file: int, length: int = 0) -> None:
        self.chunk, self.position, self.id, self.path, self.file = chunk, position, slice_id, path, file
        self.length, self.uploaded = length, 0
        self.uploads: list[Future[None]] = []

    @property
    def start(self) -> int:
        return self.chunk * CHUNK_SIZE + self.position

    @property
    def end(self) -> int:
        return self.start + self.length


class FileWriter:
    """The pending slices of one file, oldest first. Its lock is held for short work only, `flushing` for uploads."""

    def __init__(self, inode: int) -> None:
        self.inode = inode
        self.lock = threading.Lock()
        self.flushing = threading.Lock()
        self.pending: list[PendingSlice] = []
        self.size = 0
        self.mtime = 0
        # A slice that was lost for good is reported by the next fsync or close, once.
        self.error: OSError | None = None


class Writer:
    """All files that are being written by this client."""

    def __init__(
        self, folder: Path, blocks: Blocks, slices: Slices, numbers: NumberPool, now: Callable[[], int]
    ) -> None:
        self._folder, self._blocks, self._slices = str(folder), blocks, slices
        self._numbers, self._now = numbers, now
        self._lock = threading.Lock()
        self._files: dict[int, FileWriter] = {}
        self._sequence = itertools.count(1)
        self._full_said = -FULL_SECONDS
        os.makedirs(self._folder, exist_ok=True)

    def file(self, inode: int) -> FileWriter | None:
        """The file's writer, if something of it is pending."""
        return self._files.get(inode)

    def inodes(self) -> list[int]:
        return list(self._files)

    def write(self, inode: int, offset: int, data: bytes | memoryview) -> None:
        """Puts data into the file's newest slice where it goes on, else into a new one.

        When the local disk is full, everything that waits is stored first, which gives its space back.
        """
        try:
            self._write(inode, offset, data)
        except OSError as error:
            if error.errno != ENOSPC:
                raise
            self._make_room()
            self._write(inode, offset, data)

    def _make_room(self) -> None:
        with self._lock:
            now, said = time.monotonic(), self._full_said
            if now - said > FULL_SECONDS:
                self._full_said = now
        if now - said > FULL_SECONDS:
            log.warning("the disk of %s is full: writes wait for the object store", self._folder)
        for each in self.inodes():
            self.flush(each)

    def _write(self, inode: int, offset: int, data: bytes | memoryview) -> None:
        while True:
            with self._lock:
                file = self._files.get(inode)
                if file is None:
                    file = self._files[inode] = FileWriter(inode)
            file.lock.acquire()
            if self._files.get(inode) is file:
                break
            # A flush has just emptied and removed it.
            file.lock.release()
        view, done = memoryview(data), 0
        try:
            for chunk, low, high in chunks(offset, offset + len(view)):
                piece = view[done : done + high - low]
                done += high - low
                self._write_piece(file, chunk, low, piece)
            file.size = max(file.size, offset + len(view))
            file.mtime = self._now()
            waiting = sum(each.length for each in file.pending)
        finally:
            file.lock.release()
        if len(file.pending) > MAX_PENDING or waiting > MAX_PENDING_BYTES:
            self.flush(inode)

    def flush(self, inode: int) -> None:
        """Uploads and commits everything pending of a file; raises what keeps it from being stored."""
        file = self._files.get(inode)
        if file is None:
            return
        with file.flushing:
            with file.lock:
                batch, mtime = list(file.pending), file.mtime
                for each in batch:
                    self._upload(each, everything=True)
                # Later writes begin new slices: these are complete.
                error, file.error = file.error, None
            if batch:
                self._commit(file, batch, mtime)
            with self._lock, file.lock:
                if not file.pending and self._files.get(inode) is file:
                    del self._files[inode]
        if error is not None:
            raise error

    def discard(self, inode: int) -> None:
        """Drops what is pending of a removed file."""
        with self._lock:
            file = self._files.pop(inode, None)
        if file is not None:
            with file.flushing, file.lock:
                for each in file.pending:
                    _finish(each)
                file.pending.clear()

    def pending(self, inode: int, chunk: int) -> list[Slice]:
        """The slices of a chunk that are not committed, oldest first. Ask before the metadata: a slice that is
        committed meanwhile is then in both, never in neither."""
        file = self._files.get(inode)
        if file is None:
            return []
        with file.lock:
            return [
                Slice(each.position, each.id, each.length, 0, each.length)
                for each in file.pending
                if each.chunk == chunk
            ]

    def read(self, inode: int, slice_id: int, offset: int, length: int) -> bytes | None:
        """Bytes of a pending slice, or None if it is committed by now."""
        file = self._files.get(inode)
        if file is None:
            return None
        with file.lock:
            for each in file.pending:
                if each.id == slice_id:
                    return os.pread(each.file, length, offset)
        return None

    def recover(self) -> list[int]:
        """Takes up the staging files that an earlier client of this folder left; returns the inodes they belong to."""
        newest = 0
        for name in sorted(os.listdir(self._folder), key=_sequence_of):
            path = f"{self._folder}/{name}"
            try:
                sequence, inode, chunk, position, slice_id = map(int, name.split("-"))
            except ValueError:
                log.warning("staging: %s is not ours; it stays", path)
                continue
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            pending = PendingSlice(chunk, position, slice_id, path, file, os.fstat(file).st_size)
            newest = max(newest, sequence)
            if pending.length == 0:
                _finish(pending)
                continue
            writer = self._files.setdefault(inode, FileWriter(inode))
            writer.pending.append(pending)
            writer.size, writer.mtime = max(writer.size, pending.end), os.stat(path).st_mtime_ns
        self._sequence = itertools.count(newest + 1)
        return list(self._files)

    def _write_piece(self, file: FileWriter, chunk: int, low: int, piece: memoryview) -> None:
        target = self._find(file, chunk, low, low + len(piece))
        if target is None:
            target = self._begin(file, chunk, low)
        within = low - target.position
        try:
            while piece:
                count = os.pwrite(target.file, piece, within)
                piece, within = piece[count:], within + count
        except OSError:
            # Nothing of a failed write is part of the file.
            os.ftruncate(target.file, target.length)
            if target.length == 0:
                file.pending.remove(target)
                _finish(target)
            raise
        target.length = max(target.length, within)
        self._upload(target, everything=False)

    def _find(self, file: FileWriter, chunk: int, low: int, high: int) -> PendingSlice | None:
        """The slice that may take these bytes: it ends where they begin or has them, and no newer one has any."""
        for each in reversed(file.pending[-8:]):
            if each.chunk != chunk:
                continue
            begin, end = each.position, each.position + each.length
            sealed = bool(each.uploads) and each.uploads[-1] is _SEALED
            if not sealed and begin + each.uploaded <= low <= end:
                return each
            if low < end and begin < high:
                return None
        return None

    def _begin(self, file: FileWriter, chunk: int, low: int) -> PendingSlice:
        sequence = next(self._sequence)
        slice_id = self._numbers.take()
        path = f"{self._folder}/{sequence}-{file.inode}-{chunk}-{low}-{slice_id}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        made = PendingSlice(chunk, low, slice_id, path, handle)
        file.pending.append(made)
        return made

    def _upload(self, each: PendingSlice, everything: bool) -> None:
        """Starts the upload of the blocks that are full, or of all."""
        size = self._blocks.block_size
        if each.uploads and each.uploads[-1] is _SEALED:
            return
        while each.length - each.uploaded >= size or (everything and each.uploaded < each.length):
            count = min(size, each.length - each.uploaded)
            each.uploads.append(
                self._blocks.pool.submit(self._upload_block, each, each.uploaded // size, each.uploaded, count)
            )
            each.uploaded += count
        if everything:
            each.uploads.append(_SEALED)

    def _upload_block(self, each: PendingSlice, index: int, offset: int, count: int) -> None:
        data = os.pread(each.file, count, offset)
        if len(data) != count:
            raise OSError(EIO, f"staging file {each.path} is short")
        self._blocks.upload(each.id, index, data)

    def _commit(self, file: FileWriter, batch: list[PendingSlice], mtime: int) -> None:
        for each in batch:
            try:
                for upload in each.uploads:
                    upload.result()
            except OSError:
                # The bytes stay in the staging file; the next flush tries again.
                each.uploads, each.uploaded = [], 0
                for other in batch:
                    if other is not each:
                        _settle(other)
                raise
        while batch:
            group, batch = batch[:COMMIT_SLICES], batch[COMMIT_SLICES:]
            written = [Written(each.chunk, each.position, each.id, each.length) for each in group]
            try:
                self._slices.commit(file.inode, written, mtime)
            except FileNotFoundError:
                log.info("inode %d was removed while it was written; its data is dropped", file.inode)
            with file.lock:
                del file.pending[: len(group)]
            for each in group:
                _finish(each)


_SEALED: Future[None] = Future()
_SEALED.set_result(None)


def _settle(each: PendingSlice) -> None:
    """Waits for what was begun, so that a new attempt meets no old one, and lets the slice be uploaded again."""
    for upload in each.uploads:
        upload.exception()
    each.uploads, each.uploaded = [], 0


def _finish(each: PendingSlice) -> None:
    for upload in each.uploads:
        upload.exception()
    os.close(each.file)
    try:
        os.unlink(each.path)
    except FileNotFoundError:
        pass


def _sequence_of(name: str) -> int:
    number = name.partition("-")[0]
    return int(number) if number.isdigit() else 0
