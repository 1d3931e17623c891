"""Comparing a volume's metadata with its objects: what files need and is missing, what is there and needed by no file.

Used by `fsck` and `gc`. Objects younger than `GRACE_SECONDS` are never called leaked: a client uploads a slice's
objects before it commits the slice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from pybernetes.objectfs.data.blocks import object_key
from pybernetes.objectfs.meta import records, trash, usage
from pybernetes.objectfs.meta.engine import Engine
from pybernetes.objectfs.objects.store import ObjectInfo, ObjectStore

GRACE_SECONDS = 3600.0


class Missing(NamedTuple):
    inode: int
    key: str


class Report(NamedTuple):
    files: int
    objects: int
    missing: list[Missing]
    leaked: list[ObjectInfo]
    problems: list[str]


def needed(engine: Engine, block_size: int) -> Iterator[Missing]:
    """Each object that a file's slices stand on, with the inode that needs it."""
    removed = {records.number_at(key, 1) for key, _ in engine.scan(b"D")}
    for key, value in engine.scan(b"A"):
        if key[9:10] == b"C" and len(key) == 14 and records.number_at(key, 1) not in removed:
            for each in records.decode_slices(value):
                if each.id:
                    for index in range(-(-each.size // block_size)):
                        size = min(block_size, each.size - index * block_size)
                        yield Missing(records.number_at(key, 1), object_key(each.id, index, size))


def check(engine: Engine, store: ObjectStore, block_size: int, grace: float = GRACE_SECONDS) -> Report:
    """Reads all metadata and lists all objects."""
    objects = {each.key: each for each in store.list("chunks/")}
    used: set[str] = set()
    missing = []
    for each in needed(engine, block_size):
        used.add(each.key)
        if each.key not in objects:
            missing.append(each)
    oldest = time.time() - grace
    leaked = [each for key, each in objects.items() if key not in used and each.mtime <= oldest]
    files, problems = _check_tree(engine)
    return Report(files, len(objects), missing, leaked, problems)


def _check_tree(engine: Engine) -> tuple[int, list[str]]:
    """Counts inodes and compares names, link counts and the usage counters with what is there."""
    inodes: dict[int, records.Attributes] = {}
    links: dict[int, int] = {records.ROOT: 2}
    problems = []
    entries: list[tuple[int, bytes, int, int]] = []
    for key, value in engine.scan(b"A"):
        number, kind = records.number_at(key, 1), key[9:10]
        if trash.in_trash(number) and kind == b"I":
            continue
        if kind == b"I" and len(key) == 10:
            inodes[number] = records.Attributes.decode(number, value)
        elif kind == b"D":
            entries.append((number, key[10:], *records.decode_entry(value)))
    for parent, name, entry_type, inode in entries:
        if trash.in_trash(inode):
            continue
        if inode not in inodes:
            problems.append(f"entry {name!r} of directory {parent} names inode {inode}, which does not exist")
        elif entry_type == 0o040000:
            links[inode] = links.get(inode, 0) + 2
            links[parent] = links.get(parent, 0) + 1
        else:
            links[inode] = links.get(inode, 0) + 1
    for number, attributes in inodes.items():
        if attributes.nlink != links.get(number, 0):
            problems.append(f"inode {number} has {attributes.nlink} links, {links.get(number, 0)} were found")
    return len(inodes), problems + _check_usage(engine, inodes)


def _check_usage(engine: Engine, inodes: dict[int, records.Attributes]) -> list[str]:
    problems = []
    quotas: dict[int, tuple[int, int]] = {
        usage.number_of(key): (0, 0) for key, _ in engine.scan(usage.QUOTA) if len(key) == 6
    }
    space = 0
    for each in inodes.values():
        space += records.space(each)
        if each.quota in quotas:
            size, count = quotas[each.quota]
            quotas[each.quota] = size + records.space(each), count + 1
    used, count = engine.read(usage.used)
    if (used, count) != (space, len(inodes)):
        problems.append(f"usage is {used} bytes and {count} inodes, {space} and {len(inodes)} were found")
    for number, found in quotas.items():
        told = engine.read(lambda tx, number=number: usage.used(tx, usage.quota_usage_prefix(number)))  # type: ignore[misc]
        if told != found:
            problems.append(f"usage of quota {number} is {told[0]} bytes and {told[1]} inodes, {found} were found")
    return problems
