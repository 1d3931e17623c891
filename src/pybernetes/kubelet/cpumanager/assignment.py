"""Which CPUs to take when so many are wanted: whole NUMA nodes and sockets, then whole cores, then single threads.

Among equals the fullest goes first, so that what is left stays in large pieces. The larger unit comes first: usually
a NUMA node is a socket or more; where a socket has several NUMA nodes, sockets are taken first. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .cpuset import CPUs
from .topology import CPU, Topology

Unit = Callable[[CPU], int]


def take_cpus(topology: Topology, available: CPUs, count: int, *, spread: bool = False) -> CPUs:
    """So many of the available CPUs; `ValueError` if there are not enough. `spread` prefers threads of many cores."""
    if count <= 0:
        return frozenset()
    if len(available) < count:
        raise ValueError(f"not enough cpus available to satisfy request: requested={count}, available={len(available)}")
    taking = _Taking(topology, available, count)
    larger, smaller = (_numa, _socket) if topology.sockets >= topology.numa_nodes else (_socket, _numa)
    taking.whole(larger)
    taking.whole(larger, smaller)
    if spread:
        taking.threads(*((_numa, _socket) if larger is _numa else (_socket,)))
    else:
        taking.whole(larger, smaller, _core)
        taking.threads(larger, smaller, _core)
    return frozenset(taking.taken)


class _Taking:
    """One allocation in progress: the free CPUs, the number still needed, the CPUs taken."""

    def __init__(self, topology: Topology, available: CPUs, count: int) -> None:
        self._cpus, self._free, self._needed = topology.cpus, set(available), count
        self.taken: set[int] = set()

    def whole(self, *units: Unit) -> None:
        """Take pieces of the last unit that are free altogether and not too large."""
        for piece in self._pieces(self._free, units):
            unit = units[-1]
            size = sum(unit(cpu) == piece for cpu in self._cpus.values())
            inside = {number for number in self._free if unit(self._cpus[number]) == piece}
            if len(inside) == size <= self._needed:
                self._take(inside)

    def threads(self, *units: Unit) -> None:
        """Take single CPUs, piece by piece of the last unit."""
        for piece in self._pieces(self._free, units):
            for number in sorted(each for each in self._free if units[-1](self._cpus[each]) == piece):
                if not self._needed:
                    return
                self._take({number})

    def _pieces(self, free: set[int], units: tuple[Unit, ...]) -> list[int]:
        """Pieces of the last unit in the order of taking: by how few are free in the larger piece, then in itself."""
        unit, *rest = units
        pieces: dict[int, set[int]] = {}
        for number in free:
            pieces.setdefault(unit(self._cpus[number]), set()).add(number)
        order = sorted(pieces, key=lambda piece: (len(pieces[piece]), piece))
        if not rest:
            return order
        return [each for piece in order for each in self._pieces(pieces[piece], tuple(rest))]

    def _take(self, cpus: Iterable[int]) -> None:
        chosen = set(cpus)
        self.taken |= chosen
        self._free -= chosen
        self._needed -= len(chosen)


def _numa(cpu: CPU) -> int:
    return cpu.numa


def _socket(cpu: CPU) -> int:
    return cpu.socket


def _core(cpu: CPU) -> int:
    return cpu.core
