"""Reads: from the slices of the metadata and those still pending here, with read-ahead for readers that go on."""

from __future__ import annotations

from errno import EIO

from pybernetes.objectfs.data.blocks import Blocks
from pybernetes.objectfs.data.writer import Writer
from pybernetes.objectfs.meta.records import CHUNK_SIZE, Slice
from pybernetes.objectfs.meta.slices import Piece, Slices, chunks, resolve
from pybernetes.objectfs.objects.store import ObjectMissing

# Blocks fetched ahead of a reader that reads on, once it has read so many bytes in sequence.
READ_AHEAD_BLOCKS = 4
SEQUENTIAL_BYTES = 256 << 10


class ReadPattern:
    """Where one open file was read last, to tell readers that go on from those that jump."""

    __slots__ = ("end", "run")

    def __init__(self) -> None:
        self.end, self.run = 0, 0

    def sequential(self, offset: int, length: int) -> bool:
        """Notes a read. The kernel's own read-ahead reorders a little, so nearly the end is the end."""
        self.run = self.run + length if abs(offset - self.end) <= 2 << 20 else length
        self.end = offset + length
        return self.run >= SEQUENTIAL_BYTES


class Reader:
    """Reads files of one volume."""

    def __init__(self, blocks: Blocks, slices: Slices, writer: Writer) -> None:
        self._blocks, self._slices, self._writer = blocks, slices, writer

    def read(self, inode: int, offset: int, length: int, size: int, pattern: ReadPattern) -> bytes:
        """Up to `length` bytes of a file of `size` bytes."""
        end = min(offset + length, size)
        if offset >= end:
            return b""
        sequential = pattern.sequential(offset, end - offset)
        parts = [
            part
            for chunk, low, high in chunks(offset, end)
            for part in self._chunk(inode, chunk, low, high, sequential)
        ]
        if sequential:
            self._read_ahead(inode, end, size)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _chunk(self, inode: int, chunk: int, low: int, high: int, whole: bool) -> list[bytes]:
        missing: list[Slice] | None = None
        while True:
            slices, pending = self._slices_of(inode, chunk)
            if slices == missing:
                raise OSError(EIO, f"inode {inode}: an object of chunk {chunk} is missing")
            try:
                parts = self._parts(inode, resolve(slices, low, high), pending, whole)
            except ObjectMissing:
                # Compacted or cut meanwhile: the metadata names other slices now, or the object is lost.
                missing = slices
                continue
            if parts is not None:
                return parts
            # A slice was committed between the two looks: it is in the metadata now.

    def _parts(self, inode: int, pieces: list[Piece], pending: set[int], whole: bool) -> list[bytes] | None:
        parts = []
        for piece in pieces:
            if piece.id == 0:
                parts.append(bytes(piece.length))
            elif piece.id not in pending:
                parts.append(self._blocks.read(piece.id, piece.size, piece.offset, piece.length, whole))
            else:
                data = self._writer.read(inode, piece.id, piece.offset, piece.length)
                if data is None:
                    return None
                parts.append(data)
        return parts

    def _slices_of(self, inode: int, chunk: int) -> tuple[list[Slice], set[int]]:
        """A chunk's slices with the pending ones on top, and the ids of those that are only here."""
        pending = self._writer.pending(inode, chunk)
        slices = self._slices.chunk(inode, chunk)
        if pending:
            known = {each.id for each in slices}
            pending = [each for each in pending if each.id not in known]
        return slices + pending, {each.id for each in pending}

    def _read_ahead(self, inode: int, start: int, size: int) -> None:
        step = self._blocks.block_size
        for place in range(start - start % step + step, min(size, start + READ_AHEAD_BLOCKS * step), step):
            chunk, within = divmod(place, CHUNK_SIZE)
            slices, pending = self._slices_of(inode, chunk)
            for piece in resolve(slices, within, within + 1):
                if piece.id and piece.id not in pending:
                    self._blocks.prefetch(piece.id, piece.size, piece.offset)
