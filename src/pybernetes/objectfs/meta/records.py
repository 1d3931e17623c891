"""The keys and values of the metadata database, and the functions that load and store them in a transaction.

    A<inode>I          attributes               A<inode>D<name>   directory entry: type and inode
    A<inode>C<chunk>   slices of a chunk        A<inode>S         target of a symbolic link
    A<inode>X<name>    extended attribute       D<inode>          removed file whose objects are still there
    K<slice>           references to a slice beyond the first (copies share slices)
    F<inode>, L<inode> flock and POSIX locks    SE/SI/SS          sessions: heartbeat, information, open removed files
    CI, CS, CN, CQ     next inode, slice, session, quota          CU<stripe>  used bytes and inodes, in parts
    QL<quota>          a folder's limits        QU<quota><stripe> what it uses, in parts
    G<inode><chunk>..  slices cut off a file, whose objects are still there
    J<session><slot>   the last change that a thread of a client answered, for its successor
    setting            the volume's format (JSON)

Inode and chunk numbers are big-endian, so that a scan returns them in order.
"""

from __future__ import annotations

import stat
from errno import ENOENT
from struct import Struct
from typing import NamedTuple

from pybernetes.objectfs.meta.engine import Transaction

CHUNK_SIZE = 64 << 20
BLOCK_SIZE = 4 << 20
ROOT = 1
SPACE_UNIT = 4096
MAX_FILE_SIZE = 1 << 50
"""Chunk numbers have 32 bits, which would do for more; what a volume uses is counted in 63 bits."""

SETTING = b"setting"
NEXT_INODE, NEXT_SLICE, NEXT_SESSION, NEXT_QUOTA = b"CI", b"CS", b"CN", b"CQ"

_INODE = Struct(">Q")
_CHUNK = Struct(">I")
_ENTRY = Struct("<IQ")
_SLICE = Struct("<IQIII")
_COUNTER = Struct("<q")
_ATTRIBUTES = Struct("<IIIIIIQqqqqQ")


def fail(code: int) -> OSError:
    """The error that the kernel gives the program."""
    return OSError(code, "")


class Attributes:
    """An inode. Times are nanoseconds since 1970; `parent` is a directory's parent, or where a file was made; `quota`
    is the number of the quota it counts for, taken from the directory it was made in."""

    __slots__ = (
        "atime", "btime", "ctime", "gid", "inode", "mode", "mtime", "nlink", "parent", "quota", "rdev", "size", "uid",
    )  # fmt: skip

    def __init__(
        self, inode: int, mode: int, uid: int, gid: int, now: int, parent: int, rdev: int = 0, quota: int = 0
    ) -> None:
        self.inode, self.mode, self.uid, self.gid = inode, mode, uid, gid
        self.nlink = 2 if stat.S_ISDIR(mode) else 1
        self.rdev, self.size, self.parent, self.quota = rdev, 0, parent, quota
        self.atime = self.mtime = self.ctime = self.btime = now

    @property
    def is_directory(self) -> bool:
        return (self.mode & 0o170000) == 0o040000

    @property
    def is_file(self) -> bool:
        return (self.mode & 0o170000) == 0o100000

    def encode(self) -> bytes:
        return _ATTRIBUTES.pack(
            self.mode, self.uid, self.gid, self.nlink, self.rdev, self.quota, self.size,
            self.atime, self.mtime, self.ctime, self.btime, self.parent,
        )  # fmt: skip

    @classmethod
    def decode(cls, inode: int, value: bytes) -> Attributes:
        made = cls.__new__(cls)
        made.inode = inode
        (
            made.mode, made.uid, made.gid, made.nlink, made.rdev, made.quota, made.size,
            made.atime, made.mtime, made.ctime, made.btime, made.parent,
        ) = _ATTRIBUTES.unpack_from(value)  # fmt: skip
        return made


class Slice(NamedTuple):
    """`length` bytes at `position` of a chunk, from `offset` of slice `id`, which has `size` bytes in all.

    Id 0 stands for zeros.
    """

    position: int
    id: int
    size: int
    offset: int
    length: int


def inode_key(inode: int) -> bytes:
    return b"A" + _INODE.pack(inode) + b"I"


def entry_prefix(inode: int) -> bytes:
    return b"A" + _INODE.pack(inode) + b"D"


def chunk_prefix(inode: int) -> bytes:
    return b"A" + _INODE.pack(inode) + b"C"


def chunk_key(inode: int, chunk: int) -> bytes:
    return b"A" + _INODE.pack(inode) + b"C" + _CHUNK.pack(chunk)


def chunk_of(key: bytes) -> int:
    return int(_CHUNK.unpack_from(key, 10)[0])


def symlink_key(inode: int) -> bytes:
    return b"A" + _INODE.pack(inode) + b"S"


def xattr_prefix(inode: int) -> bytes:
    return b"A" + _INODE.pack(inode) + b"X"


def removed_key(inode: int) -> bytes:
    return b"D" + _INODE.pack(inode)


def references_key(slice_id: int) -> bytes:
    return b"K" + _INODE.pack(slice_id)


def lock_key(kind: bytes, inode: int) -> bytes:
    return kind + _INODE.pack(inode)


def cut_key(inode: int, chunk: int, unique: bytes) -> bytes:
    return b"G" + _INODE.pack(inode) + _CHUNK.pack(chunk) + unique


def journal_prefix(session: int) -> bytes:
    return b"J" + _INODE.pack(session)


def session_key(kind: bytes, session: int) -> bytes:
    return kind + _INODE.pack(session)


def sustained_key(session: int, inode: int) -> bytes:
    return b"SS" + _INODE.pack(session) + _INODE.pack(inode)


def number_at(key: bytes, position: int) -> int:
    """The inode, slice or session number inside a key."""
    return int(_INODE.unpack_from(key, position)[0])


def load(tx: Transaction, inode: int) -> Attributes:
    """The inode's attributes, or ENOENT."""
    value = tx.get(inode_key(inode))
    if value is None:
        raise fail(ENOENT)
    return Attributes.decode(inode, value)


def store(tx: Transaction, attributes: Attributes) -> None:
    tx.put(inode_key(attributes.inode), attributes.encode())


def encode_entry(mode: int, inode: int) -> bytes:
    return _ENTRY.pack(mode & 0o170000, inode)


def decode_entry(value: bytes) -> tuple[int, int]:
    """A directory entry's type (the bits of st_mode) and inode."""
    kind, inode = _ENTRY.unpack(value)
    return kind, inode


def encode_slices(slices: list[Slice]) -> bytes:
    return b"".join(_SLICE.pack(*each) for each in slices)


def decode_slices(value: bytes | None) -> list[Slice]:
    return [Slice(*each) for each in _SLICE.iter_unpack(value)] if value else []


def space(attributes: Attributes) -> int:
    """The bytes an inode counts for: whole pages, one at least, as a disk would."""
    if attributes.is_file:
        return -(-attributes.size // SPACE_UNIT) * SPACE_UNIT
    return SPACE_UNIT


def take_numbers(tx: Transaction, counter: bytes, count: int) -> int:
    """Reserves `count` numbers and returns the first."""
    value = tx.get(counter)
    first = _COUNTER.unpack(value)[0] if value else 1
    tx.put(counter, _COUNTER.pack(first + count))
    return int(first)
