"""Extended attributes of inodes."""

from __future__ import annotations

from errno import E2BIG, EEXIST, ENODATA, EOPNOTSUPP, ERANGE

from pybernetes.objectfs.meta import acl, records
from pybernetes.objectfs.meta.engine import Engine, Transaction
from pybernetes.objectfs.meta.journal import Journal
from pybernetes.objectfs.meta.records import fail

NAMESPACES = (b"user.", b"trusted.", b"security.")
XATTR_CREATE, XATTR_REPLACE = 1, 2
NAME_MAX, VALUE_MAX = 255, 65536
# What listxattr(2) can return at most.
LIST_MAX = 65536


class Xattrs:
    """The extended attributes of one volume."""

    def __init__(self, engine: Engine, journal: Journal) -> None:
        self._engine, self._journal = engine, journal

    def set(self, inode: int, name: bytes, value: bytes, flags: int = 0) -> None:
        if not 0 < len(name) <= NAME_MAX:
            raise fail(ERANGE)
        if not name.startswith(NAMESPACES) and name not in (acl.ACCESS, acl.DEFAULT):
            raise fail(EOPNOTSUPP)
        if len(value) > VALUE_MAX:
            raise fail(E2BIG)
        key = records.xattr_prefix(inode) + name

        def put(tx: Transaction) -> None:
            attributes = records.load(tx, inode)
            exists = tx.get(key) is not None
            if flags & XATTR_CREATE and exists:
                raise fail(EEXIST)
            if flags & XATTR_REPLACE and not exists:
                raise fail(ENODATA)
            self._journal.record(tx)
            if name == acl.ACCESS:
                rules = acl.decode(value)
                attributes.mode = acl.mode_of(rules, attributes.mode)
                records.store(tx, attributes)
                if acl.is_plain(rules):
                    tx.delete(key)
                    return
            tx.put(key, value)

        self._engine.transact(put)

    def get(self, inode: int, name: bytes) -> bytes:
        value = self._engine.read(lambda tx: tx.get(records.xattr_prefix(inode) + name))
        if value is None:
            raise fail(ENODATA)
        return value

    def names(self, inode: int) -> list[bytes]:
        prefix = records.xattr_prefix(inode)
        return [key[len(prefix) :] for key, _ in self._engine.read(lambda tx: tx.scan(prefix))]

    def remove(self, inode: int, name: bytes) -> None:
        key = records.xattr_prefix(inode) + name

        def drop(tx: Transaction) -> None:
            if tx.get(key) is None:
                raise fail(ENODATA)
            tx.delete(key)
            self._journal.record(tx)

        self._engine.transact(drop)
