"""Background work: deleting the objects of removed files, and compacting chunks of many slices.

One thread, woken by a removal and once a minute, so that what a dead client left is found too. Every step is a
transaction of its own and can be repeated: a killed collector leaves at worst an object that `gc` finds.
"""

from __future__ import annotations

import logging
import threading

from pybernetes.objectfs.data.blocks import Blocks
from pybernetes.objectfs.meta import records
from pybernetes.objectfs.meta.engine import Engine, Transaction
from pybernetes.objectfs.meta.numbers import NumberPool
from pybernetes.objectfs.meta.records import Slice
from pybernetes.objectfs.meta.slices import Slices, drop_reference, resolve

log = logging.getLogger(__name__)
INTERVAL_SECONDS = 60.0
SLICES_AT_ONCE = 50


class Collector:
    """The background work of one client."""

    def __init__(self, engine: Engine, blocks: Blocks, slices: Slices, numbers: NumberPool) -> None:
        self._engine, self._blocks, self._slices = engine, blocks, slices
        self._numbers = numbers
        self._woken = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="objectfs-collector", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        self._stopped = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped:
            self._woken.wait(INTERVAL_SECONDS)
            self._woken.clear()
            if self._stopped:
                return
            try:
                self.collect()
                while self._slices.crowded and not self._stopped:
                    self.compact(*self._slices.crowded.pop())
            except Exception:
                log.exception("removing objects or compacting failed; it is tried again")

    def collect(self) -> int:
        """Deletes the objects of all removed files; returns how many files."""
        count = 0
        for key, _ in self._engine.scan(b"D"):
            if self._stopped:
                break
            self._remove_file(records.number_at(key, 1))
            count += 1
        for key, _ in self._engine.scan(b"G"):
            if self._stopped:
                break
            self._remove_slices(key)
        return count

    def _remove_file(self, inode: int) -> None:
        for key, _ in list(self._engine.scan(records.chunk_prefix(inode))):
            self._remove_slices(key)
        for key, _ in list(self._engine.scan(records.xattr_prefix(inode))):
            self._engine.transact(lambda tx, key=key: tx.delete(key))  # type: ignore[misc]
        self._engine.transact(lambda tx: tx.delete(records.removed_key(inode)))

    def _remove_slices(self, key: bytes) -> None:
        """Removes the objects of a record's slices that nothing else refers to, a few slices a transaction."""
        left = True
        while left:

            def take(tx: Transaction) -> tuple[list[Slice], bool]:
                slices = records.decode_slices(tx.get(key))
                now, later = slices[:SLICES_AT_ONCE], slices[SLICES_AT_ONCE:]
                gone = [each for each in now if each.id and drop_reference(tx, each.id)]
                if later:
                    tx.put(key, records.encode_slices(later))
                else:
                    tx.delete(key)
                return gone, bool(later)

            gone, left = self._engine.transact(take)
            for each in gone:
                self._blocks.delete(each.id, each.size)

    def compact(self, inode: int, chunk: int) -> bool:
        """Writes a chunk's content as one slice, if it consists of many."""
        old = self._slices.chunk(inode, chunk)
        if len(old) < 2:
            return False
        start = min(each.position for each in old)
        end = max(each.position + each.length for each in old)
        parts = [
            self._blocks.read(piece.id, piece.size, piece.offset, piece.length, whole=True)
            if piece.id
            else bytes(piece.length)
            for piece in resolve(old, start, end)
        ]
        data, size = b"".join(parts), self._blocks.block_size
        slice_id = self._numbers.take()
        uploads = [
            self._blocks.pool.submit(self._blocks.upload, slice_id, index, data[index * size : (index + 1) * size])
            for index in range(-(-len(data) // size))
        ]
        for upload in uploads:
            upload.result()
        if not self._slices.replace(inode, chunk, old, Slice(start, slice_id, len(data), 0, len(data))):
            self._blocks.delete(slice_id, len(data))
            return False
        self.wake()
        return True
