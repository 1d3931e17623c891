"""`pyb logs`: what the components of a cluster have written, by the names that `pyb status` shows.

`node-1/kubelet` is one program of one node, `kubelet` that of all nodes; without a name everything is shown. Lines of
several components have the component's name before them.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from pathlib import Path
from typing import BinaryIO

from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import Layout, locate

LOOK = 0.1  # seconds between looks at logs that are followed


def main(argv: list[str]) -> int:
    """Shows the logs of the cluster the flags name."""
    parser = flags.parser("logs", "Shows what the components of a cluster have written.")
    parser.add_argument("component", nargs="?", default="", help="a name that `status` shows; default: all of them")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is written from now on")
    parser.add_argument("--tail", type=flags.count, metavar="N", help="only the last lines (default: all)")
    arguments = parser.parse_args(argv)
    layout = locate(arguments.name, arguments.data_dir)
    found = logs(layout)
    chosen = {name: path for name, path in found.items() if _fits(name, arguments.component)}
    if not chosen and not found:
        raise ClusterError(f"there is no cluster {layout.name!r}; {flags.command('up', layout.name)} makes one")
    if not chosen:
        raise ClusterError(f"no component {arguments.component!r}; there are: {', '.join(found)}")
    width = max(map(len, chosen)) if len(chosen) > 1 else 0
    try:
        readers = [_Log(f"{name:<{width}} | ".encode() if width else b"", path) for name, path in chosen.items()]
        for reader in readers:
            reader.show(arguments.tail, arguments.follow)
        while arguments.follow:
            time.sleep(LOOK)
            for reader in readers:
                reader.show_more()
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    return 0


def logs(layout: Layout) -> dict[str, Path]:
    """The logs of a cluster by the component's name: `apiserver`, `node-1/kubelet`."""
    nodes = sorted((each.name for each in layout.data.glob("nodes/*") if each.is_dir()), key=len, reverse=True)
    found = {}
    for path in sorted(layout.logs.glob("*.log")):
        node = next((each for each in nodes if path.stem.startswith(f"{each}-")), "")
        found[f"{node}/{path.stem.removeprefix(f'{node}-')}" if node else path.stem] = path
    return found


def _fits(name: str, wanted: str) -> bool:
    return wanted in ("", name, name.partition("/")[2])


class _Log:
    """A log, as far as it was shown."""

    def __init__(self, prefix: bytes, path: Path) -> None:
        self._prefix = prefix
        self._path = path
        self._file: BinaryIO = open(path, "rb")  # noqa: SIM115
        self._rest = b""

    def show(self, tail: int | None, follow: bool) -> None:
        """Show the last lines, or everything. An incomplete line waits if more is to come."""
        lines = deque(self._file, maxlen=tail) if tail is not None else self._file
        for line in lines:
            if follow and not line.endswith(b"\n"):
                self._rest = line
            else:
                self._print(line if line.endswith(b"\n") else line + b"\n")
        sys.stdout.flush()

    def show_more(self) -> None:
        """Show what was written since; a log that was emptied (by its rotation) or replaced begins anew."""
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return
        if there.st_ino != self._inode():
            self._file.close()
            self._file = open(self._path, "rb")  # noqa: SIM115
        elif there.st_size < self._file.tell():
            self._file.seek(0)
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            self._print(line + b"\n")
        if lines:
            sys.stdout.flush()

    def _inode(self) -> int:
        return os.fstat(self._file.fileno()).st_ino

    def _print(self, line: bytes) -> None:
        sys.stdout.buffer.write(self._prefix + line)
