"""Values that describe the resource usage of pods, as evictions need it; made by `source.py` and in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pybernetes.api.core.v1 import Pod

from .thresholds import Level


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Bytes and inodes."""

    bytes: int = 0
    inodes: int = 0


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """One container."""

    memory: int = 0
    """Working set, bytes."""
    rootfs: DiskUsage = DiskUsage()
    """The writable layer."""
    logs: DiskUsage = DiskUsage()


@dataclass(frozen=True, slots=True)
class PodUsage:
    """One pod."""

    memory: int = 0
    """Working set of all its containers, bytes."""
    processes: int = 0
    containers: Mapping[str, ContainerUsage] = field(default_factory=dict)
    volumes: Mapping[str, DiskUsage] = field(default_factory=dict)
    """Those that are on the node's disk or in its memory, by name."""
    other: int = 0
    """Bytes beside containers and volumes that count as ephemeral storage: the hosts file, termination messages."""

    def disk(self, *, rootfs: bool, logs: bool, volumes: bool) -> DiskUsage:
        """The sum of some parts."""
        parts: list[DiskUsage] = []
        for container in self.containers.values():
            parts += [container.rootfs] * rootfs + [container.logs] * logs
        if volumes:
            parts += self.volumes.values()
        return DiskUsage(sum(each.bytes for each in parts), sum(each.inodes for each in parts))


class Source(Protocol):
    """Where the figures come from. The node's are cheap and always asked for, the pods' only when they matter."""

    dedicated_imagefs: bool
    """Whether images (and writable layers) are on a file system of their own."""

    async def node(self) -> Mapping[str, Level]:
        """The level of each signal that is known."""
        ...

    async def pods(self, pods: Sequence[Pod], *, disk: bool) -> Mapping[str, PodUsage]:
        """Usage of pods, by uid; disk usage only if asked for. Unknown pods are left out."""
        ...
