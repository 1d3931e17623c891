"""The coverage-guided fuzzers, for a bounded while; with more time they are run by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 60


@pytest.mark.soak
@pytest.mark.parametrize("script", sorted(Path(__file__).parent.glob("atheris_*.py")), ids=lambda path: path.stem)
def test_nothing_breaks(script: Path, tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    command = [sys.executable, str(script), f"-max_total_time={SECONDS}", f"-artifact_prefix={tmp_path}/"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=SECONDS * 2)
    assert done.returncode == 0, done.stderr[-5000:]
