"""The examples are tests of their users; they run as a user runs them, in a pytest of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tools

EXAMPLES = tools.ROOT / "examples"
QUICK = ("crd_controller", "admission_webhook", "scheduler_plugin", "statefulset")
LONG = ("kopf_operator", "planted_bugs")


def run(folder: Path, names: tuple[str, ...]) -> str:
    """The output of pytest for some examples; `folder` stands for the site-packages of a user."""
    plugin = folder / "maintenance-0.1.dist-info"  # what `pip install examples/scheduler_plugin` leaves
    plugin.mkdir()
    (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: maintenance\nVersion: 0.1\n")
    metadata = (EXAMPLES / "scheduler_plugin" / "pyproject.toml").read_text()
    name, value = re.findall(r'^(\w+) = "(maintenance:\w+)"$', metadata, re.M)[0]
    (plugin / "entry_points.txt").write_text(f"[pybernetes.scheduler.plugins]\n{name} = {value}\n")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    path = [str(tools.ROOT / "src"), str(folder), str(EXAMPLES / "scheduler_plugin")]
    environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": os.pathsep.join(path)}
    options = ["-q", "--rootdir", str(EXAMPLES), "-c", os.devnull, "-p", "pybernetes.testing.plugin"]
    argv = [
        sys.executable,
        "-m",
        "pytest",
        *options,
        "-p",
        "no:cacheprovider",
        *(str(EXAMPLES / each) for each in names),
    ]
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=280)
    return done.stdout + done.stderr


def test_the_examples_pass(tmp_path: Path) -> None:
    output = run(tmp_path, QUICK)
    assert re.search(r"\n6 passed in ", output), output


@pytest.mark.soak
def test_the_longer_examples_pass(tmp_path: Path) -> None:
    output = run(tmp_path, LONG)
    assert re.search(r"\n5 passed in ", output), output


def test_each_example_is_listed_and_tested() -> None:
    folders = {each.name for each in EXAMPLES.iterdir() if each.is_dir() and not each.name.startswith(("_", "."))}
    assert folders == {*QUICK, *LONG}
    assert all(f"`{each}/`" in (EXAMPLES / "README.md").read_text() for each in folders)
    assert all(list((EXAMPLES / each).glob("test_*.py")) for each in folders)
