"""Watches the node's resources, says when they are short, and evicts pods one at a time until they are not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pybernetes.api.core.v1 import Pod, PodCondition
from pybernetes.client.clock import Clock


@dataclass(frozen=True, slots=True)
class FilesystemUsage:
    """A file system, in bytes and inodes."""

    available: int
    capacity: int
    inodes_free: int
    inodes: int


@dataclass(frozen=True, slots=True)
class PodUsage:
    """What a pod uses. `volumes`: bytes of each emptyDir that is on disk or in memory, by volume name."""

    memory: int = 0
    """Working set, bytes."""
    processes: int = 0
    rootfs: int = 0
    """Writable layers of all containers, bytes."""
    logs: int = 0
    inodes: int = 0
    containers: dict[str, int] = field(default_factory=dict)
    """Writable layer and logs of each container, bytes."""
    volumes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observation:
    """What is measured in one turn."""

    memory_available: int
    memory_capacity: int
    allocatable_memory_available: int | None
    """What `/kubepods` may still use; None if it has no limit."""
    allocatable_memory_capacity: int | None
    nodefs: FilesystemUsage
    imagefs: FilesystemUsage
    containerfs: FilesystemUsage
    pid_available: int
    pid_capacity: int
    pods: dict[str, PodUsage]
    """By uid."""


Evict = Callable[[Pod, str, str, float | None, PodCondition], Awaitable[None]]
"""`await evict(pod, reason, message, grace seconds or None for the pod's own, condition)`: Failed, killed, told."""


class EvictionManager:
    """Evicts pods and knows the node's pressure conditions."""

    def __init__(
        self,
        *,
        hard: dict[str, str],
        soft: dict[str, str] | None = None,
        soft_grace: dict[str, str] | None = None,
        minimum_reclaim: dict[str, str] | None = None,
        pressure_transition_period: float = 300.0,
        max_pod_grace: int = 0,
        observe: Callable[[], Awaitable[Observation]],
        active_pods: Callable[[], list[Pod]],
        evict: Evict,
        reclaim_images: Callable[[], Awaitable[None]] | None = None,
        reclaim_containers: Callable[[], Awaitable[None]] | None = None,
        event: Callable[[str, str, str], None] = lambda *_: None,
        changed: Callable[[], None] = lambda: None,
        clock: Clock,
    ) -> None:
        """`event(type, reason, message)` is about the node; `changed` is called when a condition is another."""
        raise NotImplementedError

    async def run(self) -> None:
        """Every 10 s, sooner after an eviction, until cancelled."""
        raise NotImplementedError

    def under_pressure(self, condition: str) -> bool:
        """For the node's status: `MemoryPressure`, `DiskPressure` or `PIDPressure`."""
        raise NotImplementedError

    def admit(self, pod: Pod) -> None:
        """`PodRefused` (Evicted) for pods that would make it worse."""
        raise NotImplementedError
