"""Reads a cgroup's usage of CPU and memory, from the files of cgroup v1 or v2.

The working set is the memory that cannot be reclaimed without harm: all but the file pages that were not touched
lately. That is also what the kernel's OOM killer goes by, as near as can be.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from ..cgroups.hierarchy import CgroupError, Mounts, find_mounts
from ..node.allocatable import meminfo

NO_LIMIT: Final = 1 << 62
_MOST: Final = 16384
"""Bytes; no file here has as many."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """How long tasks have waited for something (PSI). Nanoseconds, and percent of the last 10, 60, 300 seconds."""

    total: int
    avg10: float
    avg60: float
    avg300: float


@dataclass(frozen=True, slots=True)
class Usage:
    """One reading of a cgroup. Bytes and nanoseconds; None is unknown."""

    cpu: int
    """Nanoseconds of all CPUs since the cgroup was made."""
    memory: int
    working_set: int
    rss: int
    cache: int = 0
    mapped_file: int = 0
    page_faults: int = 0
    major_page_faults: int = 0
    memory_limit: int | None = None
    swap: int = 0
    swap_limit: int | None = None
    processes: int | None = None
    cpu_user: int = 0
    cpu_system: int = 0
    periods: int = 0
    throttled_periods: int = 0
    throttled: int = 0
    """Nanoseconds."""
    pressure: dict[str, tuple[Pressure, Pressure]] | None = None
    """`cpu`, `memory`, `io`: (some, full), where the kernel tells it."""


class UsageReader(Protocol):
    """Reads cgroups."""

    async def refresh(self) -> None:
        """Get new readings, where they do not come with `read`."""
        ...

    def read(self, name: str) -> Usage | None:
        """The usage of a cgroup; None if it does not exist (any more)."""
        ...


def reader(mountinfo: Path = Path("/proc/self/mountinfo")) -> UsageReader:
    """A reader for the cgroups of this machine."""
    mounts = find_mounts(mountinfo.read_text())
    if "memory" in mounts.controllers or "cpuacct" in mounts.controllers:
        return _V1(mounts)
    if mounts.unified is not None:
        return _V2(mounts.unified)
    raise CgroupError("failed to find cgroup mounts")


class _Files:
    """Common to both versions: files are read at each call."""

    async def refresh(self) -> None:
        pass


class _V1(_Files):
    def __init__(self, mounts: Mounts) -> None:
        controllers = {name: str(mount) for name, mount in mounts.controllers.items()}
        self._memory, self._cpuacct = controllers["memory"], controllers["cpuacct"]
        self._cpu, self._pids = controllers.get("cpu", self._cpuacct), controllers.get("pids", "")
        self._unified = str(mounts.unified) if mounts.unified else ""

    def read(self, name: str) -> Usage | None:
        below = f"/{name.strip('/')}/" if name.strip("/") else "/"
        memory, cpu = self._memory + below, self._cpuacct + below
        used_text, nanos = _text(f"{memory}memory.usage_in_bytes"), _text(f"{cpu}cpuacct.usage")
        if not used_text or not nanos:
            return None
        used = int(used_text)
        stat = numbers(_text(f"{memory}memory.stat"))
        limit = int(_text(f"{memory}memory.limit_in_bytes") or NO_LIMIT)
        ticks = numbers(_text(f"{cpu}cpuacct.stat"))
        throttling = numbers(_text(f"{self._cpu}{below}cpu.stat"))
        with_swap = _text(f"{memory}memory.memsw.usage_in_bytes")
        swap_limit = _text(f"{memory}memory.memsw.limit_in_bytes")
        return Usage(
            cpu=int(nanos),
            memory=used,
            working_set=max(0, used - stat.get("total_inactive_file", 0)),
            rss=stat.get("total_rss", 0),
            cache=stat.get("total_cache", 0),
            mapped_file=stat.get("total_mapped_file", 0),
            page_faults=stat.get("total_pgfault", 0),
            major_page_faults=stat.get("total_pgmajfault", 0),
            memory_limit=limit if limit < NO_LIMIT else None,
            swap=max(0, int(with_swap) - used) if with_swap else 0,
            swap_limit=max(0, int(swap_limit) - limit) if swap_limit and int(swap_limit) < NO_LIMIT else None,
            processes=_count(_text(f"{self._pids}{below}pids.current")) if self._pids else None,
            cpu_user=ticks.get("user", 0) * 10_000_000,  # ticks of 1/100 s
            cpu_system=ticks.get("system", 0) * 10_000_000,
            periods=throttling.get("nr_periods", 0),
            throttled_periods=throttling.get("nr_throttled", 0),
            throttled=throttling.get("throttled_time", 0),
            pressure=_pressure(self._unified + below) if self._unified else None,
        )


class _V2(_Files):
    def __init__(self, root: Path) -> None:
        self._root = str(root)

    def read(self, name: str) -> Usage | None:
        here = f"{self._root}/{name.strip('/')}/"
        cpu, stat = numbers(_text(f"{here}cpu.stat")), numbers(_text(f"{here}memory.stat"))
        if not cpu or not stat:
            return None
        current = _text(f"{here}memory.current")
        used = int(current) if current else _used_memory()  # the root has no such file
        return Usage(
            cpu=cpu.get("usage_usec", 0) * 1000,
            memory=used,
            working_set=max(0, used - stat.get("inactive_file", 0)),
            rss=stat.get("anon", 0),
            cache=stat.get("file", 0),
            mapped_file=stat.get("file_mapped", 0),
            page_faults=stat.get("pgfault", 0),
            major_page_faults=stat.get("pgmajfault", 0),
            memory_limit=_limit(_text(f"{here}memory.max")),
            swap=int(_text(f"{here}memory.swap.current") or 0),
            swap_limit=_limit(_text(f"{here}memory.swap.max")),
            processes=_count(_text(f"{here}pids.current")),
            cpu_user=cpu.get("user_usec", 0) * 1000,
            cpu_system=cpu.get("system_usec", 0) * 1000,
            periods=cpu.get("nr_periods", 0),
            throttled_periods=cpu.get("nr_throttled", 0),
            throttled=cpu.get("throttled_usec", 0) * 1000,
            pressure=_pressure(here),
        )


def numbers(text: str) -> dict[str, int]:
    """A file of lines `name number`."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def parse_pressure(text: str) -> tuple[Pressure, Pressure]:
    """A PSI file: (some, full)."""
    found = {}
    for line in text.splitlines():
        kind, *fields = line.split()
        values = dict(each.split("=", 1) for each in fields)
        found[kind] = Pressure(
            int(values["total"]) * 1000, float(values["avg10"]), float(values["avg60"]), float(values["avg300"])
        )
    nothing = Pressure(0, 0.0, 0.0, 0.0)
    return found.get("some", nothing), found.get("full", nothing)


def _pressure(here: str) -> dict[str, tuple[Pressure, Pressure]] | None:
    texts = {kind: _text(f"{here}{kind}.pressure") for kind in ("cpu", "memory", "io")}
    return {kind: parse_pressure(text) for kind, text in texts.items() if text} or None


def _used_memory() -> int:
    memory = meminfo()
    return memory["MemTotal"] - memory["MemFree"]


def _limit(text: str) -> int | None:
    return int(text) if text and text != "max" else None


def _count(text: str) -> int | None:
    return int(text) if text else None


def _text(path: str) -> str:
    """A small file, or nothing. Paths are texts here: this is done for each container every few seconds."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(file, _MOST).decode().strip()
    except OSError:
        return ""
    finally:
        os.close(file)
