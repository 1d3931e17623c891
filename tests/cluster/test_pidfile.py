"""A pid file names a process only together with its start time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tools
from pybernetes.cluster import pidfile


def test_a_running_process_is_read_back_alive(tmp_path: Path) -> None:
    path = str(tmp_path / "x.pid")
    pidfile.write(path, os.getpid(), restarts=3)
    process = pidfile.read(path)
    assert process is not None
    assert (process.pid, process.restarts, process.alive) == (os.getpid(), 3, True)
    assert os.listdir(tmp_path) == ["x.pid"]


def test_a_reused_pid_is_not_the_process_that_was_written(tmp_path: Path) -> None:
    started = pidfile.start_time(os.getpid())
    assert started is not None
    assert not pidfile.Process(os.getpid(), started - 1).alive


def test_a_zombie_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        state = Path(f"/proc/{child.pid}/stat")
        tools.wait_until(lambda: state.read_text().rpartition(")")[2].split()[0] == "Z", "the child is a zombie")
        assert pidfile.start_time(child.pid) is None


def test_a_program_name_with_brackets_and_blanks_does_not_confuse_the_start_time(tmp_path: Path) -> None:
    link = tmp_path / "a) R 1 (b"
    link.symlink_to("/bin/sleep")
    with subprocess.Popen([str(link), "30"]) as child:
        try:
            tools.wait_until(lambda: b"a) R 1 (b" in Path(f"/proc/{child.pid}/stat").read_bytes(), "exec is done")
            assert abs((pidfile.start_time(child.pid) or 0) - (pidfile.start_time(os.getpid()) or 0)) < 100 * 3600 * 24
            fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
            assert pidfile.start_time(child.pid) == int(fields[19])
        finally:
            child.kill()


def test_a_damaged_or_missing_file_is_no_process(tmp_path: Path) -> None:
    assert pidfile.read(str(tmp_path / "none.pid")) is None
    (tmp_path / "damaged.pid").write_text("12")
    process = pidfile.read(str(tmp_path / "damaged.pid"))
    assert process is not None
    assert not process.alive
    pidfile.remove(str(tmp_path / "none.pid"))
