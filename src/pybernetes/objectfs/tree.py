"""Work on whole trees without a mount: remove, clone, and give to a quota. Each step is a transaction of its own, so
that trees of any size pass, and a command that was interrupted is run again."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from errno import EEXIST, EINVAL

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.meta import records, usage
from pybernetes.objectfs.meta.engine import Engine, Transaction
from pybernetes.objectfs.meta.namespace import Namespace
from pybernetes.objectfs.meta.records import Attributes, fail
from pybernetes.objectfs.meta.slices import Slices
from pybernetes.objectfs.meta.usage import Quota, quota_key, quota_usage_prefix, used


def remove(names: Namespace, parent: int, name: bytes) -> Iterator[bytes]:
    """Removes a name with everything below it, deepest first; yields each name."""
    found = names.lookup(parent, name)
    if found.is_directory:
        for entry in names.entries(found.inode):
            yield from remove(names, found.inode, entry.name)
        names.rmdir(parent, name)
    else:
        names.unlink(parent, name)
    yield name


def clone(names: Namespace, slices: Slices, source: int, parent: int, name: bytes) -> Iterator[bytes]:
    """Makes a copy that shares the source's data; yields each name. The copy appears under its name when it begins."""
    model = names.get(source)
    folder = parent
    while folder != records.ROOT:
        if folder == source:
            raise fail(EINVAL)
        folder = names.get(folder).parent
    links: dict[int, int] = {}
    yield from _clone(names, slices, model, parent, name, links)


def _clone(
    names: Namespace, slices: Slices, model: Attributes, parent: int, name: bytes, links: dict[int, int]
) -> Iterator[bytes]:
    if model.inode in links:
        names.link(links[model.inode], parent, name)
        yield name
        return
    target = names.readlink(model.inode) if stat.S_ISLNK(model.mode) else b""
    made = names.create(parent, name, model.mode, model.uid, model.gid, model.rdev, target)
    if model.nlink > 1 and not model.is_directory:
        links[model.inode] = made.inode
    names.copy_attributes(model.inode, made.inode)
    if model.is_file:
        slices.clone(model.inode, made.inode)
    yield name
    if model.is_directory:
        for entry in names.entries(model.inode):
            yield from _clone(names, slices, names.get(entry.inode), made.inode, entry.name, links)


class Quotas:
    """The quotas of folders. Files count for the folder that they were made in; folders with quotas are not nested."""

    def __init__(self, engine: Engine, names: Namespace) -> None:
        self._engine, self._names = engine, names

    def all(self) -> dict[int, tuple[Quota, tuple[int, int]]]:
        """Number -> limits and use."""
        return {
            number: (Quota.decode(value), self._engine.read(lambda tx, n=number: used(tx, quota_usage_prefix(n))))  # type: ignore[misc]
            for key, value in self._engine.scan(usage.QUOTA)
            for number in [usage.number_of(key)]
        }

    def get(self, root: int) -> tuple[Quota, tuple[int, int]] | None:
        number = self._names.get(root).quota
        found = self.all().get(number) if number else None
        return found if found is not None and found[0].root == root else None

    def set(self, root: int, size: int, inodes: int) -> Iterator[int]:
        """Gives a folder limits, and yields each inode below it that counts for them from now on."""
        folder = self._names.get(root)
        if not folder.is_directory:
            raise ObjectFSError("a quota is for a folder")
        if root == records.ROOT:
            raise ObjectFSError("the whole volume's limits are set by `config --capacity --inodes`")
        known = self.all()
        if folder.quota in known and known[folder.quota][0].root != root:
            raise ObjectFSError(f"the folder counts for the quota of inode {known[folder.quota][0].root} already")
        if folder.quota not in known:
            for quota, _ in known.values():
                if self._below(quota.root, root):
                    raise ObjectFSError(f"the folder has inode {quota.root} below it, which has a quota of its own")

        def write(tx: Transaction) -> int:
            current = records.load(tx, root).quota
            number = current if current in known else records.take_numbers(tx, records.NEXT_QUOTA, 1)
            tx.put(quota_key(number), Quota(root, size, inodes).encode())
            return number

        number = self._engine.transact(write)
        yield from self._give(root, number)

    def remove(self, root: int) -> Iterator[int]:
        found = self.get(root)
        if found is None:
            raise ObjectFSError("the folder has no quota")
        number = self._names.get(root).quota
        yield from self._give(root, 0)

        def drop(tx: Transaction) -> None:
            tx.delete(quota_key(number))
            for key, _ in tx.glance(quota_usage_prefix(number)):
                tx.delete(key)

        self._engine.transact(drop)

    def _give(self, inode: int, quota: int) -> Iterator[int]:
        """A folder first, so that what is made in it meanwhile has the quota; then what is below."""

        def stamp(tx: Transaction) -> bool:
            value = tx.get(records.inode_key(inode))
            if value is None:
                return False
            attributes = Attributes.decode(inode, value)
            if attributes.quota != quota:
                usage.move(tx, attributes, quota)
                records.store(tx, attributes)
            return attributes.is_directory

        is_directory = self._engine.transact(stamp)
        yield inode
        if is_directory:
            for entry in self._names.entries(inode):
                yield from self._give(entry.inode, quota)

    def _below(self, inode: int, root: int) -> bool:
        while inode != records.ROOT:
            if inode == root:
                return True
            try:
                inode = self._names.get(inode).parent
            except FileNotFoundError:
                return False
        return False


def check_free(names: Namespace, parent: int, name: bytes) -> None:
    """EEXIST if the name is taken."""
    try:
        names.lookup(parent, name)
    except FileNotFoundError:
        return
    raise fail(EEXIST)
