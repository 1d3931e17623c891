"""Slices as objects: a slice is stored as blocks, each an object of its own that is never changed.

Reads of a part of a block ask the store for that part alone, until a pattern makes the whole block worth fetching;
a block on its way is fetched once for all readers. Failed requests are tried again with growing pauses.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from errno import EIO
from typing import TypeVar

from pybernetes.objectfs.data.cache import BlockCache
from pybernetes.objectfs.data.codec import Codec, Plain
from pybernetes.objectfs.data.pace import Pace, Paces
from pybernetes.objectfs.objects.store import ObjectMissing, ObjectRefused, ObjectStore, ObjectStoreError

log = logging.getLogger(__name__)
Result = TypeVar("Result")

ATTEMPTS = 10
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
# Whole blocks kept in memory for readers that follow each other.
MEMORY_BLOCKS = 12


def object_key(slice_id: int, index: int, size: int) -> str:
    """Where block `index` of a slice is, by the layout that JuiceFS documents."""
    return f"chunks/{slice_id // 1_000_000}/{slice_id // 1000}/{slice_id}_{index}_{size}"


class Counters:
    """Traffic to and from the store; figures for people, so a lost count between threads does not matter."""

    def __init__(self) -> None:
        self.uploaded = self.downloaded = self.errors = 0
        self.requests: dict[str, int] = {}
        self.seconds: dict[str, float] = {}

    def request(self, name: str, seconds: float) -> None:
        self.requests[name] = self.requests.get(name, 0) + 1
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


class Blocks:
    """The blocks of one volume."""

    def __init__(
        self,
        store: ObjectStore,
        block_size: int,
        cache: BlockCache | None,
        threads: int = 20,
        sleep: Callable[[float], object] = time.sleep,
        codec: Codec | None = None,
        pace: Paces | None = None,
    ) -> None:
        self._store, self.block_size, self._cache, self._sleep = store, block_size, cache, sleep
        self._codec, self._pace = codec or Plain(), pace or Paces(Pace(0), Pace(0))
        self.counters = Counters()
        self.pool = ThreadPoolExecutor(threads, "objectfs-blocks")
        self._lock = threading.Lock()
        self._whole: OrderedDict[str, Future[bytes]] = OrderedDict()

    def upload(self, slice_id: int, index: int, data: bytes) -> None:
        """Stores a block; returns when the store has it."""
        key = object_key(slice_id, index, len(data))
        encoded = self._codec.encode(data)
        self._pace.upload.take(len(encoded))
        self._attempt(key, lambda: self._store.put(key, encoded), "put")
        self.counters.uploaded += len(encoded)
        if self._cache is not None:
            self._cache.put(key.rpartition("/")[2], data)

    def read(self, slice_id: int, size: int, offset: int, length: int, whole: bool = False) -> bytes:
        """`length` bytes from `offset` of a slice of `size` bytes; `whole` fetches the blocks in full."""
        parts = []
        while length > 0:
            index, within = divmod(offset, self.block_size)
            block = min(self.block_size, size - index * self.block_size)
            count = min(length, block - within)
            if count <= 0:
                raise OSError(EIO, f"slice {slice_id} has {size} bytes, byte {offset} was asked for")
            parts.append(self._read_block(object_key(slice_id, index, block), block, within, count, whole))
            offset, length = offset + count, length - count
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def prefetch(self, slice_id: int, size: int, offset: int) -> None:
        """Starts to fetch the block that holds `offset` of a slice, if it is not near already."""
        index = offset // self.block_size
        block = min(self.block_size, size - index * self.block_size)
        key = object_key(slice_id, index, block)
        if block > 0 and not (self._cache is not None and self._cache.has(key.rpartition("/")[2])):
            self._fetch(key, block)

    def delete(self, slice_id: int, size: int) -> None:
        """Deletes all objects of a slice."""
        for index in range(-(-size // self.block_size)):
            block = min(self.block_size, size - index * self.block_size)
            key = object_key(slice_id, index, block)
            self._attempt(key, lambda key=key: self._store.delete(key), "delete")  # type: ignore[misc]
            if self._cache is not None:
                self._cache.remove(key.rpartition("/")[2])

    def close(self) -> None:
        self.pool.shutdown(wait=True)

    def _read_block(self, key: str, block: int, offset: int, count: int, whole: bool) -> bytes:
        with self._lock:
            future = self._whole.get(key)
            if future is not None:
                self._whole.move_to_end(key)
        if future is None and self._cache is not None:
            found = self._cache.get(key.rpartition("/")[2], block, offset, count)
            if found is not None:
                return found
        if future is None and not whole and count * 4 < block and self._codec.partial:
            self._pace.download.take(count)
            data = self._attempt(key, lambda: self._store.get(key, offset, count), "get")
            self.counters.downloaded += count
            return self._checked(key, data, count)
        data = (future or self._fetch(key, block)).result()
        return data if count == block else data[offset : offset + count]

    def _fetch(self, key: str, block: int) -> Future[bytes]:
        with self._lock:
            future = self._whole.get(key)
            if future is None:
                future = self._whole[key] = self.pool.submit(self._download, key, block)
                while len(self._whole) > MEMORY_BLOCKS:
                    self._whole.popitem(last=False)
        return future

    def _download(self, key: str, block: int) -> bytes:
        try:
            self._pace.download.take(block)
            data = self._attempt(key, lambda: self._decoded(key, block), "get")
            self.counters.downloaded += block
        except BaseException:
            with self._lock:
                self._whole.pop(key, None)
            raise
        if self._cache is not None:
            self._cache.put(key.rpartition("/")[2], data)
        return data

    def _decoded(self, key: str, block: int) -> bytes:
        """The block of an object; wrong bytes on the way are worth another attempt."""
        found = self._store.get(key)
        try:
            return self._checked(key, self._codec.decode(found, block), block)
        except ObjectStoreError:
            raise
        except OSError as error:
            raise ObjectStoreError(EIO, f"object {key}: {error.strerror}") from error

    def _checked(self, key: str, data: bytes, length: int) -> bytes:
        if len(data) != length:
            raise OSError(EIO, f"object {key}: {len(data)} bytes instead of {length}")
        return data

    def _attempt(self, key: str, request: Callable[[], Result], name: str) -> Result:
        pause = FIRST_PAUSE
        for attempt in range(1, ATTEMPTS + 1):
            begun = time.perf_counter()
            try:
                result = request()
                self.counters.request(name, time.perf_counter() - begun)
                return result
            except ObjectMissing:
                raise
            except ObjectRefused as error:
                self.counters.errors += 1
                raise OSError(EIO, error.strerror) from error
            except ObjectStoreError as error:
                self.counters.errors += 1
                if attempt == ATTEMPTS:
                    log.error("object %s: gave up after %d attempts: %s", key, attempt, error)
                    raise OSError(EIO, error.strerror) from error
                log.warning("object %s: attempt %d of %d failed: %s", key, attempt, ATTEMPTS, error)
            self._sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        raise AssertionError("unreachable")
