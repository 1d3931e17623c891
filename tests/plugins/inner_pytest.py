"""A pytest of its own, to watch the plugins of this folder at work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tools


def run(folder: Path, *arguments: str, plugin: str) -> str:
    """The output of pytest in a folder, with one of the plugins."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", f"plugins.{plugin}", "--rootdir", str(folder)]
    environ = {**os.environ, "PYTHONPATH": str(tools.ROOT / "tests"), "PYTHONHASHSEED": "0"}
    for name in [name for name in environ if name.startswith("PYTEST_")]:
        del environ[name]
    result = subprocess.run([*command, *arguments], cwd=folder, env=environ, capture_output=True, text=True)
    return result.stdout + result.stderr
