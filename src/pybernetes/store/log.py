"""The log in front of the database: writes are durable here, and reach the database in bulk.

SQLite has a log of its own, but a write that comes alone pays for it: 13 system calls and three pages, 12 KB, for one
row of 2 KB. Here it is one call and the row: one client who creates pods one after another gets an eighth more done.

A record is one batch: length, checksum, the revision before it, rows in MessagePack. Two files are written in turn:
while one is being copied into the database, the other takes what comes. A file begins anew when all it holds is there.
How much that is, is noted in the same transaction; so whatever moment the power fails at, what counts is the records
behind that mark, and each of them names the one before it:

- Records are written one after another, each when the one before it is on disk. So one that is torn was the last, and
  it was never acknowledged. Where one is missing in the middle, the disk has lost something, and the file is refused.
- What an earlier turn left behind the last record is before the mark.
- The checksum begins with the database's identity: a log that lies beside another database is not read.
- Files are laid out with zeros and not shortened: overwriting blocks that exist costs the disk less than growing a file
  (`fdatasync` of 16 KB on one ext4 machine: 103 us against 195 us). Zeros are no record.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

Row = tuple[int, str, int, bool, float | None, bytes | None]
"""revision, key, previous, deleted, expires, value"""

FILL = 4 << 20
"""Bytes laid out before the first record, a few ms."""
LIMIT = 64 << 20
"""Bytes: a file that became longer is cut when it begins anew."""

_HEAD = struct.Struct("<IIQ")  # length, checksum, the revision before
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Row]).decode


class Damaged(Exception):
    """Records are missing; says where."""


class Log:
    """The two files beside the database at `path`. Raises OSError where the disk does."""

    def __init__(self, path: str, identity: bytes) -> None:
        self._paths = [f"{path}-log0", f"{path}-log1"]
        self._seed = zlib.crc32(identity)
        self._files = [-1, -1]
        self._sizes = [0, 0]
        """Where the records end in each file; 0 if the database has all of them."""
        self._turn = 0
        self._last = 0
        self.descriptor = -1
        """The descriptor of the file being written, to be synced after an append."""

    @property
    def size(self) -> int:
        """How many bytes of records there are, those aside that are known to be in the database as whole files."""
        return sum(self._sizes)

    def read(self, folded: int, sync: Callable[[int], None] = os.fdatasync) -> list[Row]:
        """The rows behind revision `folded`, which is what the database holds, made durable by `sync`. Raises Damaged.

        New records go on behind them. Their writer may have died before its own sync, and they are shown from now on.
        """
        records = [(after, which, end, rows) for which in (0, 1) for after, end, rows in self._records(which)]
        found: list[Row] = []
        self._last = folded
        for after, which, end, rows in sorted(records, key=lambda record: record[0]):
            if rows[-1][0] <= self._last:
                continue
            if after > self._last:
                raise Damaged(f"what its log holds goes on behind revision {after} and not {self._last}")
            found += [row for row in rows if row[0] > self._last]
            self._last = rows[-1][0]
            self._turn = which
            self._sizes[which] = end
        for which in (0, 1):
            if self._sizes[which]:
                with open(self._paths[which], "rb") as file:
                    sync(file.fileno())
        return found

    def open(self) -> None:
        """Make the file that is written now; the caller syncs the folder."""
        self._lay_out(self._turn)
        self.descriptor = os.dup(self._files[self._turn])

    def lay_out(self) -> None:
        """Make the file that is written next, if it can begin anew; the caller syncs the folder."""
        other = 1 - self._turn
        if not self._sizes[other]:
            self._lay_out(other)

    def _lay_out(self, which: int) -> None:
        if self._files[which] < 0:
            self._files[which] = os.open(self._paths[which], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        file = self._files[which]
        size = os.fstat(file).st_size
        if size > LIMIT and not self._sizes[which]:
            os.ftruncate(file, FILL)
        elif size < FILL:
            with contextlib.suppress(OSError):  # A full disk is reported by the next append.
                if os.pwrite(file, bytes(FILL - size), size) < FILL - size:
                    os.ftruncate(file, size)  # What room there is others need more.
                os.fdatasync(file)

    def append(self, rows: Sequence[Row]) -> None:
        """Write a record. It is durable after a sync of `descriptor`."""
        body = _encode(rows)
        head = _HEAD.pack(len(body), self._sum(self._last, body), self._last)
        written = os.pwritev(self.descriptor, (head, body), self._sizes[self._turn])
        if written != _HEAD.size + len(body):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._sizes[self._turn] += written
        self._last = rows[-1][0]

    def turn(self) -> None:
        """Write to the other file from now on, if the database has all of it. No sync is under way."""
        other = 1 - self._turn
        if not self._sizes[other] and self._files[other] >= 0:
            os.dup2(self._files[other], self.descriptor, inheritable=False)
            self._turn = other

    def folded(self) -> None:
        """The database has all that was written before the last turn."""
        self._sizes[1 - self._turn] = 0

    def probe(self, size: int) -> None:
        """Fail as a record of `size` bytes would."""
        end = self._sizes[self._turn]
        if os.pwrite(self.descriptor, bytes(size), end) != size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self, remove: bool) -> None:
        """Free the files; `remove` them if the database has everything."""
        for file in (*self._files, self.descriptor):
            if file >= 0:
                os.close(file)
        self._files, self.descriptor = [-1, -1], -1
        if remove:
            for path in self._paths:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)

    def _records(self, which: int) -> Iterator[tuple[int, int, list[Row]]]:
        """The revision before it, where it ends, its rows."""
        try:
            with open(self._paths[which], "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return
        end = 0
        while end + _HEAD.size <= len(content):
            length, checksum, after = _HEAD.unpack_from(content, end)
            begin = end + _HEAD.size
            end = begin + length
            body = content[begin:end]
            if not length or self._sum(after, body) != checksum:
                return
            yield after, end, _decode(body)

    def _sum(self, after: int, body: bytes) -> int:
        return zlib.crc32(body, zlib.crc32(after.to_bytes(8, "little"), self._seed))
