"""Limits, counters and disk IO of cgroups, from the files of both versions."""

from __future__ import annotations

from pathlib import Path

from pybernetes.kubelet.stats.cgroup_details import Details, DeviceIO, details_reader


def _files(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_version_1(tmp_path: Path) -> None:
    _files(tmp_path / "cpu/pod", cpu__shares="512", cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    _files(tmp_path / "memory/pod", memory__oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 3")
    _files(tmp_path / "pids/pod", pids__current="7")
    served = "8:0 Read 4096\n8:0 Write 10\n8:0 Total 4106\nTotal 4106"
    _files(tmp_path / "blkio/pod", blkio__throttle__io_service_bytes=served, blkio__throttle__io_serviced="8:0 Read 2")
    mounts = "".join(
        f"30 29 0:26 / {tmp_path}/{name} rw - cgroup cgroup rw,{name}\n" for name in ("cpu", "memory", "pids", "blkio")
    )
    (tmp_path / "mountinfo").write_text(mounts)
    found = details_reader(tmp_path / "mountinfo")("/pod")
    assert found == Details(512, 50000, 100000, 7, 3, {"8:0": DeviceIO(4096, 10, 2, 0)})


def test_version_2(tmp_path: Path) -> None:
    _files(
        tmp_path / "unified/pod",
        cpu__weight="100",
        cpu__max="max 100000",
        memory__events="low 0\noom 1\noom_kill 2",
        pids__current="7",
        io__stat="8:0 rbytes=5 wbytes=6 rios=7 wios=8 dbytes=0 dios=0",
    )
    (tmp_path / "mountinfo").write_text(f"30 29 0:26 / {tmp_path}/unified rw - cgroup2 cgroup2 rw\n")
    found = details_reader(tmp_path / "mountinfo")("/pod")
    assert found == Details(1024, -1, 100000, 7, 2, {"8:0": DeviceIO(5, 6, 7, 8)})
    assert details_reader(tmp_path / "mountinfo")("/gone") == Details()
