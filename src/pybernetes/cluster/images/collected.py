"""Files of this machine on their way into an image, with the libraries that programs among them link to."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from pybernetes.cluster.images import elf, oci

LEFT_OUT = re.compile(
    r"/usr/share/(doc|man|info|locale|lintian|bug|bash-completion|zsh|vim|apport|doc-base|menu|pixmaps|reportbug)(/|$)"
    r"|/(usr/)?lib/systemd(/|$)|/etc/(init\.d|logrotate\.d|ufw|cron\.\w+|systemd)(/|$)"
)
FOLDERS = ("dev", "etc", "home", "proc", "run", "sys", "usr/bin", "usr/lib", "usr/sbin", "var/lib", "var/log")
# Debian's machines have these as links into /usr, and packages name files by either way.
MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


class Collected:
    """Files of this machine by their real paths. Invariant: each is once in `paths`, its folder's links resolved."""

    def __init__(self) -> None:
        self.paths: dict[str, os.stat_result] = {}
        self.unreadable: list[str] = []

    def add_all(self, paths: Iterable[str]) -> None:
        for path in paths:
            if not LEFT_OUT.search(path):
                self.add(path)

    def add(self, path: str) -> None:
        """Adds one path, if it exists and is world-readable."""
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        try:
            state = os.lstat(real)
        except OSError:
            return
        if real in self.paths or real in self.unreadable:
            return
        if stat.S_ISREG(state.st_mode) and not state.st_mode & stat.S_IROTH:
            self.unreadable.append(real)
        elif stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode) or stat.S_ISLNK(state.st_mode):
            self.paths[real] = state

    def add_tree(self, top: str) -> None:
        """Adds a folder with all that is in it now; a link to what the image has not is left out."""
        self.add(top)
        for folder, folders, names in os.walk(top):
            for name in [*folders, *names]:
                path = os.path.join(folder, name)
                if not os.path.islink(path) or os.path.realpath(path) in self.paths:
                    self.add(path)

    def interpreters(self) -> set[str]:
        """Programs that scripts in it are written for, but for the shell, which busybox is."""
        found = set()
        for path, state in self.paths.items():
            if stat.S_ISREG(state.st_mode) and state.st_mode & stat.S_IXOTH:
                with open(path, "rb") as file:
                    words = (
                        file.readline(256).decode("latin-1").removeprefix("#!").split()
                        if file.peek(2)[:2] == b"#!"
                        else []
                    )
                if words[:1] == ["/usr/bin/env"] and len(words) > 1:
                    words = [f"/usr/bin/{words[1]}"]
                if words and not words[0].endswith("/sh"):
                    found.add(words[0])
        return {path for path in found if os.path.realpath(path) not in self.paths}

    def add_libraries(self, cache: dict[str, str]) -> None:
        """Adds the libraries that programs and libraries in it link to, with the links by which they are found."""
        todo = [path for path, state in self.paths.items() if stat.S_ISREG(state.st_mode)]
        while todo:
            wanted = elf.needs(Path(todo.pop()))
            if wanted is None:
                continue
            found = [self._find(name, wanted.folders, cache) for name in wanted.libraries]
            for path in [*found, wanted.interpreter]:
                while path is not None:
                    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
                    new = real not in self.paths
                    self.add(real)
                    if os.path.islink(real):
                        path = os.path.join(os.path.dirname(real), os.readlink(real))
                        continue
                    if new and real in self.paths:
                        todo.append(real)
                    path = None

    @staticmethod
    def _find(name: str, folders: Iterable[str], cache: dict[str, str]) -> str | None:
        for folder in folders:
            if os.path.exists(f"{folder}/{name}"):
                return f"{folder}/{name}"
        return cache.get(name)

    def entries(self) -> Iterator[oci.Entry]:
        for path, state in sorted(self.paths.items()):
            mode, owner = stat.S_IMODE(state.st_mode), (state.st_uid, state.st_gid)
            if stat.S_ISLNK(state.st_mode):
                yield oci.Entry(path, link=os.readlink(path), mode=0o777)
            elif stat.S_ISDIR(state.st_mode):
                yield oci.Entry(path, mode=mode, owner=owner)
            else:
                yield oci.Entry(path, Path(path), mode=mode, owner=owner)


def library_cache() -> dict[str, str]:
    """Libraries by name, from the loader's cache; the first of a name is the one for this machine."""
    try:
        shown = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        return {}
    found: dict[str, str] = {}
    for line in shown.splitlines():
        name, arrow, path = line.strip().partition(" => ")
        if arrow:
            found.setdefault(name.split(" ")[0], path)
    return found


def base() -> list[oci.Entry]:
    """The entries of every image: the folders, the links of a merged /usr, and the names of the system's users."""
    links = [oci.link(name, f"usr/{name}") for name in MERGED if os.path.islink(f"/{name}")]
    return [
        *(oci.folder(path) for path in FOLDERS),
        oci.folder("root", 0o700),
        oci.folder("tmp", 0o1777),
        oci.folder("var/tmp", 0o1777),
        oci.link("var/run", "/run"),
        *links,
        *(oci.folder(link.link or "") for link in links),
        oci.file("etc/passwd", _accounts("/etc/passwd")),
        oci.file("etc/group", _accounts("/etc/group")),
        oci.file("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n"),
    ]


def _accounts(path: str) -> bytes:
    """The system's users or groups; people of this machine are none of an image's business."""
    lines = Path(path).read_text().splitlines()
    kept = [
        line for line in lines if (number := line.split(":")[2]).isdigit() and (int(number) < 1000 or number == "65534")
    ]
    return "".join(f"{_without_members(line)}\n" for line in kept).encode()


def _without_members(line: str) -> str:
    fields = line.split(":")
    return line if len(fields) > 4 else ":".join([*fields[:3], ""])
