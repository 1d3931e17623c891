"""`pyb test`: installs only what is missing, and stops at the first stage that fails.

apt-get, dpkg-deb and sudo are played by scripts that write down their arguments: the real ones change the machine.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pybernetes.cluster.commands import lock
from pybernetes.cluster.commands import test as command
from pybernetes.cluster.errors import ClusterError


class Machine:
    """A PATH with nothing on it but what a test puts there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.log = folder / "log"
        monkeypatch.setenv("PATH", str(self.bin))
        monkeypatch.delenv("PYB_TEST_KUBECTL", raising=False)
        monkeypatch.setattr(time, "sleep", lambda _: None)
        monkeypatch.setattr(command, "FOLDERS", str(folder / "sbin"))

    def program(self, name: str, script: str = "") -> None:
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.log}\n{script}\n')
        path.chmod(0o755)

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path, monkeypatch)
    machine.program("env", 'shift; exec "$@"')
    machine.program("sudo", 'exec "$@"')
    machine.program("apt-get", 'case "$*" in *download*) : > kubernetes-client_1.deb;; esac')
    machine.program("dpkg-deb", '/bin/mkdir -p "$3/usr/bin"; : > "$3/usr/bin/kubectl"')
    return machine


def test_everything_missing_is_installed_after_one_update(machine: Machine) -> None:
    command.install_programs(machine.project)
    apt = [line for line in machine.calls() if line.startswith("apt-get")]
    assert apt[0] == "apt-get -qq update"
    assert apt[1].startswith("apt-get -qq install -y --no-install-recommends etcd-server wrk ")
    assert apt[2].endswith("download kubernetes-client")
    assert (machine.project / command.KUBECTL).exists()
    assert os.listdir(machine.project / ".cache") == ["kubectl-debian"]


def test_nothing_missing_means_no_call_at_all(machine: Machine) -> None:
    for name in command.DEBIAN_PACKAGES:
        machine.program(name)
    kubectl = machine.project / command.KUBECTL
    kubectl.parent.mkdir(parents=True)
    kubectl.touch()
    command.install_programs(machine.project)
    assert machine.calls() == []


def test_a_mirror_with_a_bad_moment_is_asked_again(machine: Machine) -> None:
    machine.program("wrk")
    machine.program("etcd")
    flag = machine.project / "seen"
    machine.program(
        "apt-get",
        f'[ -e {flag} ] || {{ : > {flag}; exit 100; }}\ncase "$*" in *download*) : > kubernetes-client_1.deb;; esac',
    )
    command.install_programs(machine.project)
    assert machine.calls().count("apt-get -qq update") == 2


def test_without_apt_the_needed_packages_are_named(machine: Machine) -> None:
    (machine.bin / "apt-get").unlink()
    with pytest.raises(ClusterError, match=r"etcd-server, wrk, .*kubernetes-client"):
        command.install_programs(machine.project)


def test_the_first_failing_stage_is_named_and_the_rest_does_not_run(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.program("python", 'case "$*" in "-m mypy"*) exit 3;; esac')
    machine.program("ruff")
    machine.program("lint-imports")
    monkeypatch.setattr(sys, "executable", str(machine.bin / "python"))
    monkeypatch.setattr(command, "root", lambda: machine.project)
    monkeypatch.setattr(command, "install_programs", lambda folder: None)
    monkeypatch.setattr(command, "install_packages", lambda folder: None)
    monkeypatch.chdir(machine.project)
    assert command.main(["-k", "x"]) == 1
    shown = capfd.readouterr().out
    assert "== ruff format: ok" in shown
    assert "== mypy: FAILED (exit code 3" in shown
    assert "pytest" not in shown
    machine.program("python")
    assert command.main(["-k", "x"]) == 0
    assert machine.calls()[-1].endswith("-k x")


@pytest.mark.parametrize(
    ("unsteady", "broken", "tries"),
    [
        pytest.param(0, 0, 1, id="nothing fails"),
        pytest.param(2, 0, 2, id="what passes alone is named"),
        pytest.param(1, 1, 2, id="what is broken fails both times"),
        pytest.param(command.RUN_ALONE + 1, 0, 1, id="so many are not run again"),
    ],
)
def test_a_test_that_failed_beside_others_fails_the_run_even_if_it_passes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    unsteady: int, broken: int, tries: int,
) -> None:  # fmt: skip
    (tmp_path / "test_all.py").write_text(
        "import pathlib, pytest\n"
        f"@pytest.mark.parametrize('number', range({unsteady}))\n"
        "def test_unsteady(number):\n"
        "    seen = pathlib.Path(f'seen-{number}')\n"
        "    seen.touch(exist_ok=False) if not seen.exists() else seen.rename('again')\n"
        "    assert pathlib.Path('again').exists()\n"
        f"@pytest.mark.parametrize('number', range({broken}))\n"
        "def test_broken(number): raise AssertionError\n"
        "def test_steady(): print('steady', file=open('runs', 'a'))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    python = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path)]
    if unsteady or broken:
        with pytest.raises(subprocess.CalledProcessError):
            command.run_tests(tmp_path, python, ["-n", "2"], [])
    else:
        command.run_tests(tmp_path, python, ["-n", "2"], [])
    shown = capfd.readouterr().out
    assert ("once more alone" in shown) == (tries == 2)
    passes_alone = "== pytest: FAILED test_all.py::test_unsteady[0] (passes alone)\n" in shown
    assert passes_alone == (0 < unsteady <= command.RUN_ALONE)
    assert ("== pytest: FAILED test_all.py::test_broken[0]\n" in shown) == (broken > 0)
    assert (tmp_path / "runs").read_text() == "steady\n"  # what passed is not run again


def test_strings_hash_the_same_in_every_ordinary_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_hash.py").write_text("def test_it(): print('x', hash('x'), file=open('hashes', 'a'))")
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        monkeypatch.setenv("PYTHONHASHSEED", "")  # restored at the end, whatever run_tests sets
        monkeypatch.delenv("PYTHONHASHSEED")
        command.run_tests(tmp_path, [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path)], [], [])
    assert len(set((tmp_path / "hashes").read_text().splitlines())) == 1


def test_the_locked_packages_are_installed_once_and_again_when_the_lock_changes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine.program("python")
    monkeypatch.setattr(sys, "executable", str(machine.bin / "python"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    run, test = machine.project / lock.RUN, machine.project / lock.TEST
    run.parent.mkdir()
    helm = machine.project / command.HELM
    helm.write_text("helm")
    for content, calls in ((("a", "b"), 1), (("a", "b"), 1), (("c", "b"), 2), (("c", "d"), 3)):
        run.write_text(content[0])
        test.write_text(content[1])
        command.install_packages(machine.project)
        assert len(machine.calls()) == calls
    only_here = f" -r {helm}" if platform.machine() == "x86_64" else ""
    assert machine.calls()[0].endswith(f"--no-deps --require-hashes -r {run} -r {test}{only_here}")
