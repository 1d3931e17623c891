"""Switches that end or stop the node.

Vectors: sysrq, `/sys/power`, panics on request, processor hotplug.
"""

from __future__ import annotations

import pytest
from escape.conftest import Inside
from escape.writing import any_of, refused

WRITES = {
    "sysrq": "echo h > /proc/sysrq-trigger",
    "sysrq_switch": "echo 1 > /proc/sys/kernel/sysrq",
    "power": "echo mem > /sys/power/state",
    "panic_on_oom": "echo 1 > /proc/sys/vm/panic_on_oom",
    "panic": "echo 1 > /proc/sys/kernel/panic",
    "drop_caches": "echo 3 > /proc/sys/vm/drop_caches",
    "processor": any_of("/sys/devices/system/cpu/cpu*/online", "echo 0 > $f"),
    "irq_affinity": any_of("/proc/irq/*/smp_affinity /proc/irq/default_smp_affinity", "echo 1 > $f"),
    "block": any_of("/sys/block/*/queue/scheduler", "echo none > $f"),
    "reboot": "reboot -f",
}


@pytest.mark.parametrize("vector", WRITES)
def test_it_cannot_be_written(inside: Inside, vector: str) -> None:
    refused(inside, WRITES[vector])
