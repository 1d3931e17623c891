"""Which cgroup hierarchies a node gets, and that nothing of them stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.node import cgroups, plan
from pybernetes.cluster.node.cgroups import Hierarchy

HYBRID = """\
24 1 0:22 / /sys rw shared:2 - sysfs sysfs rw
30 24 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw,nsdelegate
32 30 0:28 / /sys/fs/cgroup/systemd rw shared:11 - cgroup cgroup rw,xattr,name=systemd
33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:12 - cgroup cgroup rw,cpu,cpuacct
34 30 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset,clone_children
35 30 0:29 / /mnt/again rw - cgroup cgroup rw,cpu,cpuacct
"""
UNIFIED = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"


def test_a_node_of_a_hybrid_host_sees_all_of_v1_and_nothing_of_v2() -> None:
    found = cgroups.hierarchies(HYBRID)
    assert [each.version for each in found] == [2, 1, 1, 1]
    assert cgroups.visible(found) == [
        Hierarchy("/sys/fs/cgroup/systemd", 1, "none,name=systemd"),
        Hierarchy("/sys/fs/cgroup/cpu,cpuacct", 1, "cpu,cpuacct"),
        Hierarchy("/sys/fs/cgroup/cpuset", 1, "cpuset"),
    ]


def test_a_node_of_a_v2_host_sees_v2() -> None:
    assert cgroups.visible(cgroups.hierarchies(UNIFIED)) == [Hierarchy("/sys/fs/cgroup", 2, "")]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_process_moves_into_cgroups_made_anew_and_they_go_with_it() -> None:
    path = f"pybernetes/test{os.getpid()}/node"
    found = cgroups.hierarchies()
    left_over = [Path(each.mount, path, "kubepods", "pod") for each in found]
    for folder in left_over:
        folder.mkdir(parents=True)
    code = (
        "import sys\n"
        "from pybernetes.cluster.node import cgroups\n"
        "found = cgroups.hierarchies()\n"
        f"cgroups.enter({path!r}, found)\n"
        f"cgroups.settle({path!r}, found)\n"
        "print(open('/proc/self/cgroup').read(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in found]
    try:
        assert all(line.strip().endswith(f":/{path}/system") for line in lines), lines
        assert not any(folder.exists() for folder in left_over), "a node that boots finds no pods' cgroups"
        assert sorted(cgroups.remove(path, found, patience=0.05)) == sorted(f"{each.mount}/{path}" for each in found)
    finally:
        process.stdin.close()
        process.wait()
    assert cgroups.remove(path, found) == []
    assert not any(Path(each.mount, path).parent.exists() for each in found)


V2 = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:26 / {mount} rw - cgroup2 cgroup2 rw\n"


def test_a_host_without_a_controller_or_a_mounted_root_is_refused_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "MOUNT", str(tmp_path))
    (tmp_path / "cgroup.controllers").write_text("cpuset io memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("io memory pids\n")
    monkeypatch.setattr(cgroups, "_delegate", lambda folder: None)
    table = V2.format(mount=tmp_path)
    with pytest.raises(ClusterError, match="this machine does not give cpu: see"):
        plan.refuse_host(table)
    (tmp_path / "cgroup.subtree_control").write_text("cpu io memory pids\n")
    plan.refuse_host(table)
    with pytest.raises(ClusterError, match="nodes need / to be a mount point"):
        plan.refuse_host(table.partition("\n")[2])
    with pytest.raises(ClusterError, match="nodes need cgroups"):
        plan.refuse_host(table.partition("\n")[0])
