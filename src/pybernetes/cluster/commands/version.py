"""`pyb version`: our version, and the Kubernetes version whose API we speak."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version

from pybernetes.cluster.cli import program

KUBERNETES = "v1.36"


def main(argv: list[str]) -> int:
    """Prints one line."""
    parser = argparse.ArgumentParser(
        prog=f"{program()} version", description="Prints the versions.", allow_abbrev=False
    )
    parser.parse_args([word for word in argv if word != "--version"])
    print(f"pybernetes {version('pybernetes')} (Kubernetes API {KUBERNETES}, Python {platform.python_version()})")
    return 0
