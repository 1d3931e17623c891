"""The handles that programs hold, in a file of their own, so that the successor of a killed server knows them.

The kernel does not repeat an OPEN. Without this table a successor would take a file that is still open for one that
nothing needs any more, and remove it. Records are appended to the page cache: they survive the process, and a mount
does not survive the machine.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from struct import Struct

_RECORD = Struct("<QQQB7x")
_CLOSED = 2
# The bit that the kernel sets in the number of a request that it sends again.
UNIQUE_RESEND = 1 << 63
# The file is written anew when it has so many records more than there are handles.
SLACK = 20_000


class OpenFiles:
    """Handle number -> inode and whether it is open for writing."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._lock = threading.Lock()
        self._open: dict[int, tuple[int, bool]] = {}
        self._requests: dict[int, int] = {}
        self._count = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def load(self) -> dict[int, tuple[int, bool]]:
        """Load the previous process's open files."""
        data = os.pread(self._file, os.fstat(self._file).st_size, 0)
        whole = len(data) - len(data) % _RECORD.size
        for number, inode, unique, flag in _RECORD.iter_unpack(data[:whole]):
            if flag == _CLOSED:
                self._open.pop(number, None)
            else:
                self._open[number] = inode, bool(flag)
                self._requests[unique] = number
        self._rewrite()
        return dict(self._open)

    def clear(self) -> None:
        self._open.clear()
        self._rewrite()

    def made_for(self, unique: int) -> int | None:
        """The handle that a request, sent again, has got before."""
        if not unique & UNIQUE_RESEND:
            return None
        return self._requests.pop(unique & ~UNIQUE_RESEND, None)

    def opened(self, number: int, inode: int, writable: bool, unique: int) -> None:
        with self._lock:
            self._open[number] = inode, writable
            self._append(_RECORD.pack(number, inode, unique & ~UNIQUE_RESEND, writable))

    def closed(self, number: int) -> None:
        with self._lock:
            if self._open.pop(number, None) is not None:
                self._append(_RECORD.pack(number, 0, 0, _CLOSED))

    def _append(self, record: bytes) -> None:
        os.write(self._file, record)
        self._count += 1
        if self._count > len(self._open) + SLACK:
            self._rewrite()

    def _rewrite(self) -> None:
        temporary = f"{self._path}.new"
        file = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.write(
            file, b"".join(_RECORD.pack(number, inode, 0, writable) for number, (inode, writable) in self._open.items())
        )
        os.rename(temporary, self._path)
        os.close(self._file)
        self._file, self._count = file, len(self._open)
