"""The structures and numbers of the FUSE kernel protocol (linux/fuse.h) from 7.31 on; little-endian machines only."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct

ROOT_ID = 1
MAJOR, MINOR = 7, 40
MAX_WRITE = 1 << 20
PAGE = 4096
# A request is its header, its arguments and at most MAX_WRITE bytes of data; the kernel refuses a smaller buffer.
BUFFER_SIZE = MAX_WRITE + 2 * PAGE
# Set in the `unique` of a request that the kernel sends again after NOTIFY_RESEND.
UNIQUE_RESEND = 1 << 63


class Opcode(IntEnum):
    """The kernel's request codes."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    SETXATTR = 21
    GETXATTR = 22
    LISTXATTR = 23
    REMOVEXATTR = 24
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    GETLK = 31
    SETLK = 32
    SETLKW = 33
    ACCESS = 34
    CREATE = 35
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    FALLOCATE = 43
    READDIRPLUS = 44
    RENAME2 = 45
    LSEEK = 46
    COPY_FILE_RANGE = 47
    SYNCFS = 50
    TMPFILE = 51
    STATX = 52


class Init(IntFlag):
    """Capabilities that INIT negotiates; bits from 32 on travel in `flags2`."""

    ASYNC_READ = 1 << 0
    POSIX_LOCKS = 1 << 1
    ATOMIC_O_TRUNC = 1 << 3
    EXPORT_SUPPORT = 1 << 4
    BIG_WRITES = 1 << 5
    DONT_MASK = 1 << 6
    FLOCK_LOCKS = 1 << 10
    AUTO_INVAL_DATA = 1 << 12
    DO_READDIRPLUS = 1 << 13
    READDIRPLUS_AUTO = 1 << 14
    ASYNC_DIO = 1 << 15
    PARALLEL_DIROPS = 1 << 18
    POSIX_ACL = 1 << 20
    MAX_PAGES = 1 << 22
    CACHE_SYMLINKS = 1 << 23
    INIT_EXT = 1 << 30
    HAS_RESEND = 1 << 39


class Notify(IntEnum):
    """Messages from the server that answer no request."""

    INVAL_INODE = 2
    INVAL_ENTRY = 3
    RESEND = 7


class Valid(IntFlag):
    """Which fields a SETATTR sets."""

    MODE = 1 << 0
    UID = 1 << 1
    GID = 1 << 2
    SIZE = 1 << 3
    ATIME = 1 << 4
    MTIME = 1 << 5
    FH = 1 << 6
    ATIME_NOW = 1 << 7
    MTIME_NOW = 1 << 8
    CTIME = 1 << 10


FOPEN_DIRECT_IO = 1 << 0
FOPEN_KEEP_CACHE = 1 << 1
FOPEN_CACHE_DIR = 1 << 3
RELEASE_FLOCK_UNLOCK = 1 << 1
LK_FLOCK = 1 << 0
FSYNC_FDATASYNC = 1 << 0

IN_HEADER = Struct("<IIQQIIIHH")  # len opcode unique nodeid uid gid pid extlen padding
OUT_HEADER = Struct("<IiQ")  # len error unique
INIT_IN = Struct("<IIII")  # major minor max_readahead flags; flags2 follows when the kernel has INIT_EXT
INIT_OUT = Struct("<IIIIHHIIHHIIH22x")
ATTR = Struct("<QQQQQQIIIIIIIIII")
ATTR_OUT = Struct("<QII")  # attr_valid attr_valid_nsec padding, then ATTR
ENTRY_OUT = Struct("<QQQQII")  # nodeid generation entry_valid attr_valid and their nanoseconds, then ATTR
SETATTR_IN = Struct("<I4xQQQQQQIIIIIII4x")
MKNOD_IN = Struct("<IIII")  # mode rdev umask padding
MKDIR_IN = Struct("<II")  # mode umask
RENAME_IN = Struct("<Q")
RENAME2_IN = Struct("<QI4x")
LINK_IN = Struct("<Q")
OPEN_IN = Struct("<II")
CREATE_IN = Struct("<IIII")  # flags mode umask open_flags
OPEN_OUT = Struct("<QIi")
RELEASE_IN = Struct("<QIIQ")  # fh flags release_flags lock_owner
FLUSH_IN = Struct("<QIIQ")
READ_IN = Struct("<QQIIQII")  # fh offset size read_flags lock_owner flags padding
WRITE_IN = READ_IN
WRITE_OUT = Struct("<II")
STATFS_OUT = Struct("<QQQQQIIII24x")
FSYNC_IN = Struct("<QII")
SETXATTR_IN = Struct("<II")
GETXATTR_IN = Struct("<II")
GETXATTR_OUT = Struct("<II")
LK_IN = Struct("<QQQQIIII")  # fh owner start end type pid lk_flags padding
FILE_LOCK = Struct("<QQII")
INTERRUPT_IN = Struct("<Q")
FORGET_IN = Struct("<Q")
BATCH_FORGET_IN = Struct("<II")
FORGET_ONE = Struct("<QQ")
FALLOCATE_IN = Struct("<QQQII")
LSEEK_IN = Struct("<QQII")
LSEEK_OUT = Struct("<Q")
COPY_FILE_RANGE_IN = Struct("<QQQQQQQ")
DIRENT = Struct("<QQII")  # ino off namelen type, then the name padded to 8
STATX_OUT = Struct("<QII16x")
STATX = Struct("<IIQIIIHHQQQQ" + "qIi" * 4 + "IIII112x")
INVAL_INODE_OUT = Struct("<Qqq")
INVAL_ENTRY_OUT = Struct("<QII")
