"""The processes of a container or a pod as one thing to limit, to measure and to end: a cgroup where we may have any.

Without root there are none, and all that is left is to find the processes: those in a container's mount namespace,
which is kept open for as long as there may be some, because the kernel gives its number to another one afterwards; or,
where there are no namespaces either, those whose environment says so.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from pybernetes.component import offload
from pybernetes.cri.errors import CRIError

from .cgroup import Cgroup, hierarchies, kill_all
from .plain import MARK

REMOVE_WITHIN = 10.0
_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Group(Protocol):
    """The interface of `Cgroup`: see there."""

    def folders(self) -> list[Path]: ...
    def create(self) -> None: ...
    def limit(self, resources: Any) -> None: ...
    def allow_devices(self, rules: Iterable[str] | None) -> None: ...
    def oom_kills(self) -> int: ...
    def cpu_nanoseconds(self) -> int: ...
    def memory(self) -> dict[str, int]: ...
    def processes(self) -> list[int]: ...
    def kill(self) -> None: ...
    def remove(self, patience: float = 2.0) -> None: ...


class Groups(Protocol):
    """Finds groups; `started` and `gone` tell of what is in them."""

    @property
    def kinds(self) -> Sequence[tuple[str, str, str]]:
        """The mounts of a container's /sys/fs/cgroup: folder, file system type and options."""
        ...

    def of(self, parent: str, id: str) -> Group:
        """The group of a container, or of a sandbox's own process."""
        ...

    def pod(self, parent: str, ids: Iterable[str]) -> Group:
        """The group of all of a pod, whose members have these ids."""
        ...

    def started(self, id: str, pid: int) -> None:
        """The first process of a group runs."""
        ...

    def gone(self, id: str) -> None:
        """A group has no process any more, and gets none."""
        ...


class Cgroups:
    """Groups that are the kernel's."""

    @property
    def kinds(self) -> Sequence[tuple[str, str, str]]:
        return hierarchies().kinds

    def of(self, parent: str, id: str) -> Group:
        return Cgroup(f"{parent}/{id}")

    def pod(self, parent: str, ids: Iterable[str]) -> Group:
        return Cgroup(parent)

    def started(self, id: str, pid: int) -> None:
        pass

    def gone(self, id: str) -> None:
        pass


class MarkedGroups:
    """Groups of plain processes, without cgroups or namespaces: their environment says whose they are."""

    kinds: Sequence[tuple[str, str, str]] = ()

    def of(self, parent: str, id: str) -> Group:
        return self.pod(parent, [id])

    def pod(self, parent: str, ids: Iterable[str]) -> Group:
        marks = {f"{MARK}={id}".encode() for id in ids}
        return Processes(lambda pid: not marks.isdisjoint(_environment(pid)))

    def started(self, id: str, pid: int) -> None:
        pass

    def gone(self, id: str) -> None:
        pass


class ProcessGroups:
    """Groups without cgroups, of processes that are in one mount namespace."""

    kinds: Sequence[tuple[str, str, str]] = ()

    def __init__(self) -> None:
        self._namespaces: dict[str, int] = {}
        """Descriptors of mount namespaces, by id."""

    def of(self, parent: str, id: str) -> Group:
        return self.pod(parent, [id])

    def pod(self, parent: str, ids: Iterable[str]) -> Group:
        wanted = {os.fstat(self._namespaces[id]).st_ino for id in ids if id in self._namespaces}
        return Processes(lambda pid: os.stat(f"/proc/{pid}/ns/mnt").st_ino in wanted)

    def started(self, id: str, pid: int) -> None:
        self.gone(id)
        with contextlib.suppress(OSError):  # it has ended already
            self._namespaces[id] = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)

    def gone(self, id: str) -> None:
        descriptor = self._namespaces.pop(id, None)
        if descriptor is not None:
            os.close(descriptor)


class Processes:
    """All processes that belong to something, by their pids; they may be gone. They cannot be limited."""

    def __init__(self, belongs: Callable[[str], bool]) -> None:
        self._belongs = belongs

    def folders(self) -> list[Path]:
        return []

    def create(self) -> None:
        pass

    def limit(self, resources: Any) -> None:
        pass

    def allow_devices(self, rules: Iterable[str] | None) -> None:
        pass

    def oom_kills(self) -> int:
        return 0  # not counted

    def processes(self) -> list[int]:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and self._has(name)]

    def _has(self, pid: str) -> bool:
        try:
            return self._belongs(pid)
        except OSError:  # gone, or another user's
            return False

    def cpu_nanoseconds(self) -> int:
        """Of those that live, and of their children that have ended."""
        return sum(sum(map(int, _stat(pid)[11:15])) for pid in self.processes()) * _TICK

    def memory(self) -> dict[str, int]:
        fields = [_stat(pid) for pid in self.processes()]
        resident = sum(int(each[21]) for each in fields) * _PAGE
        return {
            "usage": resident,
            "working_set": resident,
            "rss": resident,
            "page_faults": sum(int(each[7]) for each in fields),
            "major_page_faults": sum(int(each[9]) for each in fields),
            "limit": 0,
        }

    def kill(self) -> None:
        kill_all(self.processes)

    def remove(self, patience: float = 2.0) -> None:
        deadline = time.monotonic() + patience
        while found := self.processes():
            if time.monotonic() > deadline:
                raise CRIError("Unknown", f"processes were killed and have not gone: {', '.join(map(str, found))}")
            self.kill()
            time.sleep(0.002)


async def remove_group(id: str, group: Group) -> None:
    """Remove the group of a container or sandbox whose processes were killed. Raises CRIError if they do not go.

    In a thread of its own: a process that waits for a file system that does not answer takes its time to go.
    """
    try:
        await offload.run(f"processes of {id}", REMOVE_WITHIN, group.remove)
    except offload.Overdue as error:
        raise CRIError("DeadlineExceeded", str(error)) from None


def _environment(pid: str) -> list[bytes]:
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read().split(b"\0")


def _stat(pid: int) -> list[str]:
    """/proc/PID/stat from the state on, which is field 3; zeros if the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ["0"] * 50
    return text[text.rindex(")") + 2 :].split()
