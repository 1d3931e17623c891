"""Files, directories and their attributes: one method an operation of POSIX, each one transaction.

Permissions are the kernel's business (the mount has `default_permissions`); what is checked here is what only the
metadata knows: existence, types, emptiness, cycles, limits.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from errno import EEXIST, EINVAL, EISDIR, EMLINK, ENAMETOOLONG, ENOENT, ENOTDIR, ENOTEMPTY, EPERM, EXDEV
from typing import NamedTuple

from pybernetes.objectfs.meta import acl, records, trash, usage
from pybernetes.objectfs.meta.engine import Engine, Transaction
from pybernetes.objectfs.meta.journal import Journal
from pybernetes.objectfs.meta.numbers import NumberPool
from pybernetes.objectfs.meta.records import Attributes, fail
from pybernetes.objectfs.meta.usage import Limits, charge

NAME_MAX = 255
LINK_MAX = 65000
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2


class Entry(NamedTuple):
    name: bytes
    kind: int
    inode: int


class Changes(NamedTuple):
    """The fields that SETATTR sets; None leaves a field as it is. The size is set by `slices.truncate`."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    atime: int | None = None
    mtime: int | None = None
    ctime: int | None = None


class Removed(NamedTuple):
    """An inode that lost a name; `last` when it was the last one."""

    attributes: Attributes
    last: bool


class Namespace:
    """The tree of one volume. `is_open` says whether this client has the inode open, so that its data stays."""

    def __init__(
        self,
        engine: Engine,
        session: int,
        now: Callable[[], int],
        is_open: Callable[[int], bool],
        limits: Limits | None = None,
        acls: bool = False,
    ) -> None:
        self._engine, self._session, self._now, self._is_open = engine, session, now, is_open
        self._limits, self._acls = limits or Limits(), acls
        self.journal = Journal(engine, session)
        # Open files of this client that have no name any more: few closes have to ask the database.
        self._unnamed: set[int] = set()
        self._numbers = NumberPool(engine, records.NEXT_INODE)

    def lookup(self, parent: int, name: bytes) -> Attributes:
        return self._engine.read(lambda tx: _child(tx, parent, name))

    def get(self, inode: int) -> Attributes:
        return self._engine.read(lambda tx: records.load(tx, inode))

    def get_many(self, inodes: list[int]) -> dict[int, Attributes]:
        """The attributes of the inodes that exist."""

        def read(tx: Transaction) -> dict[int, Attributes]:
            found = zip(inodes, tx.get_many(map(records.inode_key, inodes)), strict=True)
            return {inode: Attributes.decode(inode, value) for inode, value in found if value is not None}

        return self._engine.read(read)

    def set(self, inode: int, changes: Changes) -> Attributes:
        now = self._now()

        def change(tx: Transaction) -> Attributes:
            attributes = records.load(tx, inode)
            if changes.mode is not None:
                attributes.mode = (attributes.mode & 0o170000) | (changes.mode & 0o7777)
                if self._acls:
                    self._follow_mode(tx, attributes)
            for field in ("uid", "gid", "atime", "mtime"):
                value = getattr(changes, field)
                if value is not None:
                    setattr(attributes, field, value)
            attributes.ctime = now if changes.ctime is None else changes.ctime
            records.store(tx, attributes)
            return attributes

        return self._engine.transact(change)

    def touch(self, inode: int, atime: int) -> None:
        """Sets the access time alone, without the change time."""

        def change(tx: Transaction) -> None:
            attributes = records.load(tx, inode)
            if attributes.atime < atime:
                attributes.atime = atime
                records.store(tx, attributes)

        self._engine.transact(change)

    def create(
        self, parent: int, name: bytes, mode: int, uid: int, gid: int, rdev: int = 0, target: bytes = b"",
        umask: int = 0,
    ) -> Attributes:  # fmt: skip
        """Makes a file, directory, device, pipe, socket or (with `target`) symbolic link."""
        _check_name(name)
        now, number = self._now(), self._numbers.take()

        def make(tx: Transaction) -> Attributes:
            key = records.entry_prefix(parent) + name
            tx.get_many([records.inode_key(parent), key, *usage.stripe_keys(tx, 0)])
            folder = _writable(tx, parent)
            if tx.get(key) is not None:
                raise fail(EEXIST)
            attributes = Attributes(number, mode & ~umask, uid, gid, now, parent, rdev, folder.quota)
            if self._acls and not target:
                self._inherit(tx, attributes, parent, mode)
            if folder.mode & stat.S_ISGID:
                attributes.gid = folder.gid
                if attributes.is_directory:
                    attributes.mode |= stat.S_ISGID
            if target:
                attributes.size = len(target)
                tx.put(records.symlink_key(number), target)
            if attributes.is_directory:
                if folder.nlink >= LINK_MAX * 1000:
                    raise fail(EMLINK)
                folder.nlink += 1
            charge(tx, folder.quota, records.space(attributes), 1, self._limits)
            folder.mtime = folder.ctime = now
            records.store(tx, attributes)
            records.store(tx, folder)
            tx.put(key, records.encode_entry(attributes.mode, number))
            self.journal.record(tx, number)
            return attributes

        return self._engine.transact(make)

    def copy_attributes(self, source: int, inode: int) -> None:
        """Gives a clone the times, mode and extended attributes of its model."""

        def copy(tx: Transaction) -> None:
            model, attributes = records.load(tx, source), records.load(tx, inode)
            attributes.mode = model.mode
            attributes.atime, attributes.mtime = model.atime, model.mtime
            records.store(tx, attributes)
            for key, value in tx.scan(records.xattr_prefix(source)):
                tx.put(records.xattr_prefix(inode) + key[10:], value)

        self._engine.transact(copy)

    def create_unnamed(self, parent: int, mode: int, uid: int, gid: int, umask: int = 0) -> Attributes:
        """A file without a name (O_TMPFILE): it goes with its last descriptor unless `link` gives it a name."""
        now, number = self._now(), self._numbers.take()

        def make(tx: Transaction) -> Attributes:
            folder = _writable(tx, parent)
            owner = folder.gid if folder.mode & stat.S_ISGID else gid
            attributes = Attributes(number, mode & ~umask, uid, owner, now, parent, 0, folder.quota)
            if self._acls:
                self._inherit(tx, attributes, parent, mode)
            attributes.nlink = 0
            charge(tx, folder.quota, 0, 1, self._limits)
            records.store(tx, attributes)
            tx.put(records.sustained_key(self._session, number), b"")
            self._unnamed.add(number)
            self.journal.record(tx, number)
            return attributes

        return self._engine.transact(make)

    def link(self, inode: int, parent: int, name: bytes) -> Attributes:
        _check_name(name)
        now = self._now()

        def make(tx: Transaction) -> Attributes:
            key = records.entry_prefix(parent) + name
            tx.get_many([records.inode_key(parent), records.inode_key(inode), key])
            folder = _writable(tx, parent)
            attributes = records.load(tx, inode)
            if attributes.is_directory:
                raise fail(EPERM)
            _check_quota(attributes, folder)
            if attributes.nlink >= LINK_MAX:
                raise fail(EMLINK)
            if tx.get(key) is not None:
                raise fail(EEXIST)
            if attributes.nlink == 0:
                tx.delete(records.sustained_key(self._session, inode))
                attributes.parent = parent
            attributes.nlink += 1
            attributes.ctime = folder.mtime = folder.ctime = now
            records.store(tx, attributes)
            records.store(tx, folder)
            tx.put(key, records.encode_entry(attributes.mode, inode))
            self.journal.record(tx, inode)
            return attributes

        return self._engine.transact(make)

    def unlink(self, parent: int, name: bytes) -> Removed:
        now = self._now()

        def remove(tx: Transaction) -> Removed:
            key = records.entry_prefix(parent) + name
            tx.get_many([records.inode_key(parent), key, *usage.stripe_keys(tx, 0)])
            folder = _directory(tx, parent)
            attributes = _child(tx, parent, name)
            if attributes.is_directory:
                raise fail(EISDIR)
            tx.delete(key)
            folder.mtime = folder.ctime = now
            records.store(tx, folder)
            self.journal.record(tx)
            return self._drop_name(tx, attributes, now, parent, name)

        return self._engine.transact(remove)

    def rmdir(self, parent: int, name: bytes) -> Attributes:
        if name == b".":
            raise fail(EINVAL)
        if name == b"..":
            raise fail(ENOTEMPTY)
        now = self._now()

        def remove(tx: Transaction) -> Attributes:
            key = records.entry_prefix(parent) + name
            tx.get_many([records.inode_key(parent), key, *usage.stripe_keys(tx, 0)])
            folder = _directory(tx, parent)
            attributes = _child(tx, parent, name)
            if trash.in_trash(attributes.inode):
                raise fail(EPERM)
            _check_empty(tx, attributes)
            tx.delete(key)
            folder.nlink -= 1
            folder.mtime = folder.ctime = now
            records.store(tx, folder)
            self.journal.record(tx)
            forget(tx, attributes)
            return attributes

        return self._engine.transact(remove)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int = 0) -> Removed | None:
        """Moves a name; returns the inode that the new name stood for before, if it lost it."""
        if flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE) or flags == RENAME_NOREPLACE | RENAME_EXCHANGE:
            raise fail(EINVAL)
        _check_name(new_name)
        now = self._now()

        def move(tx: Transaction) -> Removed | None:
            key, new_key = records.entry_prefix(parent) + name, records.entry_prefix(new_parent) + new_name
            found = tx.get_many([key, new_key, records.inode_key(parent), records.inode_key(new_parent)])[:2]
            tx.get_many([records.inode_key(records.decode_entry(each)[1]) for each in found if each is not None])
            folder = _directory(tx, parent)
            new_folder = folder if new_parent == parent else _writable(tx, new_parent)
            source = _child(tx, parent, name)
            if trash.in_trash(source.inode) or parent == trash.TRASH:
                raise fail(EPERM)
            target = None if found[1] is None else records.load(tx, records.decode_entry(found[1])[1])
            _check_quota(source, new_folder)
            if target is not None and target.inode == source.inode:
                return None
            if source.is_directory and new_parent != parent:
                _check_no_cycle(tx, source.inode, new_folder)
            if flags & RENAME_EXCHANGE:
                if target is None:
                    raise fail(ENOENT)
                if target.is_directory and new_parent != parent:
                    _check_no_cycle(tx, target.inode, folder)
                _move_links(source, target, folder, new_folder)
                _check_quota(target, folder)
                source.parent, target.parent = new_parent, parent
                source.ctime = target.ctime = now
                tx.put(key, records.encode_entry(target.mode, target.inode))
                records.store(tx, target)
                removed = None
            else:
                if target is not None and flags & RENAME_NOREPLACE:
                    raise fail(EEXIST)
                removed = self._replace(tx, source, target, new_folder, now, new_name)
                if source.is_directory:
                    folder.nlink -= 1
                    new_folder.nlink += 1
                source.parent, source.ctime = new_parent, now
                tx.delete(key)
            folder.mtime = folder.ctime = new_folder.mtime = new_folder.ctime = now
            records.store(tx, source)
            records.store(tx, folder)
            records.store(tx, new_folder)
            tx.put(new_key, records.encode_entry(source.mode, source.inode))
            self.journal.record(tx)
            return removed

        return self._engine.transact(move)

    def entries(self, inode: int) -> list[Entry]:
        """The names in a directory, without `.` and `..`, in the order of their bytes."""
        prefix = records.entry_prefix(inode)

        def read(tx: Transaction) -> list[Entry]:
            _directory(tx, inode)
            return [Entry(key[len(prefix) :], *records.decode_entry(value)) for key, value in tx.scan(prefix)]

        return self._engine.read(read)

    def readlink(self, inode: int) -> bytes:
        target = self._engine.read(lambda tx: tx.get(records.symlink_key(inode)))
        if target is None:
            raise fail(EINVAL)
        return target

    def usage(self) -> tuple[int, int]:
        return self._engine.read(usage.used)

    def resume(self) -> None:
        """Takes over what the session's earlier server had done and had open."""
        self.journal.load()
        prefix = records.sustained_key(self._session, 0)[:-8]
        self._unnamed = {records.number_at(key, 10) for key, _ in self._engine.scan(prefix)}

    def closed(self, inode: int) -> bool:
        """The last descriptor of an inode is closed: True when it had no name left and its data may go."""
        if inode not in self._unnamed:
            return False

        def drop(tx: Transaction) -> bool:
            key = records.sustained_key(self._session, inode)
            if tx.get(key) is None:
                return False
            tx.delete(key)
            attributes = records.load(tx, inode)
            if attributes.nlink > 0:
                return False
            forget(tx, attributes)
            return True

        gone = self._engine.transact(drop)
        self._unnamed.discard(inode)
        return gone

    def _replace(
        self, tx: Transaction, source: Attributes, target: Attributes | None, folder: Attributes, now: int, name: bytes
    ) -> Removed | None:
        """Takes the name away from what has it now, if it is of the kind that rename(2) may replace."""
        if target is None:
            return None
        if target.is_directory:
            if not source.is_directory:
                raise fail(EISDIR)
            _check_empty(tx, target)
            folder.nlink -= 1
            forget(tx, target)
            return Removed(target, True)
        if source.is_directory:
            raise fail(ENOTDIR)
        return self._drop_name(tx, target, now, folder.inode, name)

    def _drop_name(self, tx: Transaction, attributes: Attributes, now: int, parent: int, name: bytes) -> Removed:
        if attributes.nlink == 1 and self._limits.trash_days and attributes.is_file and not trash.in_trash(parent):
            trash.keep(tx, parent, name, attributes, now)
            return Removed(attributes, False)
        attributes.nlink -= 1
        attributes.ctime = now
        if attributes.nlink > 0:
            records.store(tx, attributes)
            return Removed(attributes, False)
        if self._is_open(attributes.inode):
            records.store(tx, attributes)
            tx.put(records.sustained_key(self._session, attributes.inode), b"")
            # A run that does not commit leaves a number too many: a close that asks in vain.
            self._unnamed.add(attributes.inode)
        else:
            forget(tx, attributes)
        return Removed(attributes, True)

    def _inherit(self, tx: Transaction, attributes: Attributes, parent: int, mode: int) -> None:
        """Gives a new inode what its directory's default list says; the umask counts only without one."""
        value = tx.get(records.xattr_prefix(parent) + acl.DEFAULT)
        if value is None:
            return
        rules, attributes.mode = acl.inherited(acl.decode(value), mode)
        if not acl.is_plain(rules):
            tx.put(records.xattr_prefix(attributes.inode) + acl.ACCESS, acl.encode(rules))
        if attributes.is_directory:
            tx.put(records.xattr_prefix(attributes.inode) + acl.DEFAULT, value)

    def _follow_mode(self, tx: Transaction, attributes: Attributes) -> None:
        key = records.xattr_prefix(attributes.inode) + acl.ACCESS
        value = tx.get(key)
        if value is not None:
            tx.put(key, acl.encode(acl.changed_mode(acl.decode(value), attributes.mode)))


def forget(tx: Transaction, attributes: Attributes) -> None:
    """Removes an inode; slices and extended attributes stay until the collector has removed them."""
    inode = attributes.inode
    tx.delete(records.inode_key(inode))
    rest = tx.scan(records.chunk_prefix(inode), limit=1) if attributes.is_file else []
    if rest or tx.scan(records.xattr_prefix(inode), limit=1):
        tx.put(records.removed_key(inode), b"")
    if stat.S_ISLNK(attributes.mode):
        tx.delete(records.symlink_key(inode))
    charge(tx, attributes.quota, -records.space(attributes), -1)
    if attributes.quota and attributes.is_directory:
        usage.drop_if_root(tx, attributes)


def _check_name(name: bytes) -> None:
    if len(name) > NAME_MAX:
        raise fail(ENAMETOOLONG)
    if name in (b"", b".", b".."):
        raise fail(EEXIST)


def _directory(tx: Transaction, inode: int) -> Attributes:
    attributes = records.load(tx, inode)
    if not attributes.is_directory:
        raise fail(ENOTDIR)
    return attributes


def _writable(tx: Transaction, inode: int) -> Attributes:
    """A directory that takes new names: the trash is filled by removals alone."""
    if trash.in_trash(inode):
        raise fail(EPERM)
    return _directory(tx, inode)


def _check_quota(attributes: Attributes, folder: Attributes) -> None:
    """EXDEV, as on XFS, for a name in a folder with another quota: programs copy then, and the copy is counted."""
    if folder.quota and folder.quota != attributes.quota:
        raise fail(EXDEV)


def _child(tx: Transaction, parent: int, name: bytes) -> Attributes:
    if name == b".":
        return records.load(tx, parent)
    if name == b"..":
        return records.load(tx, records.load(tx, parent).parent)
    if len(name) > NAME_MAX:
        raise fail(ENAMETOOLONG)
    if name == trash.NAME and parent == records.ROOT:
        return records.load(tx, trash.TRASH)
    value = tx.get(records.entry_prefix(parent) + name)
    if value is None:
        raise fail(ENOENT)
    return records.load(tx, records.decode_entry(value)[1])


def _check_empty(tx: Transaction, attributes: Attributes) -> None:
    if not attributes.is_directory:
        raise fail(ENOTDIR)
    if tx.scan(records.entry_prefix(attributes.inode), limit=1):
        raise fail(ENOTEMPTY)


def _check_no_cycle(tx: Transaction, moved: int, folder: Attributes) -> None:
    """EINVAL if `folder` is `moved` or below it: the kernel does not see what other clients move."""
    while folder.inode != records.ROOT:
        if folder.inode == moved:
            raise fail(EINVAL)
        folder = records.load(tx, folder.parent)


def _move_links(source: Attributes, target: Attributes, folder: Attributes, new_folder: Attributes) -> None:
    """The link counts of two directories whose entries change places."""
    difference = int(source.is_directory) - int(target.is_directory)
    folder.nlink -= difference
    new_folder.nlink += difference
