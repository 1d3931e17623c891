"""The content of files as lists of slices: committing writes, resolving reads, truncating, sharing, replacing.

`resolve` is pure: from a chunk's slices, oldest first, it says which bytes of which slice a range consists of.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from errno import EISDIR, EPERM
from typing import NamedTuple

from pybernetes.objectfs.meta import records, usage
from pybernetes.objectfs.meta.engine import Engine, Transaction
from pybernetes.objectfs.meta.records import CHUNK_SIZE, Attributes, Slice, fail
from pybernetes.objectfs.meta.usage import Limits, charge

# A chunk of more slices is slow to read.
MANY_SLICES = 64
# What one transaction changes at most, so that it fits every engine.
STEP_CHUNKS = 32
COPY_PIECES = 24


class Piece(NamedTuple):
    """`length` bytes of a read, from `offset` of slice `id` (0: zeros)."""

    id: int
    size: int
    offset: int
    length: int


class Written(NamedTuple):
    """A slice that was uploaded and is to be committed."""

    chunk: int
    position: int
    id: int
    length: int


def resolve(slices: list[Slice], start: int, end: int) -> list[Piece]:
    """The pieces that fill `start` to `end` of a chunk: for each byte the newest slice that has it, else zeros."""
    found: list[tuple[int, Piece]] = []
    gaps = [(start, end)]
    for each in reversed(slices):
        if not gaps:
            break
        first, last = each.position, each.position + each.length
        left = []
        for low, high in gaps:
            if last <= low or first >= high:
                left.append((low, high))
                continue
            begin, stop = max(low, first), min(high, last)
            found.append((begin, Piece(each.id, each.size, each.offset + begin - first, stop - begin)))
            if low < begin:
                left.append((low, begin))
            if stop < high:
                left.append((stop, high))
        gaps = left
    found += [(low, Piece(0, 0, 0, high - low)) for low, high in gaps]
    found.sort()
    return [piece for _, piece in found]


class Slices:
    """The contents of the files of one volume."""

    def __init__(self, engine: Engine, now: Callable[[], int], limits: Limits | None = None) -> None:
        self._engine, self._now, self._limits = engine, now, limits
        # Chunks (inode, number) with so many slices that the collector should make one of them.
        self.crowded: set[tuple[int, int]] = set()

    def chunk(self, inode: int, chunk: int) -> list[Slice]:
        return self._engine.read(lambda tx: records.decode_slices(tx.get(records.chunk_key(inode, chunk))))

    def written(self, inode: int) -> set[int]:
        """The numbers of the chunks that are not holes."""
        return {records.chunk_of(key) for key, _ in self._engine.scan(records.chunk_prefix(inode))}

    def commit(self, inode: int, written: Iterable[Written], mtime: int) -> Attributes:
        """Adds uploaded slices to a file, in order, and lets it grow to their end."""

        written = list(written)
        wanted = [records.inode_key(inode), *{records.chunk_key(inode, each.chunk) for each in written}]

        def add(tx: Transaction) -> Attributes:
            tx.get_many([*wanted, *usage.stripe_keys(tx, 0)])
            attributes = records.load(tx, inode)
            end = attributes.size
            for each in written:
                key = records.chunk_key(inode, each.chunk)
                added = records.encode_slices([Slice(each.position, each.id, each.length, 0, each.length)])
                before = tx.get(key) or b""
                if added in before:
                    continue  # an earlier attempt was committed, only its answer was lost
                tx.put(key, before + added)
                if len(before) > MANY_SLICES * len(added):
                    self.crowded.add((inode, each.chunk))
                end = max(end, each.chunk * CHUNK_SIZE + each.position + each.length)
            self._resize(tx, attributes, end)
            attributes.mtime = attributes.ctime = mtime
            records.store(tx, attributes)
            return attributes

        return self._engine.transact(add)

    def truncate(self, inode: int, size: int) -> Attributes:
        """Sets the size: what is cut off reads as zeros if the file grows again. From the end, in steps that keep
        transactions small; only the last one gives the size that was asked for."""
        while True:
            attributes = self._engine.transact(lambda tx: self._cut(tx, inode, size))
            if attributes.size == size:
                return attributes

    def _cut(self, tx: Transaction, inode: int, size: int) -> Attributes:
        attributes = records.load(tx, inode)
        if not attributes.is_file:
            raise fail(EISDIR if attributes.is_directory else EPERM)
        step = size
        if size < attributes.size:
            # Who adds a chunk changes the inode too, so a glance is enough.
            written = sorted({records.chunk_of(key) for key, _ in tx.glance(records.chunk_prefix(inode))})
            beyond = [chunk for chunk in written if chunk * CHUNK_SIZE >= size]
            taken = beyond[-STEP_CHUNKS:]
            if len(taken) < len(beyond):
                step = taken[0] * CHUNK_SIZE
            tx.get_many(records.chunk_key(inode, chunk) for chunk in taken)
            for chunk in taken:
                cut_off(tx, inode, chunk)
            if step == size and size // CHUNK_SIZE in written and size % CHUNK_SIZE:
                end = min(attributes.size, (size // CHUNK_SIZE + 1) * CHUNK_SIZE)
                _zero(tx, inode, size // CHUNK_SIZE, size % CHUNK_SIZE, end - size // CHUNK_SIZE * CHUNK_SIZE)
        self._resize(tx, attributes, step)
        attributes.mtime = attributes.ctime = self._now()
        records.store(tx, attributes)
        return attributes

    def zero(self, inode: int, start: int, end: int, keep_size: bool) -> Attributes:
        """Makes a range read as zeros (fallocate: punch hole, zero range)."""
        if not keep_size:
            self.grow(inode, end)
        place = start
        while True:
            attributes, place = self._engine.transact(lambda tx, at=place: self._zero_some(tx, inode, at, end))  # type: ignore[misc]
            if place >= end:
                return attributes

    def _zero_some(self, tx: Transaction, inode: int, start: int, end: int) -> tuple[Attributes, int]:
        """Zeros in as many written chunks as one transaction takes; returns where to go on."""
        attributes = records.load(tx, inode)
        stop = min(end, attributes.size)
        written = sorted({records.chunk_of(key) for key, _ in tx.glance(records.chunk_prefix(inode))})
        wanted = [chunk for chunk in written if max(start, chunk * CHUNK_SIZE) < min(stop, (chunk + 1) * CHUNK_SIZE)]
        taken = wanted[:STEP_CHUNKS]
        tx.get_many(records.chunk_key(inode, chunk) for chunk in taken)
        for chunk in taken:
            low, high = max(start, chunk * CHUNK_SIZE), min(stop, (chunk + 1) * CHUNK_SIZE)
            _zero(tx, inode, chunk, low - chunk * CHUNK_SIZE, high - chunk * CHUNK_SIZE)
        attributes.mtime = attributes.ctime = self._now()
        records.store(tx, attributes)
        return attributes, (taken[-1] + 1) * CHUNK_SIZE if len(taken) < len(wanted) else end

    def grow(self, inode: int, size: int) -> Attributes:
        """Lets a file grow to `size` at least (fallocate without a mode)."""
        now = self._now()

        def change(tx: Transaction) -> Attributes:
            attributes = records.load(tx, inode)
            if size > attributes.size:
                self._resize(tx, attributes, size)
                attributes.mtime = attributes.ctime = now
                records.store(tx, attributes)
            return attributes

        return self._engine.transact(change)

    def copy(self, source: int, start: int, inode: int, target: int, length: int) -> tuple[int, Attributes]:
        """copy_file_range: the target shares the source's slices. Returns the bytes copied, which may be fewer, and
        the target."""
        now = self._now()

        def share(tx: Transaction) -> tuple[int, Attributes]:
            count = max(0, min(length, records.load(tx, source).size - start))
            attributes = records.load(tx, inode)
            pieces: list[Piece] = []
            for chunk, low, high in chunks(start, start + count):
                pieces += resolve(records.decode_slices(tx.get(records.chunk_key(source, chunk))), low, high)
            place = target
            for piece in pieces[:COPY_PIECES]:
                offset, left = piece.offset, piece.length
                for chunk, low, high in chunks(place, place + left):
                    key = records.chunk_key(inode, chunk)
                    added = Slice(low, piece.id, piece.size, offset if piece.id else 0, high - low)
                    tx.put(key, (tx.get(key) or b"") + records.encode_slices([added]))
                    if piece.id:
                        add_reference(tx, piece.id)
                        offset += high - low
                place += left
            self._resize(tx, attributes, max(attributes.size, place))
            attributes.mtime = attributes.ctime = now
            records.store(tx, attributes)
            return place - target, attributes

        return self._engine.transact(share)

    def clone(self, source: int, inode: int) -> None:
        """Lets an empty file share all slices of another, a chunk a transaction."""
        for key, _ in list(self._engine.scan(records.chunk_prefix(source))):

            def share(tx: Transaction, key: bytes = key) -> None:
                slices = records.decode_slices(tx.get(key))
                target = records.chunk_key(inode, records.chunk_of(key))
                if tx.get(target) is not None:
                    return
                tx.put(target, records.encode_slices(slices))
                for number in {each.id for each in slices if each.id}:
                    count = sum(each.id == number for each in slices)
                    add_reference(tx, number, count)

            self._engine.transact(share)

        def finish(tx: Transaction) -> None:
            attributes, model = records.load(tx, inode), records.load(tx, source)
            self._resize(tx, attributes, model.size)
            attributes.atime, attributes.mtime = model.atime, model.mtime
            records.store(tx, attributes)

        self._engine.transact(finish)

    def replace(self, inode: int, chunk: int, old: list[Slice], new: Slice) -> bool:
        """Compaction: `new` takes the place of the oldest slices `old`, which the collector removes. False if the
        chunk has changed meanwhile in its old part."""

        def change(tx: Transaction) -> bool:
            key = records.chunk_key(inode, chunk)
            value, head = tx.get(key) or b"", records.encode_slices(old)
            if not value.startswith(head):
                return False
            tx.put(key, records.encode_slices([new]) + value[len(head) :])
            tx.put(records.cut_key(inode, chunk, os.urandom(4)), head)
            return True

        return self._engine.transact(change)

    def _resize(self, tx: Transaction, attributes: Attributes, size: int) -> None:
        before = records.space(attributes)
        attributes.size = size
        charge(tx, attributes.quota, records.space(attributes) - before, 0, self._limits)


def chunks(start: int, end: int) -> Iterable[tuple[int, int, int]]:
    """The chunks that a range touches, with the range inside of each."""
    while start < end:
        chunk = start // CHUNK_SIZE
        stop = min(end, (chunk + 1) * CHUNK_SIZE)
        yield chunk, start - chunk * CHUNK_SIZE, stop - chunk * CHUNK_SIZE
        start = stop


def add_reference(tx: Transaction, slice_id: int, count: int = 1) -> None:
    key = records.references_key(slice_id)
    tx.put(key, (int.from_bytes(tx.get(key) or b"", "little") + count).to_bytes(8, "little"))


def drop_reference(tx: Transaction, slice_id: int) -> bool:
    """True when it was the last reference, so that the slice's objects may go."""
    key = records.references_key(slice_id)
    count = int.from_bytes(tx.get(key) or b"", "little")
    if count == 0:
        return True
    if count == 1:
        tx.delete(key)
    else:
        tx.put(key, (count - 1).to_bytes(8, "little"))
    return False


def cut_off(tx: Transaction, inode: int, chunk: int) -> None:
    """Takes a chunk from its file; the collector removes its objects."""
    key = records.chunk_key(inode, chunk)
    value = tx.get(key)
    if value is not None:
        tx.delete(key)
        tx.put(records.cut_key(inode, chunk, os.urandom(4)), value)


def _zero(tx: Transaction, inode: int, chunk: int, low: int, high: int) -> None:
    """Lays a slice of zeros over a part of a chunk that was written."""
    key = records.chunk_key(inode, chunk)
    tx.put(key, (tx.get(key) or b"") + records.encode_slices([Slice(low, 0, 0, 0, high - low)]))
