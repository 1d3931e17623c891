"""cgroups of containers, v1 and v2: made below the pod's, limited, read, emptied, removed.

A `Cgroup` is one path in all hierarchies. What a kernel lacks (no swap accounting, no hugetlb) is passed over,
a limit that it refuses is an error with the file's name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pybernetes.cri.cpu_weight import shares_to_weight
from pybernetes.cri.errors import CRIError

from . import devices

UNLIMITED = 1 << 62  # what the kernel shows for "no limit" is near 2**63
DEVICES = (
    # every device may be made, these may be used: null zero full random urandom tty ptmx console, terminals
    *("c *:* m", "b *:* m", "c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm"),
    *("c 5:0 rwm", "c 5:1 rwm", "c 5:2 rwm", "c 136:* rwm"),
)


@dataclass(frozen=True)
class Hierarchies:
    """The mounted hierarchies by controller; v2 has one, under the name "unified"."""

    v2: bool
    mounts: Mapping[str, Path]
    kinds: tuple[tuple[str, str, str], ...]
    """Folder, file system type and options, to mount the same in a container."""


@cache
def hierarchies() -> Hierarchies:
    """The cgroup hierarchies of this machine. With both versions mounted, controllers are in v1."""
    mounts: dict[str, Path] = {}
    kinds: list[tuple[str, str, str]] = []
    unified: Path | None = None
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        where, (kind, _, options) = before.split()[4], after.split()[:3]
        if kind == "cgroup2" and unified is None:
            unified = Path(where)
        if kind != "cgroup" or Path(where).name in {folder for folder, _, _ in kinds}:
            continue
        names = [each for each in options.split(",") if each not in ("rw", "ro", "relatime", "xattr")]
        named = [each.removeprefix("name=") for each in names if each.startswith("name=")]
        wanted = ",".join(["none", *names] if named else names)
        kinds.append((Path(where).name, "cgroup", wanted))
        for name in named or names:
            mounts[name] = Path(where)
    if "memory" in mounts:
        return Hierarchies(False, mounts, tuple(kinds))
    if unified is None:
        raise CRIError("FailedPrecondition", "no cgroups are mounted: is /sys/fs/cgroup there?")
    return Hierarchies(True, {"unified": unified}, (("", "cgroup2", ""),))


class Cgroup:
    """The cgroup of one container or sandbox."""

    def __init__(self, path: str, found: Hierarchies | None = None) -> None:
        self._found = found or hierarchies()
        self.path = path.strip("/")

    def folders(self) -> list[Path]:
        """Its folder in each hierarchy."""
        return list(dict.fromkeys(mount / self.path for mount in self._found.mounts.values()))

    def create(self) -> None:
        """Makes it, and what is missing above it."""
        for mount in dict.fromkeys(self._found.mounts.values()):
            if self._found.v2:
                above = mount
                for part in Path(self.path).parts:
                    _delegate(above)
                    above = above / part
                    above.mkdir(exist_ok=True)
            else:
                os.makedirs(mount / self.path, exist_ok=True)
        if (cpuset := self._found.mounts.get("cpuset")) is not None:
            for file in ("cpuset.cpus", "cpuset.mems"):
                _inherit(cpuset, Path(self.path), file)

    def limit(self, resources: Any) -> None:
        """Sets what a `LinuxContainerResources` says; 0 and empty mean that nothing is said."""
        if self._found.v2:
            self._limit_v2(resources)
        else:
            self._limit_v1(resources)

    def _limit_v1(self, wanted: Any) -> None:
        if wanted.cpu_shares:
            self._write("cpu", "cpu.shares", wanted.cpu_shares)
        self._cpu_v1(wanted.cpu_period, wanted.cpu_quota)
        if wanted.memory_limit_in_bytes:
            self._memory_v1(wanted.memory_limit_in_bytes, wanted.memory_swap_limit_in_bytes)
        if wanted.cpuset_cpus:
            self._write("cpuset", "cpuset.cpus", wanted.cpuset_cpus)
        if wanted.cpuset_mems:
            self._write("cpuset", "cpuset.mems", wanted.cpuset_mems)

    def _cpu_v1(self, period: int, quota: int) -> None:
        """The old quota in the new period may be more than the pod has: then the new quota goes first."""
        steps = [("cpu.cfs_period_us", period), ("cpu.cfs_quota_us", quota)]
        if period and quota and self._number("cpu", "cpu.cfs_period_us") > period:
            steps.reverse()
        for name, value in steps:
            if value:
                self._write("cpu", name, value)

    def _memory_v1(self, limit: int, swap: int) -> None:
        """The limit with swap must never be below the one without: which goes first depends on the direction."""
        swap_file = self._found.mounts["memory"] / self.path / "memory.memsw.limit_in_bytes"
        steps = [("memory.limit_in_bytes", limit)]
        if swap and swap_file.exists():
            grows = limit > self._number("memory", "memory.limit_in_bytes")
            steps.insert(0 if grows else 1, ("memory.memsw.limit_in_bytes", swap))
        for name, value in steps:
            self._write("memory", name, value)

    def _limit_v2(self, wanted: Any) -> None:
        if wanted.cpu_shares:
            self._write("unified", "cpu.weight", shares_to_weight(wanted.cpu_shares))
        if wanted.cpu_quota:
            quota = "max" if wanted.cpu_quota < 0 else str(wanted.cpu_quota)
            self._write("unified", "cpu.max", f"{quota} {wanted.cpu_period or 100000}")
        if wanted.memory_limit_in_bytes:
            limit = wanted.memory_limit_in_bytes
            self._write("unified", "memory.max", "max" if limit < 0 else limit)
            if wanted.memory_swap_limit_in_bytes >= limit > 0:
                with contextlib.suppress(CRIError):  # a kernel without swap accounting
                    self._write("unified", "memory.swap.max", wanted.memory_swap_limit_in_bytes - limit)
        if wanted.cpuset_cpus:
            self._write("unified", "cpuset.cpus", wanted.cpuset_cpus)
        if wanted.cpuset_mems:
            self._write("unified", "cpuset.mems", wanted.cpuset_mems)
        for name, value in wanted.unified.items():
            if "/" in name or name.startswith("."):
                raise CRIError("InvalidArgument", f"unified resource {name!r} must be a file name")
            self._write("unified", name, value)

    def allow_devices(self, rules: Iterable[str] | None) -> None:
        """Only the usual devices and these; None allows all. Cgroup v2 has a program in place of the file."""
        if self._found.v2 and rules is not None:
            devices.confine(self._found.mounts["unified"] / self.path, (*DEVICES, *rules))
        if "devices" not in self._found.mounts:
            return
        if rules is None:
            self._write("devices", "devices.allow", "a")
            return
        self._write("devices", "devices.deny", "a")
        self._write("devices", "devices.allow", *DEVICES, *rules)

    def oom_kills(self) -> int:
        """How often the kernel killed a process here for want of memory."""
        name, file = ("unified", "memory.events") if self._found.v2 else ("memory", "memory.oom_control")
        return self._table(name, file).get("oom_kill", 0)

    def cpu_nanoseconds(self) -> int:
        """Processor time used."""
        if self._found.v2:
            return self._table("unified", "cpu.stat").get("usage_usec", 0) * 1000
        return self._number("cpuacct", "cpuacct.usage")

    def memory(self) -> dict[str, int]:
        """usage, working_set, rss, page_faults, major_page_faults, limit (0: none)."""
        name, usage, maximum = ("unified", "memory.current", "memory.max")
        if not self._found.v2:
            name, usage, maximum = ("memory", "memory.usage_in_bytes", "memory.limit_in_bytes")
        table, used, limit = self._table(name, "memory.stat"), self._number(name, usage), self._number(name, maximum)
        prefix = "" if self._found.v2 else "total_"
        inactive = table.get(f"{prefix}inactive_file", 0)
        return {
            "usage": used,
            "working_set": max(0, used - inactive),
            "rss": table.get("anon" if self._found.v2 else "total_rss", 0),
            "page_faults": table.get(f"{prefix}pgfault", 0),
            "major_page_faults": table.get(f"{prefix}pgmajfault", 0),
            "limit": limit if 0 < limit < UNLIMITED else 0,
        }

    def processes(self) -> list[int]:
        """The processes in it, and in cgroups that a privileged container has made below it."""
        name = "unified" if self._found.v2 else "pids" if "pids" in self._found.mounts else "memory"
        found: list[int] = []
        for folder, _, _ in os.walk(self._found.mounts[name] / self.path):
            with contextlib.suppress(OSError):
                found += map(int, Path(folder, "cgroup.procs").read_text().split())
        return found

    def kill(self) -> None:
        """Kills every process in it, also those that are forked meanwhile."""
        if self._found.v2:
            with contextlib.suppress(OSError):
                (self._found.mounts["unified"] / self.path / "cgroup.kill").write_text("1")
                return
        kill_all(self.processes)

    def remove(self, patience: float = 2.0) -> None:
        """Removes it with what it has below; its processes were killed. Blocks for as long as they take to go."""
        deadline = time.monotonic() + patience
        for folder in self.folders():
            while True:
                try:
                    for below, _, _ in os.walk(folder, topdown=False):
                        os.rmdir(below)
                    break
                except FileNotFoundError:
                    break
                except OSError as error:
                    if error.errno != errno.EBUSY or time.monotonic() > deadline:
                        raise CRIError("Unknown", f"cannot remove cgroup {folder}: {error.strerror}") from None
                    self.kill()
                    time.sleep(0.002)

    def _write(self, name: str, file: str, *values: object) -> None:
        mount = self._found.mounts.get(name)
        if mount is None:
            return
        path, value = f"{mount}/{self.path}/{file}", values[0]
        try:
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                for value in values:
                    os.write(opened, str(value).encode())
            finally:
                os.close(opened)
        except OSError as error:
            raise CRIError("Unknown", f'failed to write "{value}" to {path}: {error.strerror}') from None

    def _read(self, name: str, file: str) -> str:
        mount = self._found.mounts.get(name)
        if mount is None:
            return ""
        try:
            return (mount / self.path / file).read_text()
        except OSError:
            return ""

    def _number(self, name: str, file: str) -> int:
        text = self._read(name, file).strip()
        return int(text) if text.lstrip("-").isdigit() else 0

    def _table(self, name: str, file: str) -> dict[str, int]:
        lines = (line.split() for line in self._read(name, file).splitlines())
        return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}


def _inherit(mount: Path, path: Path, file: str) -> str:
    """The content of a file of a v1 cpuset; an empty one is first filled from its parent, since it could hold no
    process.

    The parents too: a process that was about to fill them may have been killed.
    """
    text = (mount / path / file).read_text().strip()
    if not text and path.parts:
        text = _inherit(mount, path.parent, file)
        (mount / path / file).write_text(text)
    return text


def _delegate(folder: Path) -> None:
    """Lets children of a v2 cgroup have the controllers that it has."""
    have = set((folder / "cgroup.controllers").read_text().split())
    given = set((folder / "cgroup.subtree_control").read_text().split())
    for name in sorted(have - given):
        with contextlib.suppress(OSError):
            (folder / "cgroup.subtree_control").write_text(f"+{name}")


def kill_all(processes: Callable[[], Iterable[int]]) -> None:
    """Kills what is found, again and again until nothing is: what is killed may have forked meanwhile."""
    for _ in range(100):
        found = list(processes())
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
