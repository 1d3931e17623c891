"""Two clients of one volume do at random what two programs do in one local folder: the same results, the same tree."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import itertools
import os
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NAMES = ["a", "b", "dir", "dir/a", "dir/b", "dir/sub"]
NOREPLACE, EXCHANGE = 1, 2
name, client = st.sampled_from(NAMES), st.sampled_from([0, 1])
OPERATION = st.one_of(
    st.tuples(st.sampled_from(["create", "mkdir", "unlink", "rmdir", "read", "append", "truncate"]), client, name),
    st.tuples(st.sampled_from(["rename", "noreplace", "exchange", "link", "symlink"]), client, name, name),
    st.tuples(st.sampled_from(["open", "close"]), client, name),
    st.tuples(st.sampled_from(["flock", "lockf"]), client, name, st.sampled_from(["exclusive", "shared", "unlock"])),
)
LOCKS = {"exclusive": fcntl.LOCK_EX, "shared": fcntl.LOCK_SH, "unlock": fcntl.LOCK_UN}
_libc = ctypes.CDLL(None, use_errno=True)


class World:
    """A folder as two programs see it, each with its open files."""

    def __init__(self, *roots: Path) -> None:
        self.roots = roots
        self.files: dict[tuple[int, str], int] = {}

    def do(self, kind: str, who: int, *names: str) -> object:
        """The result of an operation, or the name of its error."""
        try:
            return getattr(self, f"_{kind}")(who, *names)
        except OSError as error:
            return errno.errorcode[error.errno or 0]

    def _path(self, who: int, name: str) -> Path:
        return self.roots[who] / name

    def _create(self, who: int, name: str) -> None:
        os.close(os.open(self._path(who, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))

    def _mkdir(self, who: int, name: str) -> None:
        os.mkdir(self._path(who, name))

    def _unlink(self, who: int, name: str) -> None:
        os.unlink(self._path(who, name))

    def _rmdir(self, who: int, name: str) -> None:
        os.rmdir(self._path(who, name))

    def _read(self, who: int, name: str) -> bytes:
        return self._path(who, name).read_bytes()

    def _append(self, who: int, name: str) -> None:
        descriptor = os.open(self._path(who, name), os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, b"%d " % who * 10)
        finally:
            os.close(descriptor)

    def _truncate(self, who: int, name: str) -> None:
        os.truncate(self._path(who, name), 7)

    def _rename(self, who: int, old: str, new: str) -> None:
        os.rename(self._path(who, old), self._path(who, new))

    def _rename_with(self, who: int, old: str, new: str, flag: int) -> None:
        paths = [os.fsencode(self._path(who, each)) for each in (old, new)]
        if _libc.renameat2(-100, paths[0], -100, paths[1], flag) != 0:
            raise OSError(ctypes.get_errno(), "renameat2")

    def _noreplace(self, who: int, old: str, new: str) -> None:
        self._rename_with(who, old, new, NOREPLACE)

    def _exchange(self, who: int, old: str, new: str) -> None:
        self._rename_with(who, old, new, EXCHANGE)

    def _link(self, who: int, old: str, new: str) -> None:
        os.link(self._path(who, old), self._path(who, new), follow_symlinks=False)

    def _symlink(self, who: int, target: str, new: str) -> None:
        os.symlink(os.path.basename(target), self._path(who, new))

    def _open(self, who: int, name: str) -> None:
        self._close(who, name)
        self.files[who, name] = os.open(self._path(who, name), os.O_RDWR)

    def _close(self, who: int, name: str) -> None:
        descriptor = self.files.pop((who, name), None)
        if descriptor is not None:
            os.close(descriptor)

    def _flock(self, who: int, name: str, how: str) -> object:
        descriptor = self.files.get((who, name))
        return None if descriptor is None else fcntl.flock(descriptor, LOCKS[how] | fcntl.LOCK_NB)

    def _lockf(self, who: int, name: str, how: str) -> object:
        """A lock of an open file description, because both clients are in this process."""
        descriptor = self.files.get((who, name))
        if descriptor is None:
            return None
        kinds = {"exclusive": fcntl.F_WRLCK, "shared": fcntl.F_RDLCK, "unlock": fcntl.F_UNLCK}
        wanted = _flock(kinds[how], os.SEEK_SET, 3, 4)
        fcntl.fcntl(descriptor, 37, wanted)  # F_OFD_SETLK
        return None

    def tree(self, who: int) -> dict[str, tuple[object, ...]]:
        found: dict[str, tuple[object, ...]] = {}
        for folder, folders, files in os.walk(self.roots[who]):
            for each in (*folders, *files):
                path = Path(folder, each)
                stat = path.lstat()
                content: object = os.readlink(path) if path.is_symlink() else path.read_bytes() if each in files else ""
                links = stat.st_nlink
                found[str(path.relative_to(self.roots[who]))] = (oct(stat.st_mode), links, content)
        return found

    def close(self) -> None:
        for each in self.files.values():
            os.close(each)


def _flock(kind: int, whence: int, start: int, length: int) -> bytes:
    import struct

    return struct.pack("hhqqi4x", kind, whence, start, length, 0)


def test_two_clients_behave_as_two_programs_in_a_local_folder(mounts: Any, clean: Any, tmp_path: Path) -> None:
    mounts.format("--block-size", "64")
    flags = ("--entry-cache", "0", "--attr-cache", "0")
    clients = [mounts.mount(each, *flags) for each in ("one", "two")]
    local = tmp_path / "local"
    local.mkdir()
    numbers = itertools.count()

    @settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(OPERATION, min_size=10, max_size=60))
    def run(operations: list[tuple[Any, ...]]) -> None:
        place = str(next(numbers))
        (local / place).mkdir()
        (clients[0] / place).mkdir()
        wanted = World(local / place, local / place)
        found = World(*(each / place for each in clients))
        try:
            for step, operation in enumerate(operations):
                assert found.do(*operation) == wanted.do(*operation), (step, operation)
        finally:
            wanted.close()
            found.close()
        for who in (0, 1):
            assert found.tree(who) == wanted.tree(0)

    run()
    for each in clients:
        mounts.umount(each)
    clean()
