"""The `pyb` script: installs once, again when the locked packages change, and says in one line why it cannot.

`.venv/bin/python` is played by a shell script that writes down what it was asked to do; a real installation is what
`./pyb test` begins with on every fresh machine.
"""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

import tools


class Checkout:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls_file = root / "calls"
        shutil.copy(tools.ROOT / "pyb", root / "pyb")
        (root / "pyproject.toml").touch()
        self.lock("# first\n")

    def lock(self, content: str) -> None:
        path = self.root / "requirements" / "run.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)

    def add_python(self, script: str = "") -> None:
        python = self.root / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text(f'#!/bin/sh\necho "$*" >> {self.calls_file}\n{script}\n')
        python.chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(self.root / "pyb"), *words], capture_output=True, text=True)

    def calls(self) -> list[str]:
        calls = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        self.calls_file.unlink(missing_ok=True)
        return calls


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_it_installs_once_and_again_when_the_lock_changes(checkout: Checkout) -> None:
    checkout.add_python()
    command = "-P -m pybernetes up --port 0"
    pip = "-m pip install --quiet --disable-pip-version-check"
    install = [
        "-c import pip",
        f"{pip} --no-deps --require-hashes -r {checkout.root}/requirements/run.txt",
        f"{pip} --no-deps --no-build-isolation -e {checkout.root}",
    ]
    assert checkout.run("up", "--port", "0").returncode == 0
    assert checkout.calls() == [*install, command]
    checkout.run("up", "--port", "0")
    assert checkout.calls() == [command]
    checkout.lock("# second\n")
    checkout.run("up", "--port", "0")
    assert checkout.calls() == [*install, command]


def test_an_installation_that_fails_is_not_remembered(checkout: Checkout) -> None:
    checkout.add_python('case "$*" in *"pip install"*) exit 1;; esac')
    result = checkout.run("up")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("pyb: pip could not install")
    assert len(checkout.calls()) == 2
    checkout.add_python()
    assert checkout.run("up").returncode == 0
    assert len(checkout.calls()) == 4


def test_the_exit_code_is_the_commands(checkout: Checkout) -> None:
    checkout.add_python('case "$*" in *pybernetes*) exit 7;; esac')
    assert checkout.run("status").returncode == 7


def test_a_missing_venv_is_made(checkout: Checkout) -> None:
    # pip then fails on the lock, which is as far as this test needs to go.
    checkout.lock("no requirement\n")
    result = checkout.run("version")
    assert result.returncode == 1
    assert (checkout.root / ".venv" / "bin" / "python").exists()


def load() -> dict[str, Any]:
    return runpy.run_path(str(tools.ROOT / "pyb"))


def test_an_old_python_gets_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    version = namedtuple("version", "major minor micro releaselevel serial")
    script = load()
    monkeypatch.setattr(sys, "version_info", version(3, 9, 2, "final", 0))
    with pytest.raises(SystemExit):
        script["main"]()
    assert capsys.readouterr().err == "pyb: Python 3.11 or newer is needed, this is 3.9; run it as `python3.11 ./pyb`\n"


def test_a_missing_venv_module_names_its_debian_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load()
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(SystemExit):
        script["ensure_venv_module"]("up")
    package = "python{}.{}-venv".format(*sys.version_info[:2])
    assert capsys.readouterr().err.endswith(f"on Debian: apt-get install {package}\n")
