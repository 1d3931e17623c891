"""The node's memory, log and keys, and what tells attackers where things are.

Vectors: /proc/kcore, /dev/mem, /dev/kmsg, addresses of the kernel, the paths that runtimes mask since CVE-2016-9962's
time.
"""

from __future__ import annotations

import pytest
from escape.conftest import Inside

READS = (
    "/proc/kcore",
    "/proc/keys",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/sys/firmware",
    "/proc/acpi",
    "/proc/scsi",
)
DEVICES = {
    "mem": (1, 1),
    "kmem": (1, 2),
    "port": (1, 4),
    "kmsg": (1, 11),
    "mcelog": (10, 227),
    "fuse": (10, 229),
    "kvm": (10, 232),
}


@pytest.mark.parametrize("path", READS)
def test_what_tells_of_the_node_is_hidden(inside: Inside, path: str) -> None:
    code, said = inside.sh(f"if [ -d {path} ]; then ls -A {path}; else head -c 100 {path} 2> /dev/null; fi; true")
    assert (code, said) == (0, "")


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_that_a_container_makes_is_of_no_use(inside: Inside, name: str) -> None:
    major, minor = DEVICES[name]
    code, said = inside.sh(f"rm -f /tmp/{name}; mknod /tmp/{name} c {major} {minor} && exec 3<> /tmp/{name}")
    assert code not in (0, -1), said


def test_addresses_of_the_kernel_are_zeros(inside: Inside) -> None:
    code, said = inside.sh("head -n 20 /proc/kallsyms 2> /dev/null | cut -d ' ' -f 1 | sort -u; true")
    assert code == 0
    assert set(said.split()) <= {"0" * 16}


def test_the_log_of_the_kernel_is_not_cleared(inside: Inside) -> None:
    assert inside.sh("dmesg -c > /dev/null")[0] != 0
