"""Sources of COPY and ADD: files of the context, of a stage, of an image, or written in the Dockerfile itself.

Every path is looked up as if the tree were the root, so neither `..` nor a link leads out of it. What .dockerignore
leaves out is not there, under any name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from pybernetes.cluster.images.dockerfile import modes
from pybernetes.cluster.images.dockerfile.ignoring import Patterns, clean, has_wildcard, pattern_of
from pybernetes.cri.embedded.images import trees
from pybernetes.cri.embedded.syscalls import open_in_root

NOTHING = Patterns([])


class NoSource(ValueError):
    """The source to be copied does not exist."""


@dataclass(frozen=True)
class Tree:
    """Files below a root. Of a context the owners do not count: they are people of this machine."""

    root: int
    ignored: Patterns = NOTHING
    keeps_owners: bool = True


@dataclass(frozen=True)
class Source:
    """A file or folder that was asked for: where it is, and the name that it was asked for by."""

    tree: Tree
    path: str
    name: str
    state: os.stat_result
    excluded: Patterns = NOTHING

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.state.st_mode)

    def entries(self) -> Iterator[trees.Entry]:
        """The entries of the folder."""
        ignored, excluded = self.tree.ignored, self.excluded
        hidden = _hidden_folders(self) if ignored.brings_back or excluded.brings_back else set()

        def skip(path: str) -> bool:
            if path in hidden:
                return False
            return ignored.ignores(trees.join(self.path, path)) or excluded.ignores(path)

        yield from trees.walk(self.tree.root, self.path, skip)

    def open(self, path: str = "") -> int:
        """A file of it, to be read."""
        flags = os.O_RDONLY | os.O_NONBLOCK | (os.O_NOFOLLOW if path else 0)
        return open_in_root(self.tree.root, trees.join(self.path, path), flags)


def find(tree: Tree, wanted: str, excluded: Patterns = NOTHING) -> list[Source]:
    """The sources that a path or pattern names; none for a pattern without a match. Raises NoSource and ValueError."""
    path = clean(wanted)
    if not has_wildcard(path):
        found = _lookup(tree, path, excluded)
        if found is None:
            raise NoSource(f"{wanted!r} is not there" + (" (see .dockerignore)" if _is_hidden(tree, path) else ""))
        return [found]
    paths = [""]
    for part in path.split("/"):
        pattern = pattern_of(part)
        paths = [
            trees.join(above, name)
            for above in paths
            for name in (_names(tree, above) if has_wildcard(part) else [part])
            if pattern.fullmatch(name)
        ]
    candidates = (_lookup(tree, each, excluded) for each in paths)
    return [each for each in candidates if each is not None and not excluded.ignores(each.name)]


def fingerprint(source: Source, owner: tuple[int, int] | None = None, mode: str = "") -> str:
    """A digest of all that a copy has of a source, but for times: those change with every checkout."""
    hashed = hashlib.sha256()
    linked: dict[tuple[int, int], str] = {}

    def add(path: str, state: os.stat_result, link: str) -> None:
        own = owner or ((state.st_uid, state.st_gid) if source.tree.keeps_owners else (0, 0))
        first = linked.setdefault((state.st_dev, state.st_ino), path) if state.st_nlink > 1 else path
        content, attributes = "", {}
        if stat.S_ISREG(state.st_mode) and first == path:
            descriptor = source.open(path)
            with open(descriptor, "rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
                attributes = {key: value.hex() for key, value in trees.attributes(descriptor).items()}
        rights = stat.S_IFMT(state.st_mode) | modes.changed(mode, state.st_mode)
        line = [os.fsencode(path).hex(), rights, own, os.fsencode(link).hex(), content, first == path, attributes]
        hashed.update(json.dumps(line).encode() + b"\n")

    if not source.is_folder:
        add("", source.state, "")
    else:
        for entry in source.entries():
            add(entry.path, entry.state, entry.link)
    return hashed.hexdigest()


def _lookup(tree: Tree, path: str, excluded: Patterns) -> Source | None:
    """Resolve a path, following links; None if it does not exist."""
    if path and _is_hidden(tree, path) and not tree.ignored.brings_back:
        return None
    try:
        found = open_in_root(tree.root, path or ".", os.O_PATH)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    try:
        state = os.fstat(found)
        real = _real(tree, found, path)
    finally:
        os.close(found)
    folder = stat.S_ISDIR(state.st_mode)
    for each in (path, real):
        if each and _is_hidden(tree, each) and not (folder and tree.ignored.brings_back):
            return None
    if not folder and not stat.S_ISREG(state.st_mode):
        raise ValueError(f"{path!r} is neither a file nor a folder")
    return Source(tree, real, posixpath.basename(path), state, excluded)


def _real(tree: Tree, found: int, path: str) -> str:
    """The path that links lead to. Only of a context it matters; of a layer the kernel tells none."""
    if not tree.ignored:
        return path
    root, real = os.readlink(f"/proc/self/fd/{tree.root}"), os.readlink(f"/proc/self/fd/{found}")
    return real.removeprefix(root).lstrip("/") if real == root or real.startswith(root.rstrip("/") + "/") else path


def _is_hidden(tree: Tree, path: str) -> bool:
    return tree.ignored.ignores(path)


def _names(tree: Tree, above: str) -> list[str]:
    with contextlib.suppress(OSError):
        folder = open_in_root(tree.root, above or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            return sorted(os.listdir(folder))
        finally:
            os.close(folder)
    return []


def _hidden_folders(source: Source) -> set[str]:
    """Folders that are ignored, but have something in them that is not."""
    found: set[str] = set()
    for entry in trees.walk(source.tree.root, source.path):
        kept = not source.tree.ignored.ignores(trees.join(source.path, entry.path))
        if kept and not source.excluded.ignores(entry.path):
            above = posixpath.dirname(entry.path)
            while above:
                found.add(above)
                above = posixpath.dirname(above)
    return found
