"""What the machine has, and what of it pods may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pybernetes.api.core.podresources import Quantities


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware, and what the kernel says about itself."""

    cpus: int
    memory: int
    """Bytes."""
    swap: int
    pids: int
    hugepages: Mapping[int, int]
    """Page size to bytes that are set aside."""
    storage: int
    """Bytes of the file system of the kubelet's folder."""
    machine_id: str
    system_uuid: str
    boot_id: str


def read_machine(folder: Path, root: Path = Path("/")) -> Machine:
    """Look at the machine; `folder` is the kubelet's."""
    raise NotImplementedError


def capacity(machine: Machine, *, max_pods: int = 110, pods_per_core: int = 0) -> Quantities:
    """cpu, memory, ephemeral-storage, pods, hugepages-*: for the node's status."""
    raise NotImplementedError


def allocatable(
    capacity: Quantities,
    *,
    kube_reserved: Mapping[str, str] | None = None,
    system_reserved: Mapping[str, str] | None = None,
    eviction_hard: Mapping[str, str] | None = None,
) -> Quantities:
    """What is left for pods; `ValueError` (upstream's words) if more is reserved than there is."""
    raise NotImplementedError
