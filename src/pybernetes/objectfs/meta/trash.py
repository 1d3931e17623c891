"""The trash: files that lost their last name stay for some days in `.trash`, in a folder for each hour.

`.trash` is a directory at the root that is not listed and only root may open; a file is taken back by a rename.
Removing a file there is final. Directories are not kept: only files are.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pybernetes.objectfs.meta import records
from pybernetes.objectfs.meta.engine import Engine, Transaction
from pybernetes.objectfs.meta.records import Attributes

NAME = b".trash"
# The numbers that JuiceFS gives its trash: far above those of files.
TRASH = 0x7FFFFFFF10000000
HOUR = 3600
NAME_MAX = 255
_FORMAT = "%Y-%m-%d-%H"


def in_trash(inode: int) -> bool:
    """Whether a directory is the trash or one of its hours."""
    return inode >= TRASH


def hour_inode(now: int) -> int:
    return TRASH + now // 1_000_000_000 // HOUR


def ensure(tx: Transaction, now: int) -> int:
    """The directory of this hour, made when the first file of the hour is removed."""
    hour = hour_inode(now)
    if tx.get(records.inode_key(hour)) is None:
        if tx.get(records.inode_key(TRASH)) is None:
            records.store(tx, Attributes(TRASH, 0o040500, 0, 0, now, records.ROOT))
        records.store(tx, Attributes(hour, 0o040500, 0, 0, now, TRASH))
        tx.put(records.entry_prefix(TRASH) + name_of(hour), records.encode_entry(0o040500, hour))
    return hour


def name_of(hour: int) -> bytes:
    return time.strftime(_FORMAT, time.gmtime((hour - TRASH) * HOUR)).encode()


def entry_name(parent: int, inode: int, name: bytes) -> bytes:
    """The name of a removed file: where it was, its number, its name."""
    return (b"%d-%d-" % (parent, inode) + name)[:NAME_MAX]


def keep(tx: Transaction, parent: int, name: bytes, attributes: Attributes, now: int) -> None:
    """Moves a file into the trash instead of removing it. The caller has deleted its name."""
    hour = ensure(tx, now)
    tx.put(
        records.entry_prefix(hour) + entry_name(parent, attributes.inode, name),
        records.encode_entry(attributes.mode, attributes.inode),
    )
    attributes.parent, attributes.ctime = hour, now
    records.store(tx, attributes)


def expired(engine: Engine, oldest: int) -> list[tuple[int, list[bytes]]]:
    """The hours that end before `oldest`, with the names in them."""
    found = []
    for _, value in list(engine.scan(records.entry_prefix(TRASH))):
        _, hour = records.decode_entry(value)
        if (hour - TRASH + 1) * HOUR * 1_000_000_000 <= oldest:
            prefix = records.entry_prefix(hour)
            found.append((hour, [key[len(prefix) :] for key, _ in engine.scan(prefix)]))
    return found


def empty(engine: Engine, oldest: int, unlink: Callable[[int, bytes], object]) -> int:
    """Removes what is older for good; returns how many files."""
    count = 0
    for hour, names in expired(engine, oldest):
        for name in names:
            try:
                unlink(hour, name)
                count += 1
            except FileNotFoundError:
                pass  # another client was faster

        def drop(tx: Transaction, hour: int = hour) -> None:
            if not tx.scan(records.entry_prefix(hour), limit=1):
                tx.delete(records.inode_key(hour))
                tx.delete(records.entry_prefix(TRASH) + name_of(hour))

        engine.transact(drop)
    return count
