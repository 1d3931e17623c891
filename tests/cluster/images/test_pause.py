"""The pause program: a few hundred bytes that hold a sandbox, end at SIGTERM, and reap orphans."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import tools
from pybernetes.cluster.images import oci
from pybernetes.cri.embedded import pause

RUN = {"amd64": [], "arm64": ["qemu-aarch64-static"]}


def test_it_is_small_and_others_are_refused() -> None:
    assert len(pause.program("amd64")) < 300
    assert len(pause.program("arm64")) < 300
    with pytest.raises(ValueError, match="no pause program for riscv64"):
        pause.program("riscv64")


@pytest.fixture(params=["amd64", "arm64"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    architecture = str(request.param)
    runner = [] if architecture == oci.this_architecture() else RUN[architecture]
    if architecture != oci.this_architecture() and (not runner or shutil.which(runner[0]) is None):
        pytest.skip(f"this machine runs no {architecture} programs")
    program = tmp_path / "pause"
    program.write_bytes(pause.program(architecture))
    program.chmod(0o755)
    return [*runner, str(program)]


def waits(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_waits_for_a_signal_to_end(command: list[str], number: int) -> None:
    process = subprocess.Popen(command)
    tools.wait_until(lambda: waits(process.pid), "pause waits")
    process.send_signal(signal.SIGCHLD)
    process.send_signal(signal.SIGCONT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    process.send_signal(number)
    assert process.wait(10) == 0


@pytest.mark.skipif(os.geteuid() != 0 or platform.system() != "Linux", reason="PID namespaces need root")
def test_as_pid_1_it_ends_on_a_signal_and_reaps_orphans(command: list[str]) -> None:
    if len(command) > 1:
        pytest.skip("qemu loses signals that are waited for (rt_sigtimedwait) when they came before")
    script = f"( sleep 0.05 & ) ; exec {' '.join(command)}"
    outer = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", script])
    try:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        init = int(tools.wait_until(lambda: children.read_text().strip(), "the namespace has an init"))
        mine = Path(f"/proc/{init}/task/{init}/children")
        tools.wait_until(lambda: os.readlink(f"/proc/{init}/exe") == command[0] and waits(init), "pause waits")
        tools.wait_until(lambda: not mine.read_text().strip(), "the orphan was reaped")
        os.kill(init, signal.SIGTERM)
        assert outer.wait(10) == 0
    finally:
        outer.kill()
        outer.wait()
