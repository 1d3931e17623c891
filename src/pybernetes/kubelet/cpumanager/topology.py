"""Which CPUs share a core, a socket, a NUMA node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .cpuset import CPUs, parse_cpus


@dataclass(frozen=True, slots=True)
class CPU:
    """Where a CPU is. A core is named by its lowest CPU, because the kernel's numbers repeat on each socket."""

    core: int
    socket: int = 0
    numa: int = 0


@dataclass(frozen=True, slots=True)
class Topology:
    """All CPUs of a machine that are online."""

    cpus: Mapping[int, CPU]

    @property
    def all(self) -> CPUs:
        """Their numbers."""
        return frozenset(self.cpus)

    @property
    def sockets(self) -> int:
        """How many sockets there are."""
        return len({each.socket for each in self.cpus.values()})

    @property
    def numa_nodes(self) -> int:
        """How many NUMA nodes there are."""
        return len({each.numa for each in self.cpus.values()})

    @property
    def cpus_per_core(self) -> int:
        """How many threads a core has."""
        return len(self.cpus) // max(1, len({each.core for each in self.cpus.values()}))

    def in_cores_of(self, cpus: Iterable[int]) -> CPUs:
        """All threads of the cores that some CPUs belong to."""
        cores = {self.cpus[each].core for each in cpus}
        return frozenset(number for number, each in self.cpus.items() if each.core in cores)


def read_topology(root: Path = Path("/sys/devices/system")) -> Topology:
    """The machine's CPUs."""
    numa = {}
    for node in (root / "node").glob("node[0-9]*"):
        for cpu in parse_cpus((node / "cpulist").read_text()):
            numa[cpu] = int(node.name.removeprefix("node"))
    cpus = {}
    for cpu in sorted(parse_cpus((root / "cpu/online").read_text())):
        folder = root / f"cpu/cpu{cpu}/topology"
        siblings = parse_cpus((folder / "thread_siblings_list").read_text())
        socket = int((folder / "physical_package_id").read_text())
        cpus[cpu] = CPU(min(siblings, default=cpu), max(0, socket), numa.get(cpu, 0))
    return Topology(cpus)
