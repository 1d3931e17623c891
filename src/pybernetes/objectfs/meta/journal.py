"""The last change that each thread of a client has made, so that a successor does not make it again.

A request that was not answered when its server died is sent again by the kernel, with the same number. Most requests
may be handled twice. Those that may not (create, link, unlink, rename and their like) write a record in the transaction
that makes the change; a thread's next change overwrites it, when the answer was given. `Journal.redo` finds the
record of a request that was sent again.
"""

from __future__ import annotations

import threading
from struct import Struct

from pybernetes.objectfs.meta import records
from pybernetes.objectfs.meta.engine import Engine, Transaction

# The kernel's number of the request, and the inode that it made.
_RECORD = Struct("<QQ")
_SLOT = Struct(">H")


class Journal:
    """The records of one session. A thread that has begun no request writes none."""

    def __init__(self, engine: Engine, session: int) -> None:
        self._engine, self._prefix = engine, records.journal_prefix(session)
        self._local = threading.local()
        self._lock = threading.Lock()
        self._free: list[int] = []
        self._count = self._kept = 0
        self._done: dict[int, int] = {}

    def load(self) -> None:
        """Reads what the predecessor had done; its slots are not used again."""
        for key, value in self._engine.scan(self._prefix):
            unique, inode = _RECORD.unpack(value)
            self._done[unique] = inode
            self._count = max(self._count, _SLOT.unpack_from(key, len(self._prefix))[0] + 1)
        self._kept = self._count

    def redo(self, unique: int) -> int | None:
        """The inode that a request made (0: none) if it was handled before, else None."""
        return self._done.pop(unique, None)

    def settle(self) -> None:
        """Long enough after a takeover: everything sent again was handled, and the predecessor's slots are free."""
        if self._kept:
            with self._lock:
                self._done.clear()
                self._free += range(self._kept)
                self._kept = 0

    def begin(self, unique: int) -> None:
        """This thread handles a request that must not be handled twice."""
        slot = getattr(self._local, "slot", None)
        if slot is None:
            with self._lock:
                if self._free:
                    slot = self._free.pop()
                else:
                    slot, self._count = self._count, self._count + 1
            self._local.slot = slot
        self._local.unique = unique

    def end(self) -> None:
        self._local.unique = 0

    def leave(self) -> None:
        """This thread ends: another may have its slot."""
        slot = getattr(self._local, "slot", None)
        if slot is not None:
            with self._lock:
                self._free.append(slot)
            del self._local.slot

    def record(self, tx: Transaction, inode: int = 0) -> None:
        """Says in the transaction of a change that it was made."""
        unique = getattr(self._local, "unique", 0)
        if unique:
            tx.put(self._prefix + _SLOT.pack(self._local.slot), _RECORD.pack(unique, inode))
