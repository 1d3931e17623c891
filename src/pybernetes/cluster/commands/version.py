"""`pyb version`: our version, and the Kubernetes version whose API we speak."""

from __future__ import annotations

import platform
from importlib.metadata import version

KUBERNETES = "v1.36"


def main(argv: list[str]) -> int:
    """Prints one line."""
    print(f"pybernetes {version('pybernetes')} (Kubernetes API {KUBERNETES}, Python {platform.python_version()})")
    return 0
