"""Two containers share a volume, and one exchanges a folder in it with a link while the other's mounts are made.

Vectors: CVE-2021-30465 (a mount lands outside of the root), CVE-2024-45310 (empty files and folders made on the node).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from escape.pods import Pod
from escape.racing import exchanging
from escape.runtimes import ours
from node.machine import Machine

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

pytestmark = ours
TRIES = 12


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder of the node that a link in the volume leads to."""
    folder = Path(tempfile.mkdtemp(prefix="pyb-outside-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_mount_never_lands_outside_of_the_root(machine: Machine, outside: Path, kind: str) -> None:
    (outside / "inner").mkdir()
    volume, other = (Path(tempfile.mkdtemp(dir=machine.folder)) for _ in range(2))
    for each in (volume, other):
        each.chmod(0o777)
    (volume / "place").mkdir(mode=0o777)
    (volume / "link").symlink_to(f"../../../../../../../../..{outside}")
    (other / "mark").touch()
    source, inner = (other, "inner/made") if kind == "folder" else (other / "mark", "inner/made.txt")
    mounts = [
        cri.Mount(host_path=str(volume), container_path="/data"),
        cri.Mount(host_path=str(source), container_path=f"/data/place/{inner}"),
    ]
    with Pod(machine) as pod, exchanging(volume / "place", volume / "link"):
        for _ in range(TRIES):
            try:
                pod.sh(pod.sleeper(mounts=mounts), "touch /data/place/inner/touched")
            except CRIError:
                continue  # the link led nowhere in the container
        mounted = machine.run("cat", "/proc/self/mountinfo")
    assert str(outside) not in mounted
    assert [str(each.relative_to(outside)) for each in outside.rglob("*")] == ["inner"]
