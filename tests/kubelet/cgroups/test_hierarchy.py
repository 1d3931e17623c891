"""Cgroups in the kernel: real ones of version 1 where the machine has them, the files of version 2 as files."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kubelet.pods import container, pod

from pybernetes.api.core.podresources import parsed
from pybernetes.kubelet.cgroups import v1
from pybernetes.kubelet.cgroups.config import CgroupConfig
from pybernetes.kubelet.cgroups.hierarchy import CgroupError, detect, find_mounts
from pybernetes.kubelet.cgroups.manager import CgroupManager
from pybernetes.kubelet.cgroups.v1 import CgroupsV1
from pybernetes.kubelet.cgroups.v2 import CgroupsV2

MOUNTINFO = """\
23 1 254:0 / / rw - ext4 /dev/vda rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:32 / /var/lib/other/long/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""


def test_mounts_are_found_by_controller_and_the_shortest_counts() -> None:
    mounts = find_mounts(MOUNTINFO)
    assert mounts.controllers == {
        "cpu": Path("/sys/fs/cgroup/cpu,cpuacct"),
        "cpuacct": Path("/sys/fs/cgroup/cpu,cpuacct"),
        "memory": Path("/sys/fs/cgroup/memory"),
        "name=systemd": Path("/sys/fs/cgroup/systemd"),
    }
    assert mounts.unified == Path("/sys/fs/cgroup/unified")


def test_a_machine_without_cgroups_is_reported(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text("23 1 254:0 / / rw - ext4 /dev/vda rw\n")
    with pytest.raises(CgroupError, match="failed to find cgroup mounts"):
        detect(tmp_path / "mountinfo")


# version 2


@pytest.fixture
def unified(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory\n")
    return tmp_path


class _Handing(CgroupsV2):
    """Folders in place of the kernel: a new cgroup has the controllers that were handed down."""

    def _hand_down(self, path: Path) -> None:
        if not (path / "cgroup.subtree_control").exists():
            (path / "cgroup.subtree_control").write_text("")
        super()._hand_down(path)
        (path / "handed").write_text((path / "cgroup.subtree_control").read_text())


def test_version_2_hands_controllers_down_and_writes_its_own_files(unified: Path) -> None:
    cgroups = _Handing(unified)
    config = CgroupConfig(cpu_shares=1024, cpu_quota=150_000, cpu_period=100_000, memory=1 << 30, pids=100)
    cgroups.create("/kubepods/pod1", config)
    assert (unified / "handed").read_text() == "+cpuset +pids"
    assert (unified / "kubepods/handed").read_text() == "+cpu +cpuset +memory +pids"
    written = {each.name: each.read_text() for each in (unified / "kubepods/pod1").iterdir()}
    assert written == {"cpu.weight": "100", "cpu.max": "150000 100000", "memory.max": "1073741824", "pids.max": "100"}
    assert cgroups.read("/kubepods/pod1") == CgroupConfig(
        cpu_shares=1024, cpu_quota=150_000, cpu_period=100_000, memory=1 << 30, pids=100
    )


def test_version_2_writes_no_limit_as_max(unified: Path) -> None:
    cgroups = _Handing(unified)
    cgroups.create("/p", CgroupConfig(cpu_quota=-1, cpu_period=100_000, memory=-1, pids=-1))
    assert {each.name: each.read_text() for each in (unified / "p").iterdir()} == {
        "cpu.max": "max 100000",
        "memory.max": "max",
        "pids.max": "max",
    }


def test_version_2_exists_only_with_all_its_controllers(unified: Path) -> None:
    cgroups = CgroupsV2(unified)
    (unified / "p").mkdir()
    (unified / "p/cgroup.controllers").write_text("cpu memory")
    assert not cgroups.exists("/p")
    (unified / "p/cgroup.controllers").write_text("cpu cpuset memory pids")
    assert cgroups.exists("/p")
    assert not cgroups.exists("/none")


# version 1, and what is above both


@pytest.fixture
def manager() -> Iterator[CgroupManager]:
    """A node's cgroups below one of our own."""
    if os.geteuid() or not Path("/sys/fs/cgroup/memory").is_dir():
        pytest.skip("needs root and cgroup v1")
    hierarchy = detect()
    assert isinstance(hierarchy, CgroupsV1)
    root = f"/pybernetes-hierarchy-{os.getpid()}"  # the node of tests/node may live in this process too
    manager = CgroupManager(hierarchy, root=root, pod_pids_limit=16)
    manager.start(parsed({"cpu": "2", "memory": "1Gi"}), pids=1000)
    yield manager
    asyncio.run(manager.remove_all())
    hierarchy.remove(root)
    assert not hierarchy.children("/") & {root.strip("/")}


GUARANTEED = pod("aa-11", container("a", "=1", "=64Mi"))
BURSTABLE = pod("bb-22", container("a", "500m", "32Mi"))
BEST_EFFORT = pod("cc-33", container("a"))


def _read(controller: str, name: str, file: str) -> str:
    return Path(f"/sys/fs/cgroup/{controller}{name}/{file}").read_text().strip()


def test_pods_are_below_their_quality_of_service(manager: CgroupManager) -> None:
    root = manager.kubepods
    assert manager.ensure(GUARANTEED) == f"{root}/podaa-11"
    assert manager.ensure(BURSTABLE) == f"{root}/burstable/podbb-22"
    assert manager.ensure(BEST_EFFORT) == f"{root}/besteffort/podcc-33"
    assert manager.pods() == {
        "aa-11": f"{root}/podaa-11",
        "bb-22": f"{root}/burstable/podbb-22",
        "cc-33": f"{root}/besteffort/podcc-33",
    }
    assert _read("memory", root, "memory.limit_in_bytes") == str(1 << 30)
    assert _read("pids", root, "pids.max") == "1000"
    assert _read("cpu", f"{root}/besteffort", "cpu.shares") == "2"
    assert _read("cpu", f"{root}/podaa-11", "cpu.cfs_quota_us") == "100000"
    assert _read("memory", f"{root}/podaa-11", "memory.limit_in_bytes") == str(64 << 20)
    assert _read("pids", f"{root}/besteffort/podcc-33", "pids.max") == "16"
    assert _read("cpuset", f"{root}/besteffort/podcc-33", "cpuset.cpus")
    assert manager.read(BURSTABLE).memory == -1


def test_the_weight_of_burstable_is_what_its_pods_request(manager: CgroupManager) -> None:
    manager.update_qos([GUARANTEED, BURSTABLE, BEST_EFFORT, pod("x", container("a", "1500m/2"))])
    assert _read("cpu", manager.burstable, "cpu.shares") == "2048"
    manager.update_qos([])
    assert _read("cpu", manager.burstable, "cpu.shares") == "2"


def test_the_weight_follows_pods_that_come_and_go(manager: CgroupManager) -> None:
    manager.ensure(BURSTABLE)
    manager.ensure(BEST_EFFORT)
    assert _read("cpu", manager.burstable, "cpu.shares") == "512"
    asyncio.run(manager.remove("bb-22"))
    assert _read("cpu", manager.burstable, "cpu.shares") == "2"


def test_a_start_after_a_restart_changes_limits_and_keeps_pods(manager: CgroupManager) -> None:
    manager.ensure(BURSTABLE)
    manager.start(parsed({"cpu": "1", "memory": "2Gi"}), pids=500)
    assert _read("memory", manager.kubepods, "memory.limit_in_bytes") == str(2 << 30)
    assert set(manager.pods()) == {"bb-22"}


class _Killed(BaseException):
    """What comes after it does not happen."""


def _killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets so many folders and files be made or written; the next one is not."""
    left = iter(range(step))

    def limited(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if next(left, None) is None:
                raise _Killed
            return function(*arguments)

        return call

    monkeypatch.setattr(v1, "make", limited(v1.make))
    monkeypatch.setattr(v1, "write", limited(v1.write))


def test_what_a_kubelet_has_made_that_was_killed_at_any_step_is_made_whole_by_the_next_one(
    manager: CgroupManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made() -> tuple[CgroupConfig, bool]:
        name = manager.ensure(GUARANTEED, unused=True)
        return manager.read(GUARANTEED), all(_read("cpuset", name, f"cpuset.{each}") for each in ("cpus", "mems"))

    whole = made()
    assert whole == (replace(manager.config(GUARANTEED), hugepages=None), True)
    finished = False
    for step in range(100):
        asyncio.run(manager.remove("aa-11"))
        with monkeypatch.context() as patch:
            _killed_at(step, patch)
            try:
                manager.ensure(GUARANTEED, unused=True)
                finished = True
            except _Killed:
                pass
        assert made() == whole, f"step {step}"
        if finished:
            break
    assert finished
    assert step > 10


def test_a_pod_has_no_more_processes_than_its_limit(manager: CgroupManager) -> None:
    name = manager.ensure(BEST_EFFORT)
    script = (
        f"echo $$ > /sys/fs/cgroup/pids{name}/cgroup.procs; for i in $(seq 40); do sleep 60 >&- 2>&- & done; exit 0"
    )
    ended = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert "fork" in ended.stderr.lower()
    assert 0 < len(manager.hierarchy.pids(name)) <= 16
    asyncio.run(manager.remove("cc-33"))
    assert not manager.pods()


def test_a_pod_is_killed_by_its_memory_limit(manager: CgroupManager) -> None:
    name = manager.ensure(GUARANTEED)
    script = f"echo $$ > /sys/fs/cgroup/memory{name}/cgroup.procs; exec tail /dev/zero"
    ended = subprocess.run(["sh", "-c", script], timeout=60)
    assert ended.returncode == -signal.SIGKILL


def test_removing_a_pod_kills_what_is_left_and_orphans_go(manager: CgroupManager) -> None:
    for each in (GUARANTEED, BURSTABLE):
        manager.ensure(each)
    inside = f"{manager.name(BURSTABLE)}/container"
    manager.hierarchy.create(inside, CgroupConfig())
    with subprocess.Popen(["sleep", "60"]) as process:
        Path(f"/sys/fs/cgroup/memory{inside}/cgroup.procs").write_text(str(process.pid))
        asyncio.run(manager.remove_orphans({"aa-11"}))
        assert process.wait(30) == -signal.SIGKILL
    assert set(manager.pods()) == {"aa-11"}
    assert not Path(f"/sys/fs/cgroup/cpu{manager.name(BURSTABLE)}").exists()


def test_what_is_reserved_limits_who_is_not_a_pod(manager: CgroupManager) -> None:
    name = manager.kubepods.replace("kubepods", "system")
    reserved = parsed({"cpu": "500m", "memory": "256Mi"})
    with pytest.raises(CgroupError, match=f'cgroup "{name}" does not exist'):
        manager.enforce_reserved(name, reserved)
    manager.hierarchy.create(name, CgroupConfig())
    manager.enforce_reserved(name, reserved, compressible=True)
    assert (_read("cpu", name, "cpu.shares"), manager.hierarchy.read(name).memory) == ("512", -1)
    manager.enforce_reserved(name, reserved)
    assert manager.hierarchy.read(name).memory == 256 << 20


def test_a_value_that_the_kernel_refuses_is_reported_with_its_file(manager: CgroupManager) -> None:
    manager.ensure(BURSTABLE)
    with pytest.raises(CgroupError, match=r"failed to write 1 to .*cpu.cfs_quota_us: Invalid argument"):
        manager.update(BURSTABLE, CgroupConfig(cpu_quota=1))
