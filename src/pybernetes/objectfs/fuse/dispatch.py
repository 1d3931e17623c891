"""From a request of the kernel to a method of the volume: one function an opcode, in the table `HANDLERS`.

A handler gets the volume's side, the request's header and its arguments, and returns the answer's bytes, None where no
answer is wanted, or raises OSError. Permissions were checked by the kernel.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from errno import EINVAL, ENODATA, ENOSYS, ENOTSUP, ERANGE
from typing import NamedTuple

from pybernetes.objectfs.fuse import answers, protocol
from pybernetes.objectfs.fuse.answers import Timeouts
from pybernetes.objectfs.fuse.protocol import Opcode, Valid
from pybernetes.objectfs.meta import locks
from pybernetes.objectfs.meta.namespace import Changes
from pybernetes.objectfs.meta.records import Attributes, fail
from pybernetes.objectfs.volume import Volume

MOST_TIME = (1 << 63) - 1
"""Nanoseconds that an inode can have: the year 2262. Later times become this, as on other file systems."""
SYNC_WITHOUT_STORE = 30.0
"""Seconds after which sync(2) gives up while objects cannot be written: each has long retries of its own."""
# Where the mount's metrics are, for `stats`: an attribute of its root that is not listed.
METRICS = b"objectfs.metrics"


class Header(NamedTuple):
    length: int
    opcode: int
    unique: int
    inode: int
    uid: int
    gid: int
    pid: int
    extension: int
    padding: int


class FileSystem(NamedTuple):
    """The dependencies of handlers."""

    volume: Volume
    timeouts: Timeouts
    xattrs: bool
    now: Callable[[], int]
    acls: bool = False
    metrics: str = ""


Handler = Callable[[FileSystem, Header, memoryview], "bytes | None"]


def _names(arguments: memoryview) -> list[bytes]:
    return bytes(arguments).split(b"\0")


def _name(arguments: memoryview) -> bytes:
    return bytes(arguments[:-1])


def lookup(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    return answers.entry_out(fs.volume.lookup(header.inode, _name(arguments)), fs.timeouts)


def forget(fs: FileSystem, header: Header, arguments: memoryview) -> None:
    """Inodes are numbers in the database: there is nothing to forget."""


def getattr_(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    return answers.attr_out(fs.volume.getattr(header.inode), fs.timeouts)


def statx(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    return answers.statx_out(fs.volume.getattr(header.inode), fs.timeouts)


def setattr_(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    (
        valid, _handle, size, _owner, atime, mtime, ctime, atime_rest, mtime_rest, ctime_rest, mode, _, uid, gid,
    ) = protocol.SETATTR_IN.unpack_from(arguments)  # fmt: skip
    now = fs.now()

    def time(flag: Valid, flag_now: Valid | None, seconds: int, rest: int) -> int | None:
        if flag_now is not None and valid & flag_now:
            return now
        if not valid & flag:
            return None
        wanted = (seconds - (1 << 64) if seconds >> 63 else seconds) * 1_000_000_000 + rest
        return min(max(wanted, -MOST_TIME - 1), MOST_TIME)

    changes = Changes(
        mode=mode if valid & Valid.MODE else None,
        uid=uid if valid & Valid.UID else None,
        gid=gid if valid & Valid.GID else None,
        atime=time(Valid.ATIME, Valid.ATIME_NOW, atime, atime_rest),
        mtime=time(Valid.MTIME, Valid.MTIME_NOW, mtime, mtime_rest),
        ctime=time(Valid.CTIME, None, ctime, ctime_rest),
    )
    found = fs.volume.setattr(header.inode, changes, size if valid & Valid.SIZE else None)
    return answers.attr_out(found, fs.timeouts)


def readlink(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    return fs.volume.names.readlink(header.inode)


def _create(
    fs: FileSystem, header: Header, name: bytes, mode: int, umask: int, rdev: int = 0, target: bytes = b""
) -> Attributes:
    return fs.volume.names.create(header.inode, name, mode, header.uid, header.gid, rdev, target, umask)


def symlink(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    name, target = _names(arguments)[:2]
    return answers.entry_out(_create(fs, header, name, 0o120777, 0, target=target), fs.timeouts)


def mknod(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    mode, rdev, umask, _ = protocol.MKNOD_IN.unpack_from(arguments)
    name = _name(arguments[protocol.MKNOD_IN.size :])
    return answers.entry_out(_create(fs, header, name, mode, umask, rdev), fs.timeouts)


def mkdir(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    mode, umask = protocol.MKDIR_IN.unpack_from(arguments)
    name = _name(arguments[protocol.MKDIR_IN.size :])
    return answers.entry_out(_create(fs, header, name, 0o040000 | (mode & 0o7777), umask), fs.timeouts)


def unlink(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    fs.volume.unlink(header.inode, _name(arguments))
    return b""


def rmdir(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    fs.volume.names.rmdir(header.inode, _name(arguments))
    return b""


def rename(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    (parent,) = protocol.RENAME_IN.unpack_from(arguments)
    name, new_name = _names(arguments[protocol.RENAME_IN.size :])[:2]
    fs.volume.rename(header.inode, name, parent, new_name, 0)
    return b""


def rename2(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    parent, flags = protocol.RENAME2_IN.unpack_from(arguments)
    name, new_name = _names(arguments[protocol.RENAME2_IN.size :])[:2]
    fs.volume.rename(header.inode, name, parent, new_name, flags)
    return b""


def link(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    (inode,) = protocol.LINK_IN.unpack_from(arguments)
    name = _name(arguments[protocol.LINK_IN.size :])
    fs.volume.names.link(inode, header.inode, name)
    return answers.entry_out(fs.volume.getattr(inode), fs.timeouts)


def open_(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    flags, _ = protocol.OPEN_IN.unpack_from(arguments)
    handle, keep = fs.volume.open(header.inode, flags, header.unique)
    options = protocol.FOPEN_KEEP_CACHE if keep else 0
    if flags & os.O_DIRECT:
        options |= protocol.FOPEN_DIRECT_IO
    return protocol.OPEN_OUT.pack(handle, options, 0)


def create(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    flags, mode, umask, _ = protocol.CREATE_IN.unpack_from(arguments)
    name = _name(arguments[protocol.CREATE_IN.size :])
    try:
        made = _create(fs, header, name, 0o100000 | (mode & 0o7777), umask)
    except FileExistsError:
        # Another client was faster: without O_EXCL its file is opened.
        if flags & os.O_EXCL:
            raise
        made = fs.volume.lookup(header.inode, name)
        if not made.is_file:
            raise
    return answers.entry_out(made, fs.timeouts) + protocol.OPEN_OUT.pack(fs.volume.opened(made.inode), 0, 0)


def tmpfile(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    _flags, mode, umask, _ = protocol.CREATE_IN.unpack_from(arguments)
    made = fs.volume.names.create_unnamed(header.inode, 0o100000 | (mode & 0o7777), header.uid, header.gid, umask)
    return answers.entry_out(made, fs.timeouts) + protocol.OPEN_OUT.pack(fs.volume.opened(made.inode), 0, 0)


def read(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    handle, offset, size, *_ = protocol.READ_IN.unpack_from(arguments)
    return fs.volume.read(handle, header.inode, offset, size)


def write(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    handle, offset, size, *_ = protocol.WRITE_IN.unpack_from(arguments)
    data = arguments[protocol.WRITE_IN.size : protocol.WRITE_IN.size + size]
    return protocol.WRITE_OUT.pack(fs.volume.write(handle, header.inode, offset, data), 0)


def statfs(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    capacity, used, limit, inodes = fs.volume.statfs(header.inode)
    free = max(0, capacity - used) // 4096
    return protocol.STATFS_OUT.pack(capacity // 4096, free, free, limit, max(0, limit - inodes), 4096, 255, 4096, 0)


def flush(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    handle, _, _, owner = protocol.FLUSH_IN.unpack_from(arguments)
    fs.volume.unlock_owner(header.inode, owner)
    if fs.volume.handle(handle, header.inode).writable:  # a reader has no part in others' writes, nor in their errors
        fs.volume.flush(header.inode)
    return b""


def release(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    handle, _flags, options, owner = protocol.RELEASE_IN.unpack_from(arguments)
    if options & protocol.RELEASE_FLOCK_UNLOCK:
        fs.volume.unlock_flock(header.inode, owner)
    fs.volume.release(handle, header.inode)
    return b""


def fsync(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    fs.volume.fsync(header.inode)
    return b""


def fsyncdir(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    fs.volume.engine.sync()
    return b""


def syncfs(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    failed: OSError | None = None
    end = time.monotonic() + SYNC_WITHOUT_STORE
    for inode in fs.volume.writer.inodes():
        try:
            fs.volume.flush(inode)
        except OSError as error:
            failed = error
            if time.monotonic() > end:
                break
    fs.volume.engine.sync()
    if failed is not None:
        raise failed
    return b""


def opendir(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    return protocol.OPEN_OUT.pack(fs.volume.opendir(header.inode), 0, 0)


def readdir(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    handle, offset, size, *_ = protocol.READ_IN.unpack_from(arguments)
    return answers.directory(fs.volume.entries(handle, header.inode, offset), offset, size)


def readdirplus(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    handle, offset, size, *_ = protocol.READ_IN.unpack_from(arguments)
    # No more than can fit: each takes its attributes, a dirent and a name.
    most = size // (protocol.ENTRY_OUT.size + protocol.ATTR.size + protocol.DIRENT.size + 8) + 1
    entries = fs.volume.entries(handle, header.inode, offset)[offset : offset + most]
    found = fs.volume.attributes_of([each.inode for each in entries if each.name not in (b".", b"..")])
    return answers.directory_plus(
        [(each, None if each.name in (b".", b"..") else found.get(each.inode)) for each in entries],
        offset,
        size,
        fs.timeouts,
    )


def releasedir(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    handle, *_ = protocol.RELEASE_IN.unpack_from(arguments)
    fs.volume.release(handle, header.inode)
    return b""


def setxattr(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    size, flags = protocol.SETXATTR_IN.unpack_from(arguments)
    name, _, rest = bytes(arguments[protocol.SETXATTR_IN.size :]).partition(b"\0")
    _check_xattr(fs, name)
    fs.volume.xattrs.set(header.inode, name, rest[:size], flags)
    return b""


def getxattr(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    size, _ = protocol.GETXATTR_IN.unpack_from(arguments)
    name = _name(arguments[protocol.GETXATTR_IN.size :])
    if name == METRICS and header.inode == protocol.ROOT_ID and fs.metrics:
        return _sized(fs.metrics.encode(), size)
    if name == b"security.capability" and not fs.xattrs:
        raise fail(ENODATA)
    _check_xattr(fs, name)
    return _sized(fs.volume.xattrs.get(header.inode, name), size)


def listxattr(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    size, _ = protocol.GETXATTR_IN.unpack_from(arguments)
    if not fs.xattrs:
        raise fail(ENOTSUP)
    return _sized(b"".join(name + b"\0" for name in fs.volume.xattrs.names(header.inode)), size)


def removexattr(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    name = _name(arguments)
    _check_xattr(fs, name)
    fs.volume.xattrs.remove(header.inode, name)
    return b""


def _check_xattr(fs: FileSystem, name: bytes) -> None:
    if not fs.xattrs or (name.startswith(b"system.posix_acl_") and not fs.acls):
        raise fail(ENOTSUP)


def _sized(value: bytes, size: int) -> bytes:
    """The value, or its length where the program asks for that (size 0)."""
    if size == 0:
        return protocol.GETXATTR_OUT.pack(len(value), 0)
    if len(value) > size:
        raise fail(ERANGE)
    return value


def getlk(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    _handle, owner, start, end, kind, _pid, _flags, _ = protocol.LK_IN.unpack_from(arguments)
    found = fs.volume.locks.get(header.inode, owner, kind, start, _end(end))
    if found is None:
        return protocol.FILE_LOCK.pack(start, end, locks.F_UNLCK, 0)
    last = found.end if found.end < locks.WHOLE_FILE else locks.WHOLE_FILE
    return protocol.FILE_LOCK.pack(found.start, last, found.type, found.pid)


def setlk(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    _handle, owner, start, end, kind, pid, flags, _ = protocol.LK_IN.unpack_from(arguments)
    family = locks.FLOCK if flags & protocol.LK_FLOCK else locks.POSIX
    if kind not in (locks.F_RDLCK, locks.F_WRLCK, locks.F_UNLCK):
        raise fail(EINVAL)
    fs.volume.lock(family, header.inode, owner, kind, start, _end(end), pid)
    return b""


def _end(end: int) -> int:
    return min(end, locks.WHOLE_FILE)


def fallocate(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    _handle, offset, length, mode, _ = protocol.FALLOCATE_IN.unpack_from(arguments)
    fs.volume.fallocate(header.inode, mode, offset, length)
    return b""


def lseek(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    _handle, offset, whence, _ = protocol.LSEEK_IN.unpack_from(arguments)
    return protocol.LSEEK_OUT.pack(fs.volume.lseek(header.inode, offset, whence))


def copy_file_range(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    _handle, start, inode, _handle_out, target, length, _flags = protocol.COPY_FILE_RANGE_IN.unpack_from(arguments)
    # The answer is 32 bits wide.
    return protocol.WRITE_OUT.pack(fs.volume.copy(header.inode, start, inode, target, min(length, 1 << 30)), 0)


def redo(fs: FileSystem, header: Header, made: int) -> bytes:
    """The answer to a request that a predecessor has handled: `made` is the inode that came of it."""
    if header.opcode not in (Opcode.SYMLINK, Opcode.MKNOD, Opcode.MKDIR, Opcode.LINK, Opcode.CREATE, Opcode.TMPFILE):
        return b""
    entry = answers.entry_out(fs.volume.getattr(made), fs.timeouts)
    if header.opcode in (Opcode.CREATE, Opcode.TMPFILE):
        return entry + protocol.OPEN_OUT.pack(fs.volume.opened(made), 0, 0)
    return entry


def access(fs: FileSystem, header: Header, arguments: memoryview) -> bytes:
    raise fail(ENOSYS)


# What may not be done twice: the second time would find that it is done, and fail.
JOURNALED = frozenset(
    {
        Opcode.SYMLINK, Opcode.MKNOD, Opcode.MKDIR, Opcode.UNLINK, Opcode.RMDIR, Opcode.RENAME, Opcode.RENAME2,
        Opcode.LINK, Opcode.CREATE, Opcode.TMPFILE, Opcode.SETXATTR, Opcode.REMOVEXATTR,
    }
)  # fmt: skip

HANDLERS: dict[int, Handler] = {
    Opcode.LOOKUP: lookup,
    Opcode.FORGET: forget,
    Opcode.BATCH_FORGET: forget,
    Opcode.GETATTR: getattr_,
    Opcode.STATX: statx,
    Opcode.SETATTR: setattr_,
    Opcode.READLINK: readlink,
    Opcode.SYMLINK: symlink,
    Opcode.MKNOD: mknod,
    Opcode.MKDIR: mkdir,
    Opcode.UNLINK: unlink,
    Opcode.RMDIR: rmdir,
    Opcode.RENAME: rename,
    Opcode.RENAME2: rename2,
    Opcode.LINK: link,
    Opcode.OPEN: open_,
    Opcode.CREATE: create,
    Opcode.TMPFILE: tmpfile,
    Opcode.READ: read,
    Opcode.WRITE: write,
    Opcode.STATFS: statfs,
    Opcode.FLUSH: flush,
    Opcode.RELEASE: release,
    Opcode.FSYNC: fsync,
    Opcode.FSYNCDIR: fsyncdir,
    Opcode.SYNCFS: syncfs,
    Opcode.OPENDIR: opendir,
    Opcode.READDIR: readdir,
    Opcode.READDIRPLUS: readdirplus,
    Opcode.RELEASEDIR: releasedir,
    Opcode.SETXATTR: setxattr,
    Opcode.GETXATTR: getxattr,
    Opcode.LISTXATTR: listxattr,
    Opcode.REMOVEXATTR: removexattr,
    Opcode.GETLK: getlk,
    Opcode.SETLK: setlk,
    Opcode.FALLOCATE: fallocate,
    Opcode.LSEEK: lseek,
    Opcode.COPY_FILE_RANGE: copy_file_range,
    Opcode.ACCESS: access,
}
