"""Programs of the kernel that run as the node's root: their name is a command on the node.

Vectors: `core_pattern`, `modprobe`, `uevent_helper`, `binfmt_misc`.
"""

from __future__ import annotations

import pytest
from escape.conftest import Inside
from escape.writing import any_of, refused

WRITES = {
    "core_pattern": "echo '|/tmp/x' > /proc/sys/kernel/core_pattern",
    "modprobe": "echo /tmp/x > /proc/sys/kernel/modprobe",
    "hotplug": "echo /tmp/x > /proc/sys/kernel/hotplug",
    "uevent_helper": "echo /tmp/x > /sys/kernel/uevent_helper",
    "binfmt_misc": "echo ':x:E::x::/tmp/x:' > /proc/sys/fs/binfmt_misc/register",
    "uevent": any_of("/sys/class/*/*/uevent", "echo add > $f"),
}


@pytest.mark.parametrize("vector", WRITES)
def test_it_cannot_be_written(inside: Inside, vector: str) -> None:
    refused(inside, WRITES[vector])
