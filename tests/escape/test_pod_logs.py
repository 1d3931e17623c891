"""A pod with a hostPath of /var/log puts links in the place of logs: nothing reads or writes what they lead to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybernetes.client.clock import FakeClock
from pybernetes.cri.embedded.logs import LogFile
from pybernetes.kubelet.container.log_rotation import LogRotator
from pybernetes.kubelet.server.log_reader import LogError, open_log

TEXT = "2024-01-01T00:00:00.000000000Z stdout F root:x\n"


@pytest.fixture
def shadow(tmp_path: Path) -> Path:
    """A file of the node."""
    (found := tmp_path / "shadow").write_text(TEXT)
    return found


@pytest.fixture(params=["file", "container's folder", "pod's folder"])
def log(request: pytest.FixtureRequest, tmp_path: Path, shadow: Path) -> Path:
    """The path of a log, of which a part is a link to where the node's file is."""
    path = tmp_path / "pods" / "ns_pod_uid" / "main" / "0.log"
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "main").mkdir(parents=True)
    for each in (elsewhere / "0.log", elsewhere / "main" / "0.log"):
        each.hardlink_to(shadow)
    place = {"file": path, "container's folder": path.parent, "pod's folder": path.parent.parent}[request.param]
    place.parent.mkdir(parents=True)
    place.symlink_to(shadow if place == path else elsewhere)
    return path


def test_kubectl_logs_reads_no_file_of_the_node(log: Path) -> None:
    with pytest.raises(LogError):
        open_log(str(log))


def test_the_runtime_appends_to_no_file_of_the_node(log: Path, shadow: Path) -> None:
    with pytest.raises(OSError, match=r"symbolic links|not a directory"):
        LogFile(str(log))
    assert shadow.read_text() == TEXT


def test_the_runtime_does_not_wait_for_a_reader_of_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "0.log")
    with pytest.raises(OSError, match=r"."):
        LogFile(str(path))


@pytest.mark.parametrize("planted", ["0.log.20231114-221319.tmp", "0.log.20231114-221319", "0.log.20231114-221320"])
async def test_rotation_neither_reads_nor_overwrites_files_of_the_node(
    tmp_path: Path, shadow: Path, planted: str
) -> None:
    folder = tmp_path / "pods" / "ns_pod_uid" / "main"
    folder.mkdir(parents=True)
    (path := folder / "0.log").write_text("0123456789")
    (folder / planted).symlink_to(shadow)
    (folder / "0.log.20231114-221310").write_text("older")

    async def reopen(_: str) -> None:
        path.write_text("")

    clock = FakeClock(1_700_000_000.0)
    rotator = LogRotator(max_size="10", max_files=5, running=lambda: [("id", str(path))], reopen=reopen, clock=clock)
    for _ in range(3):
        await rotator.rotate_all()
        clock.advance(1)
        path.write_text("0123456789")
    assert shadow.read_text() == TEXT  # noqa: ASYNC240
    assert not copies(folder)


def copies(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if not each.is_symlink() and b"root:x" in each.read_bytes()]
