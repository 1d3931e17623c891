"""Devices of a cgroup v2: a program in the kernel decides, so the kernel is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybernetes.cri.embedded import cgroup, devices
from pybernetes.cri.errors import CRIError

TRY = """
import os, sys
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
for path, flags in (("/dev/null", os.O_RDWR), ("/dev/zero", os.O_RDONLY), ("/dev/zero", os.O_RDWR), (sys.argv[2], 0)):
    try:
        os.close(os.open(path, flags))
        print("yes")
    except PermissionError:
        print("no")
"""


def unified() -> Path | None:
    """Where cgroup v2 is mounted."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return next((Path(each[1]) for each in mounts if each[2] == "cgroup2"), None)


@pytest.fixture
def group() -> Iterator[Path]:
    root = unified()
    if os.geteuid() != 0 or root is None:
        pytest.skip("needs root and cgroup v2")
    made = root / f"pyb-test-devices-{os.getpid()}"
    made.mkdir()
    yield made
    made.rmdir()


def tried(group: Path, node: Path) -> list[str]:
    """Whether null can be used, zero be read, zero be written, and a node be read."""
    done = subprocess.run([sys.executable, "-c", TRY, group, node], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_only_what_rules_allow_can_be_used(group: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    os.mknod(node, 0o666 | 0o060000, os.stat("/").st_dev)
    assert tried(group, node)[:3] == ["yes", "yes", "yes"]
    devices.confine(group, ["c 1:3 rwm", "c 1:5 r", "b *:* m", "c *:* m"])
    assert tried(group, node) == ["yes", "yes", "no", "no"]


def test_the_usual_devices(group: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    os.mknod(node, 0o666 | 0o060000, os.stat("/").st_dev)
    devices.confine(group, cgroup.DEVICES)
    assert tried(group, node) == ["yes", "yes", "yes", "no"]


def test_a_cgroup_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CRIError, match=f"failed to confine the devices of cgroup {tmp_path}/none: "):
        devices.confine(tmp_path / "none", [])


@pytest.mark.parametrize("rule", ["", "x 1:3 r", "c 1:3", "c 1:3 rx", "c one:3 r"])
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        devices.program([rule])
