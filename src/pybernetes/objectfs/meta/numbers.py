"""Numbers for inodes and slices, reserved in batches so that a transaction an operation is not needed."""

from __future__ import annotations

import threading

from pybernetes.objectfs.meta import records
from pybernetes.objectfs.meta.engine import Engine

# What a killed client loses: numbers, of 2^63.
BATCH = 1024


class NumberPool:
    """Numbers of one counter that no other client has."""

    def __init__(self, engine: Engine, counter: bytes) -> None:
        self._engine, self._counter = engine, counter
        self._lock = threading.Lock()
        self._next = self._end = 0

    def take(self) -> int:
        with self._lock:
            if self._next == self._end:
                self._next = self._engine.transact(lambda tx: records.take_numbers(tx, self._counter, BATCH))
                self._end = self._next + BATCH
            self._next += 1
            return self._next - 1
