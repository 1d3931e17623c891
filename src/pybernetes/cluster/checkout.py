"""The checkout the program runs from: tests and benchmarks are not part of the installed package."""

from __future__ import annotations

from pathlib import Path

import pybernetes
from pybernetes.cluster.errors import ClusterError


def root() -> Path:
    """The folder that holds pyproject.toml."""
    folder = Path(pybernetes.__file__).resolve().parents[2]
    if not (folder / "pyproject.toml").is_file():
        raise ClusterError("this command needs a checkout of the project, not an installed package")
    return folder
