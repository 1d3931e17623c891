"""A user's shell, whose clusters end with the test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.shell import Shell

from pybernetes.cluster import pidfile


@pytest.fixture
def pyb(tmp_path: Path) -> Iterator[Shell]:
    home = tmp_path / "home"
    home.mkdir()
    shell = Shell(home)
    yield shell
    for path in tmp_path.rglob("*.pid"):
        process = pidfile.read(str(path))
        if process is not None and process.alive:
            os.kill(process.pid, signal.SIGKILL)
