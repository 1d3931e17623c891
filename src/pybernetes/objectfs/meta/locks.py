"""flock(2) and POSIX record locks that hold between all clients of a volume.

The locks of an inode are one value in the database: a list of (session, owner, type, start, end, pid). `place` is
pure: it says what the list becomes when an owner takes or gives back a range. A lock belongs to a session, so that the
locks of a client that died go with its session.
"""

from __future__ import annotations

from collections.abc import Iterable
from errno import EAGAIN
from typing import NamedTuple

import msgspec

from pybernetes.objectfs.meta import records
from pybernetes.objectfs.meta.engine import Engine, Transaction
from pybernetes.objectfs.meta.records import fail

F_RDLCK, F_WRLCK, F_UNLCK = 0, 1, 2
FLOCK, POSIX = b"F", b"L"
WHOLE_FILE = (1 << 63) - 1


class Lock(NamedTuple):
    """A lock of one owner on the bytes `start` to `end`, both included."""

    session: int
    owner: int
    type: int
    start: int
    end: int
    pid: int


def conflict(locks: Iterable[Lock], wanted: Lock) -> Lock | None:
    """The first lock of another owner that does not go together with the wanted one."""
    for each in locks:
        if (each.session, each.owner) == (wanted.session, wanted.owner):
            continue
        if each.start <= wanted.end and wanted.start <= each.end and F_WRLCK in (each.type, wanted.type):
            return each
    return None


def place(locks: Iterable[Lock], wanted: Lock) -> list[Lock]:
    """The locks after the owner's range has the wanted type: earlier ones of the owner are cut or joined."""
    after: list[Lock] = []
    start, end = wanted.start, wanted.end
    for each in locks:
        if (each.session, each.owner) != (wanted.session, wanted.owner):
            after.append(each)
            continue
        if each.type == wanted.type and each.start <= end + 1 and start <= each.end + 1:
            start, end = min(start, each.start), max(end, each.end)
            continue
        if each.end < wanted.start or each.start > wanted.end:
            after.append(each)
            continue
        if each.start < wanted.start:
            after.append(each._replace(end=wanted.start - 1))
        if each.end > wanted.end:
            after.append(each._replace(start=wanted.end + 1))
    if wanted.type != F_UNLCK:
        after.append(wanted._replace(start=start, end=end))
    return sorted(after)


class Locks:
    """The locks of one volume, for one session."""

    def __init__(self, engine: Engine, session: int) -> None:
        self._engine, self._session = engine, session

    def get(self, inode: int, owner: int, kind: int, start: int, end: int) -> Lock | None:
        """The lock that keeps the owner from this one (F_GETLK), or None."""
        wanted = Lock(self._session, owner, kind, start, end, 0)
        return conflict(self._engine.read(lambda tx: _load(tx, records.lock_key(POSIX, inode))), wanted)

    def held(self) -> set[tuple[bytes, int, int]]:
        """Family, inode and owner of all locks of this session."""
        return {
            (family, records.number_at(key, 1), each.owner)
            for family in (FLOCK, POSIX)
            for key, value in self._engine.scan(family)
            for each in _decode(value)
            if each.session == self._session
        }

    def set(self, family: bytes, inode: int, owner: int, kind: int, start: int, end: int, pid: int) -> None:
        """Takes or gives back a lock, or EAGAIN."""
        wanted = Lock(self._session, owner, kind, start, end, pid)
        key = records.lock_key(family, inode)

        def change(tx: Transaction) -> None:
            locks = _load(tx, key)
            if kind != F_UNLCK and conflict(locks, wanted) is not None:
                raise fail(EAGAIN)
            _store(tx, key, place(locks, wanted))

        self._engine.transact(change)


def release_session(engine: Engine, session: int) -> None:
    """Removes all locks of a session that ended."""
    for family in (FLOCK, POSIX):
        for key, value in list(engine.scan(family)):
            if any(each.session == session for each in _decode(value)):

                def release(tx: Transaction, key: bytes = key) -> None:
                    _store(tx, key, [each for each in _load(tx, key) if each.session != session])

                engine.transact(release)


def _decode(value: bytes | None) -> list[Lock]:
    return [Lock(*each) for each in msgspec.msgpack.decode(value)] if value else []


def _load(tx: Transaction, key: bytes) -> list[Lock]:
    return _decode(tx.get(key))


def _store(tx: Transaction, key: bytes, locks: list[Lock]) -> None:
    if locks:
        tx.put(key, msgspec.msgpack.encode(locks))
    else:
        tx.delete(key)
