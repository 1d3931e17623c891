"""Pid files that cannot lie: a pid counts only together with the start time of its process.

The kernel reuses pids, so a file left behind by a crash may name a stranger. Field 22 of /proc/PID/stat (start time in
clock ticks since boot) tells them apart. The supervisor imports this module, so it imports nothing but `os`.
"""

from __future__ import annotations

import os


class Process:
    """A process as a pid file names it; `restarts` counts how often the supervisor had to start it again."""

    __slots__ = ("pid", "restarts", "start_time")

    def __init__(self, pid: int, start_time: int, restarts: int = 0) -> None:
        self.pid = pid
        self.start_time = start_time
        self.restarts = restarts

    @property
    def alive(self) -> bool:
        """Whether exactly this process still runs (a zombie does not)."""
        return start_time(self.pid) == self.start_time


def start_time(pid: int) -> int | None:
    """The start time of a running process, None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    # The second field is the program's name in brackets and may itself hold blanks and brackets.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def write(path: str, pid: int, restarts: int = 0) -> None:
    """Writes the pid file of a running process in one step, so that a reader never sees half of it."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w") as file:
        file.write(f"{pid} {start_time(pid) or 0} {restarts}\n")
    os.replace(temporary, path)


def read(path: str) -> Process | None:
    """The process a pid file names, alive or not; None if there is no such file."""
    try:
        with open(path) as file:
            pid, started, restarts = (int(word) for word in file.read().split())
    except FileNotFoundError:
        return None
    except ValueError:
        return Process(0, -1)  # Damaged: as good as stale, and pid 0 is never alive.
    return Process(pid, started, restarts)


def remove(path: str) -> None:
    """Removes a pid file if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
