"""One line for each operation of a mount: when, who, what, on which inode, how it ended, how long it took."""

from __future__ import annotations

import os
import time


class AccessLog:
    """Appends to a file; a full disk loses lines, never operations."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, name: str, inode: int, uid: int, gid: int, pid: int, error: int, seconds: float) -> None:
        now = time.time()
        stamp = time.strftime("%Y.%m.%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d}"
        outcome = "OK" if error == 0 else os.strerror(error)
        line = f"{stamp} [uid:{uid},gid:{gid},pid:{pid}] {name.lower()} ({inode}): {outcome} <{seconds:.6f}>\n"
        try:
            os.write(self._file, line.encode())
        except OSError:
            pass
