"""Computes the node's capacity and allocatable resources.

Capacity is read from the kernel once; allocatable is capacity less what is reserved for the system and for Kubernetes,
and less what pods would be evicted for. Huge pages are taken from memory: what is set aside for them is no memory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pybernetes.api.core.podresources import Quantities, parsed
from pybernetes.api.core.resourcenames import HUGEPAGES_PREFIX, is_hugepages
from pybernetes.api.quantity import BINARY_SI, Quantity

from ..eviction.thresholds import EPHEMERAL_STORAGE, reserved

_UUID_FILES: Final = ("sys/class/dmi/id/product_uuid", "proc/device-tree/system-id", "proc/device-tree/vm,uuid")
_MACHINE_ID_FILES: Final = ("etc/machine-id", "var/lib/dbus/machine-id")


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware, and what the kernel says about itself."""

    cpus: int
    memory: int
    """Bytes."""
    swap: int
    pids: int
    """How many processes there can be."""
    hugepages: Mapping[int, int]
    """Page size to bytes that are set aside, both in bytes."""
    storage: int
    """Bytes of the file system of the kubelet's folder."""
    machine_id: str
    system_uuid: str
    boot_id: str


def read_machine(folder: Path, root: Path = Path("/")) -> Machine:
    """Look at the machine; `folder` is the kubelet's."""
    memory = meminfo(root)
    file_system = os.statvfs(folder)
    machine_id = _first(root, _MACHINE_ID_FILES)
    return Machine(
        cpus=_cpus(root),
        memory=memory.get("MemTotal", 0),
        swap=memory.get("SwapTotal", 0),
        pids=max_pids(root),
        hugepages=_hugepages(root),
        storage=file_system.f_blocks * file_system.f_frsize,
        machine_id=machine_id,
        system_uuid=_first(root, _UUID_FILES) or machine_id,
        boot_id=_first(root, ("proc/sys/kernel/random/boot_id",)),
    )


def capacity(machine: Machine, *, max_pods: int = 110, pods_per_core: int = 0) -> Quantities:
    """cpu, memory, ephemeral-storage, pods, hugepages-*: for the node's status."""
    pods = min(max_pods, machine.cpus * pods_per_core) if pods_per_core > 0 else max_pods
    result = {
        "cpu": Quantity(machine.cpus),
        EPHEMERAL_STORAGE: Quantity(machine.storage, 0, BINARY_SI),
        "memory": Quantity(machine.memory, 0, BINARY_SI),
        "pods": Quantity(pods),
    }
    for size, amount in machine.hugepages.items():
        result[f"{HUGEPAGES_PREFIX}{Quantity(size, 0, BINARY_SI)}"] = Quantity(amount, 0, BINARY_SI)
    return result


def allocatable(
    capacity: Quantities,
    *,
    kube_reserved: Mapping[str, str] | None = None,
    system_reserved: Mapping[str, str] | None = None,
    eviction_hard: Mapping[str, str] | None = None,
) -> Quantities:
    """The amounts left for pods, with device plugins' resources unchanged; for the node's status."""
    result = dict(capacity)
    for name, value in reservation(
        capacity, kube_reserved=kube_reserved, system_reserved=system_reserved, eviction_hard=eviction_hard
    ).items():
        result[name] = _at_least_zero(capacity[name] - value)
    for name, value in capacity.items():
        if is_hugepages(name) and "memory" in result:
            result["memory"] = _at_least_zero(result["memory"] - value)
    return result


def enforced(
    capacity: Quantities,
    *,
    kube_reserved: Mapping[str, str] | None = None,
    system_reserved: Mapping[str, str] | None = None,
) -> Quantities:
    """The limits of the cgroup of all pods: pods that reach the eviction threshold must still be alive then."""
    return allocatable(
        {name: value for name, value in capacity.items() if not is_hugepages(name)},
        kube_reserved=kube_reserved,
        system_reserved=system_reserved,
    )


def reservation(
    capacity: Quantities,
    *,
    kube_reserved: Mapping[str, str] | None = None,
    system_reserved: Mapping[str, str] | None = None,
    eviction_hard: Mapping[str, str] | None = None,
) -> Quantities:
    """The amounts reserved from pods, by resource; zeros are left out."""
    memory, storage = capacity.get("memory"), capacity.get(EPHEMERAL_STORAGE)
    parts = [
        parsed(system_reserved),
        parsed(kube_reserved),
        reserved(eviction_hard or {}, memory.value() if memory else 0, storage.value() if storage else 0),
    ]
    result: Quantities = {}
    for name in capacity:
        total = Quantity(0)
        for part in parts:
            if name in part:
                total = total + part[name]
        if total:
            result[name] = total
    return result


def check_reservation(capacity: Quantities, reservation: Quantities) -> None:
    """`ValueError` if more is reserved than there is."""
    problems = [
        f'Resource "{name}" has a reservation of {value} but capacity of {capacity[name]}. '
        "Expected capacity >= reservation."
        for name, value in reservation.items()
        if value > capacity[name]
    ]
    if problems:
        raise ValueError(f"invalid Node Allocatable configuration. {' '.join(problems)}")


def meminfo(root: Path = Path("/")) -> dict[str, int]:
    """Parse /proc/meminfo, in bytes."""
    result = {}
    for line in (root / "proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        value, _, unit = rest.strip().partition(" ")
        if value.isdigit():
            result[name] = int(value) * (1024 if unit == "kB" else 1)
    return result


def max_pids(root: Path = Path("/")) -> int:
    """How many tasks the kernel lets be at a time."""
    limits = [_first(root, (f"proc/sys/kernel/{name}",)) for name in ("pid_max", "threads-max")]
    return min((int(each) for each in limits if each.isdigit()), default=0)


def running_tasks(root: Path = Path("/")) -> int:
    """How many tasks there are."""
    return int((root / "proc/loadavg").read_text().split()[3].split("/")[1])


def _cpus(root: Path) -> int:
    """How many CPUs are online."""
    text = _first(root, ("sys/devices/system/cpu/online",))
    return sum(
        int(last or first) - int(first) + 1
        for first, _, last in (part.partition("-") for part in text.split(",") if part)
    ) or (os.cpu_count() or 1)


def _hugepages(root: Path) -> dict[int, int]:
    result = {}
    folder = root / "sys/kernel/mm/hugepages"
    for each in sorted(folder.iterdir()) if folder.is_dir() else ():
        size = int(each.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        result[size] = int((each / "nr_hugepages").read_text()) * size
    return result


def _first(root: Path, names: tuple[str, ...]) -> str:
    """The text of the first of some files that can be read."""
    for name in names:
        try:
            if text := (root / name).read_text().strip().strip("\0"):
                return text
        except OSError:
            continue
    return ""


def _at_least_zero(value: Quantity) -> Quantity:
    return value if value.sign() >= 0 else Quantity(0, 0, value.format)
