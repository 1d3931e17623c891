"""Usage of containers as the runtime reports it, where there are no cgroups to read (`cgroupsPerQOS: false`).

Asked for every ten seconds (`refresh`), because readings are wanted at once and the runtime takes its time. The node's
own are those of the whole machine.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from ..cgroups.manager import PREFIX
from ..node.allocatable import meminfo
from ..runtime import labels
from .usage import Usage

_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class StatsRuntime(Protocol):
    """The part of a runtime that tells."""

    async def list_container_stats(self, request: Any = None) -> Any: ...


class RuntimeUsage:
    """A `UsageReader` that goes by the last part of a cgroup's name: a container's id, or a pod's uid."""

    def __init__(self, runtime: StatsRuntime, root: Path = Path("/")) -> None:
        self._runtime = runtime
        self._root = root
        self._known: dict[str, Usage] = {}

    async def refresh(self) -> None:
        """Ask the runtime."""
        known: dict[str, Usage] = {}
        for each in (await self._runtime.list_container_stats()).stats:
            if not each.HasField("memory"):
                continue  # it does not run
            usage = Usage(
                cpu=each.cpu.usage_core_nano_seconds.value,
                memory=each.memory.usage_bytes.value,
                working_set=each.memory.working_set_bytes.value,
                rss=each.memory.rss_bytes.value,
                page_faults=each.memory.page_faults.value,
                major_page_faults=each.memory.major_page_faults.value,
            )
            known[each.attributes.id] = usage
            pod = f"{PREFIX}{each.attributes.labels.get(labels.POD_UID, '')}"
            known[pod] = _sum(known[pod], usage) if pod in known else usage
        self._known = known

    def read(self, name: str) -> Usage | None:
        """The newest reading; None for what the runtime does not know."""
        return self._known.get(name.rpartition("/")[2]) if name != "/" else self._machine()

    def _machine(self) -> Usage:
        memory = meminfo(self._root)
        words = (self._root / "proc/stat").read_text().partition("\n")[0].split()[1:]
        ticks = [int(word) for word in words[:8]]  # user nice system idle iowait irq softirq steal
        used = memory["MemTotal"] - memory["MemFree"]
        return Usage(
            cpu=(sum(ticks) - ticks[3] - ticks[4]) * _TICK,
            memory=used,
            working_set=memory["MemTotal"] - memory.get("MemAvailable", memory["MemFree"]),
            rss=memory.get("AnonPages", 0),
            cache=memory.get("Cached", 0),
        )


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        cpu=one.cpu + other.cpu,
        memory=one.memory + other.memory,
        working_set=one.working_set + other.working_set,
        rss=one.rss + other.rss,
        page_faults=one.page_faults + other.page_faults,
        major_page_faults=one.major_page_faults + other.major_page_faults,
    )
