"""Puts sources into a root, as COPY and ADD do.

Folders that are there keep what they are; files take the place of files. Nothing that was not named changes: a folder
that gets a new file keeps its time, so that the same sources always make the same layer.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pybernetes.cluster.images.dockerfile import modes
from pybernetes.cluster.images.dockerfile.sources import Source
from pybernetes.cri.embedded.images import trees
from pybernetes.cri.embedded.syscalls import open_in_root

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


@dataclass
class Target:
    """A root that is written to.

    `owner` and `mode` are what --chown and --chmod said, `latest` is the latest time (in seconds) that anything gets.
    """

    root: int
    owner: tuple[int, int] | None = None
    mode: str = ""
    latest: int | None = None
    _times: dict[str, int] = field(default_factory=dict)
    """The times that folders get in the end, in nanoseconds."""

    def copy(self, sources: Sequence[Source], path: str, *, into: bool) -> None:
        """Copies sources to an absolute path; `into` says that it is a folder. ValueError tells what is in the way."""
        if len(sources) > 1 and not into and not self._is_folder(path):
            raise ValueError(f"several sources need a folder: {path!r} is none, and does not end with /")
        for source in sources:
            if source.is_folder:
                self._copy_folder(source, path)
            elif into or self._is_folder(path):
                self._copy_file(source, posixpath.join(path, source.name))
            else:
                self._copy_file(source, path)

    def make_folder(self, path: str) -> None:
        """Makes a folder, and those above it, if it is not there."""
        self._made(path, self.owner or (0, 0), 0o755, 0)

    def finish(self) -> None:
        """Gives folders their times, those of inner ones first."""
        for path, time in sorted(self._times.items(), reverse=True):
            with contextlib.suppress(OSError):
                folder = open_in_root(self.root, path, _FOLDER)
                try:
                    os.utime(folder, ns=(time, time))
                finally:
                    os.close(folder)

    def _copy_folder(self, source: Source, path: str) -> None:
        self.make_folder(path)  # only what is in the folder is copied
        linked: dict[tuple[int, int], str] = {}
        for entry in source.entries():
            place = posixpath.join(path, entry.path)
            state, inode = entry.state, (entry.state.st_dev, entry.state.st_ino)
            own = self._own(source, state)
            if stat.S_ISDIR(state.st_mode):
                self._made(place, own, self._rights(state), state.st_mtime_ns)
            elif stat.S_ISREG(state.st_mode) and inode in linked:
                self._link(linked[inode], place)
            elif stat.S_ISREG(state.st_mode):
                self._file(source, entry.path, state, place)
                if state.st_nlink > 1:
                    linked[inode] = place
            elif stat.S_ISLNK(state.st_mode):
                with self._place(place) as (above, name):
                    os.symlink(entry.link, name, dir_fd=above)
                    self._finish(above, name, own, state.st_mtime_ns)
            elif stat.S_ISFIFO(state.st_mode):
                with self._place(place) as (above, name):
                    os.mkfifo(name, self._rights(state), dir_fd=above)
                    self._finish(above, name, own, state.st_mtime_ns)

    def _copy_file(self, source: Source, path: str) -> None:
        if self._leads_to_file(path):
            path = self._resolved(path)
        self._file(source, "", source.state, path)

    def _file(self, source: Source, inner: str, state: os.stat_result, path: str) -> None:
        descriptor = source.open(inner)
        try:
            with self._place(path) as (above, name):
                trees.copy_file(
                    descriptor,
                    above,
                    name,
                    owner=self._own(source, state),
                    mode=self._rights(state),
                    time=self._time(state.st_mtime_ns),
                )
        finally:
            os.close(descriptor)

    def _link(self, first: str, path: str) -> None:
        folder = open_in_root(self.root, posixpath.dirname(first), _FOLDER)
        try:
            with self._place(path) as (above, name):
                last = posixpath.basename(first)
                os.link(last, name, src_dir_fd=folder, dst_dir_fd=above, follow_symlinks=False)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _place(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder of a new file and its name there; what was at the place is gone."""
        folder, name = posixpath.split(path)
        if not name:
            raise ValueError(f"{path!r} is a folder, not a file")
        try:
            above = open_in_root(self.root, folder, _FOLDER)
        except OSError:
            self.make_folder(folder)
            above = open_in_root(self.root, folder, _FOLDER)
        try:
            self._times.setdefault(folder, os.fstat(above).st_mtime_ns)
            try:
                state = os.stat(name, dir_fd=above, follow_symlinks=False)
            except FileNotFoundError:
                pass
            else:
                if stat.S_ISDIR(state.st_mode):
                    raise ValueError(f"{path!r} is a folder already, and a file cannot take its place")
                os.unlink(name, dir_fd=above)
            yield above, name
        finally:
            os.close(above)

    def _made(self, path: str, owner: tuple[int, int], mode: int, time: int) -> None:
        """Makes a folder, and those above it, if there is none; one that is there stays as it is."""
        if self._is_folder(path):
            return
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts)):
            self._make("/" + "/".join(parts[:depth]), self.owner or (0, 0), 0o755, 0)
        self._make(path, owner, mode, time)

    def _make(self, path: str, owner: tuple[int, int], mode: int, time: int) -> None:
        if self._is_folder(path):
            return
        above, name = posixpath.split(path)
        folder = open_in_root(self.root, above, _FOLDER)
        try:
            self._times.setdefault(above, os.fstat(folder).st_mtime_ns)
            try:
                os.mkdir(name, dir_fd=folder)
            except FileExistsError:
                raise ValueError(f"{path!r} is not a folder") from None
            os.chown(name, *owner, dir_fd=folder, follow_symlinks=False)
            os.chmod(name, mode, dir_fd=folder)
        finally:
            os.close(folder)
        self._times[path] = self._time(time)

    def _is_folder(self, path: str) -> bool:
        try:
            os.close(open_in_root(self.root, path, _FOLDER))
        except OSError:
            return False
        return True

    def _leads_to_file(self, path: str) -> bool:
        """Whether a link is at the place that leads to a file: the file is replaced then, not the link."""
        try:
            named = open_in_root(self.root, path, os.O_PATH | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            if not stat.S_ISLNK(os.fstat(named).st_mode):
                return False
        finally:
            os.close(named)
        try:
            found = open_in_root(self.root, path, os.O_PATH)
        except OSError:
            return False
        try:
            return stat.S_ISREG(os.fstat(found).st_mode)
        finally:
            os.close(found)

    def _resolved(self, path: str) -> str:
        """Where a link, or a link to a link, leads; absolute links begin at the root."""
        for _ in range(40):
            folder, name = posixpath.split(path)
            above = open_in_root(self.root, folder, _FOLDER)
            try:
                link = os.readlink(name, dir_fd=above)
            except OSError:
                return path
            finally:
                os.close(above)
            path = "/" + posixpath.join(folder, link).lstrip("/")
        raise ValueError(f"{path!r}: too many links")

    def _own(self, source: Source, state: os.stat_result) -> tuple[int, int]:
        return self.owner or ((state.st_uid, state.st_gid) if source.tree.keeps_owners else (0, 0))

    def _rights(self, state: os.stat_result) -> int:
        return modes.changed(self.mode, state.st_mode)

    def _time(self, time: int) -> int:
        return time if self.latest is None else min(time, self.latest * 10**9)

    def _finish(self, above: int, name: str, owner: tuple[int, int], time: int) -> None:
        os.chown(name, *owner, dir_fd=above, follow_symlinks=False)
        time = self._time(time)
        os.utime(name, ns=(time, time), dir_fd=above, follow_symlinks=False)
