"""`pyb logs`: by component, all together, the last lines, and what comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tools
from pybernetes.cluster import cli


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "nodes/node-1").mkdir(parents=True)
    (tmp_path / "logs/apiserver.log").write_text("one\ntwo\n")
    (tmp_path / "logs/node-1-kubelet.log").write_text("three\n")
    return tmp_path


def run(data: Path, capfdbinary: pytest.CaptureFixture[bytes], *words: str, code: int = 0) -> str:
    assert cli.main(["logs", "--data-dir", str(data), *words]) == code
    out, err = capfdbinary.readouterr()
    return (out + err).decode()


def test_logs_are_shown_by_component_or_all(data: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(data, capfdbinary, "apiserver") == "one\ntwo\n"
    assert run(data, capfdbinary, "apiserver", "--tail", "1") == "two\n"
    for name in ("kubelet", "node-1/kubelet"):
        assert run(data, capfdbinary, name) == "three\n"
    shown = run(data, capfdbinary)
    assert shown.splitlines() == ["apiserver      | one", "apiserver      | two", "node-1/kubelet | three"]
    said = run(data, capfdbinary, "etcd", code=1)
    assert "no component 'etcd'; there are: apiserver, node-1/kubelet" in said


def test_a_log_is_followed_also_when_it_is_emptied(data: Path) -> None:
    command = [sys.executable, "-m", "pybernetes", "logs", "--data-dir", str(data), "-f", "apiserver"]
    log = data / "logs/apiserver.log"
    seen = data / "seen"
    with seen.open("wb") as out, subprocess.Popen(command, stdout=out) as process:
        try:
            tools.wait_until(lambda: seen.read_text() == "one\ntwo\n", "what is there")
            with log.open("a") as file:
                file.write("more\n")
            tools.wait_until(lambda: seen.read_text().endswith("more\n"), "what comes")
            log.write_text("new\n")
            tools.wait_until(lambda: seen.read_text().endswith("more\nnew\n"), "what comes after a rotation")
        finally:
            process.kill()
