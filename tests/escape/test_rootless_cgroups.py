"""Without root: the cgroups that a container sees are not those of the user who runs the node.

Vector: CVE-2023-25809 (/sys/fs/cgroup was the user's own and could be written to).
"""

from __future__ import annotations

import pytest
from escape.conftest import Inside

pytestmark = pytest.mark.parametrize("runtime_name", ["rootless"], indirect=True)


def test_no_cgroup_can_be_made_or_left(inside: Inside) -> None:
    code, said = inside.sh(
        "find /sys/fs/cgroup -type d -exec mkdir {}/mine ';' -print 2> /dev/null | head; ls /sys/fs/cgroup"
    )
    assert code == 0
    assert "mine" not in said
    code, said = inside.sh(
        "for f in $(find /sys/fs/cgroup -name cgroup.procs); do echo $$ > $f && echo left; done; true"
    )
    assert "left" not in said
