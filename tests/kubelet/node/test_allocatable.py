"""What the machine has, and what of it pods may have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybernetes.api.core.podresources import Quantities
from pybernetes.kubelet.node.allocatable import (
    Machine,
    allocatable,
    capacity,
    check_reservation,
    enforced,
    read_machine,
    reservation,
    running_tasks,
)

MI = 1 << 20
GI = 1 << 30
MACHINE = Machine(
    cpus=4,
    memory=16 * GI,
    swap=0,
    pids=32768,
    hugepages={2 * MI: 2 * GI, GI: 0},
    storage=100 * GI,
    machine_id="m",
    system_uuid="s",
    boot_id="b",
)


def _texts(values: Quantities) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def test_this_machine_is_read_from_the_kernel(tmp_path: Path) -> None:
    machine = read_machine(tmp_path)
    assert machine.cpus == len(os.sched_getaffinity(0)) or machine.cpus == os.cpu_count()
    assert machine.memory == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert machine.pids > 0
    assert machine.storage > 0
    assert 0 < running_tasks() < machine.pids


def test_capacity_as_a_node_reports_it() -> None:
    assert _texts(capacity(MACHINE)) == {
        "cpu": "4",
        "memory": "16Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        "hugepages-2Mi": "2Gi",
        "hugepages-1Gi": "0",
    }


@pytest.mark.parametrize(("pods_per_core", "pods"), [(0, "110"), (10, "40"), (50, "110")])
def test_pods_per_core_lowers_the_number_of_pods(pods_per_core: int, pods: str) -> None:
    assert str(capacity(MACHINE, pods_per_core=pods_per_core)["pods"]) == pods


def test_what_is_reserved_and_what_evicts_is_not_allocatable_and_huge_pages_are_no_memory() -> None:
    found = allocatable(
        capacity(MACHINE),
        kube_reserved={"cpu": "200m", "memory": "1Gi"},
        system_reserved={"cpu": "300m", "memory": "512Mi", "ephemeral-storage": "1Gi"},
        eviction_hard={"memory.available": "512Mi", "nodefs.available": "1Gi"},
    )
    assert _texts(found) == {
        "cpu": "3500m",
        "memory": "12Gi",
        "ephemeral-storage": "98Gi",
        "pods": "110",
        "hugepages-2Mi": "2Gi",
        "hugepages-1Gi": "0",
    }


def test_the_cgroup_of_all_pods_may_use_what_evicts_them() -> None:
    found = enforced(capacity(MACHINE), kube_reserved={"memory": "1Gi"})
    assert str(found["memory"]) == "15Gi"


def test_reserving_more_than_there_is_is_refused() -> None:
    there = capacity(MACHINE)
    with pytest.raises(ValueError, match='Resource "cpu" has a reservation of 5 but capacity of 4'):
        check_reservation(there, reservation(there, kube_reserved={"cpu": "5"}))
