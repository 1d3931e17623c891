"""What a cgroup has used of CPU and memory, from the files of cgroup v1 or v2.

The working set is what cannot be taken back without hurting: all memory but the file pages that nobody has touched
lately. That is also what the kernel's OOM killer goes by, as near as can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from ..allocatable import meminfo
from ..cgroups.hierarchy import CgroupError, Mounts, find_mounts, folder, read_text

NO_LIMIT: Final = 1 << 62


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

    def read(self, name: str) -> Usage | None:
        """What the cgroup has used; None if it is not there (any more)."""
        ...


def reader(mountinfo: Path = Path("/proc/self/mountinfo")) -> UsageReader:
    """A reader for the cgroups of this machine."""
    mounts = find_mounts(mountinfo.read_text())
    if "memory" in mounts.controllers or "cpuacct" in mounts.controllers:
        return _V1(mounts)
    if mounts.unified is not None:
        return _V2(mounts.unified)
    raise CgroupError("failed to find cgroup mounts")


class _V1:
    def __init__(self, mounts: Mounts) -> None:
        self._mounts = mounts

    def read(self, name: str) -> Usage | None:
        controllers = self._mounts.controllers
        memory, cpu = folder(controllers["memory"], name), folder(controllers["cpuacct"], name)
        try:
            used = int(read_text(memory / "memory.usage_in_bytes"))
            stat = numbers(read_text(memory / "memory.stat"))
            limit = int(read_text(memory / "memory.limit_in_bytes"))
            nanos = int(read_text(cpu / "cpuacct.usage"))
        except CgroupError:
            return None
        ticks = numbers(_optional(cpu / "cpuacct.stat"))
        throttling = numbers(_optional(folder(controllers.get("cpu", cpu), name) / "cpu.stat"))
        with_swap = _optional(memory / "memory.memsw.usage_in_bytes")
        swap_limit = _optional(memory / "memory.memsw.limit_in_bytes")
        pids = controllers.get("pids")
        return Usage(
            cpu=nanos,
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
            processes=_count(_optional(folder(pids, name) / "pids.current")) if pids else None,
            cpu_user=ticks.get("user", 0) * 10_000_000,  # ticks of 1/100 s
            cpu_system=ticks.get("system", 0) * 10_000_000,
            periods=throttling.get("nr_periods", 0),
            throttled_periods=throttling.get("nr_throttled", 0),
            throttled=throttling.get("throttled_time", 0),
            pressure=_pressure(folder(self._mounts.unified, name)) if self._mounts.unified else None,
        )


class _V2:
    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, name: str) -> Usage | None:
        here = folder(self._root, name)
        try:
            cpu = numbers(read_text(here / "cpu.stat"))
            stat = numbers(read_text(here / "memory.stat"))
        except CgroupError:
            return None
        current = _optional(here / "memory.current")
        used = int(current) if current else _used_memory()  # the root has no such file
        limit = _limit(_optional(here / "memory.max"))
        return Usage(
            cpu=cpu.get("usage_usec", 0) * 1000,
            memory=used,
            working_set=max(0, used - stat.get("inactive_file", 0)),
            rss=stat.get("anon", 0),
            cache=stat.get("file", 0),
            mapped_file=stat.get("file_mapped", 0),
            page_faults=stat.get("pgfault", 0),
            major_page_faults=stat.get("pgmajfault", 0),
            memory_limit=limit,
            swap=int(_optional(here / "memory.swap.current") or 0),
            swap_limit=_limit(_optional(here / "memory.swap.max")),
            processes=_count(_optional(here / "pids.current")),
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


def _pressure(here: Path) -> dict[str, tuple[Pressure, Pressure]] | None:
    texts = {kind: _optional(here / f"{kind}.pressure") for kind in ("cpu", "memory", "io")}
    return {kind: parse_pressure(text) for kind, text in texts.items() if text} or None


def _used_memory() -> int:
    memory = meminfo()
    return memory["MemTotal"] - memory["MemFree"]


def _limit(text: str) -> int | None:
    return int(text) if text and text != "max" else None


def _count(text: str) -> int | None:
    return int(text) if text else None


def _optional(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
