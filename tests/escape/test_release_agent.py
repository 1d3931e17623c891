"""A cgroup's release_agent, its processes and its devices: no cgroup is changed from inside.

Vectors: `release_agent` (2019, CVE-2022-0492), moving out of the cgroup, `devices.allow`.
"""

from __future__ import annotations

import pytest
from escape.conftest import Inside
from escape.writing import any_of, refused

WRITES = {
    "release_agent": any_of("$(find /sys/fs/cgroup -name release_agent)", "echo /x > $f"),
    "notify_on_release": any_of("$(find /sys/fs/cgroup -name notify_on_release)", "echo 1 > $f"),
    "leave_cgroup": any_of("$(find /sys/fs/cgroup -name cgroup.procs -o -name tasks)", "echo $$ > $f"),
    "new_cgroup": any_of("$(find /sys/fs/cgroup -name cgroup.procs)", "mkdir ${f%/*}/mine"),
    "devices_allow": any_of("$(find /sys/fs/cgroup -name devices.allow)", "echo a > $f"),
    "memory_limit": any_of("$(find /sys/fs/cgroup -name memory.limit_in_bytes -o -name memory.max)", "echo 1 > $f"),
    "freezer": any_of("$(find /sys/fs/cgroup -name freezer.state -o -name cgroup.freeze)", "echo 1 > $f"),
}


@pytest.mark.parametrize("vector", WRITES)
def test_it_cannot_be_written(inside: Inside, vector: str) -> None:
    refused(inside, WRITES[vector])
