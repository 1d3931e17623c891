"""What is read of cgroups (made of plain files), of network namespaces and of folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybernetes.kubelet.stats.filesystem import file_system, size_of
from pybernetes.kubelet.stats.network import parse_net_dev
from pybernetes.kubelet.stats.usage import Pressure, Usage, parse_pressure, reader

PSI = "some avg10=1.50 avg60=0.20 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"


def files(folder: Path, **contents: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name.replace("__", ".")).write_text(content + "\n")


def mounts(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"1 2 0:1 / {line}\n" for line in lines))
    return path


def test_version_1(tmp_path: Path) -> None:
    for controller in ("memory", "cpu,cpuacct", "pids"):
        (tmp_path / controller).mkdir()
    files(
        tmp_path / "memory/kubepods/pod1",
        memory__usage_in_bytes="1000",
        memory__limit_in_bytes="5000",
        memory__stat="cache 1\ntotal_inactive_file 300\ntotal_rss 200\ntotal_pgfault 7\ntotal_pgmajfault 2",
    )
    files(tmp_path / "cpu,cpuacct/kubepods/pod1", cpuacct__usage="123456789", cpuacct__stat="user 3\nsystem 4")
    files(tmp_path / "pids/kubepods/pod1", pids__current="5")
    info = mounts(
        tmp_path / "mountinfo",
        f"{tmp_path}/memory rw - cgroup cgroup rw,memory",
        f"{tmp_path}/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
        f"{tmp_path}/pids rw - cgroup cgroup rw,pids",
    )
    assert reader(info).read("/kubepods/pod1") == Usage(
        cpu=123456789,
        memory=1000,
        working_set=700,
        rss=200,
        page_faults=7,
        major_page_faults=2,
        memory_limit=5000,
        processes=5,
        cpu_user=30_000_000,
        cpu_system=40_000_000,
    )
    assert reader(info).read("/kubepods/gone") is None
    (tmp_path / "memory/kubepods/pod1/memory.limit_in_bytes").write_text("9223372036854771712")
    found = reader(info).read("/kubepods/pod1")
    assert found is not None
    assert found.memory_limit is None


def test_version_2(tmp_path: Path) -> None:
    files(
        tmp_path / "kubepods/pod1",
        cpu__stat="usage_usec 500\nuser_usec 300\nsystem_usec 200\nnr_periods 9\nnr_throttled 2\nthrottled_usec 11",
        memory__current="1000",
        memory__max="max",
        memory__stat="inactive_file 1200\nanon 200\nfile 50\nfile_mapped 20\npgfault 7\npgmajfault 2",
        memory__swap__current="64",
        memory__swap__max="128",
        pids__current="5",
        cpu__pressure=PSI.strip(),
    )
    info = mounts(tmp_path / "mountinfo", f"{tmp_path} rw - cgroup2 cgroup2 rw")
    some, full = parse_pressure(PSI)
    assert reader(info).read("/kubepods/pod1") == Usage(
        cpu=500_000,
        memory=1000,
        working_set=0,
        rss=200,
        cache=50,
        mapped_file=20,
        page_faults=7,
        major_page_faults=2,
        swap=64,
        swap_limit=128,
        processes=5,
        cpu_user=300_000,
        cpu_system=200_000,
        periods=9,
        throttled_periods=2,
        throttled=11_000,
        pressure={"cpu": (some, full)},
    )


def test_pressure() -> None:
    assert parse_pressure(PSI) == (Pressure(1_234_000, 1.5, 0.2, 0.0), Pressure(7000, 0.0, 0.0, 0.0))


def test_interfaces_without_those_of_others() -> None:
    text = (
        "Inter-|   Receive   |  Transmit\n face |bytes packets errs drop ...\n"
        "    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
        "  eth0: 100 10 1 2 0 0 0 0 200 20 3 4 0 0 0 0\n"
        "veth12: 5 5 5 5 0 0 0 0 5 5 5 5 0 0 0 0\n"
    )
    (found,) = parse_net_dev(text)
    assert (found.name, found.rx_bytes, found.rx_packets, found.rx_errors, found.rx_dropped) == ("eth0", 100, 10, 1, 2)
    assert (found.tx_bytes, found.tx_packets, found.tx_errors, found.tx_dropped) == (200, 20, 3, 4)


def test_sizes_count_blocks_inodes_and_hard_links_once(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "below").mkdir(parents=True)
    before = size_of(top)
    (top / "below" / "a").write_bytes(b"x" * 10_000)
    os.link(top / "below" / "a", top / "b")
    (top / "elsewhere").symlink_to("/usr")
    after = size_of(top)
    assert after.inodes - before.inodes == 2
    assert 10_000 <= after.bytes - before.bytes < 20_000
    assert size_of(tmp_path / "none").bytes == 0


def test_a_file_system_is_no_fuller_than_it_is_large(tmp_path: Path) -> None:
    found = file_system(tmp_path)
    assert found is not None
    assert found.capacity >= found.available
    assert found.capacity >= found.used
    assert file_system(tmp_path / "none") is None


def test_the_cgroups_of_this_machine_can_be_read() -> None:
    if not Path("/sys/fs/cgroup").exists():
        pytest.skip("no cgroups here")
    found = reader().read("/")
    assert found is not None
    assert found.cpu > 0
    assert found.memory >= found.working_set > 0
