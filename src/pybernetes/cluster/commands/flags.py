"""The flags by which every command names a cluster."""

from __future__ import annotations

import argparse

from pybernetes.cluster.cli import program
from pybernetes.cluster.layout import DEFAULT_NAME


def parser(command: str, description: str) -> argparse.ArgumentParser:
    """A parser with --name and --data-dir."""
    result = argparse.ArgumentParser(prog=f"{program()} {command}", description=description, allow_abbrev=False)
    add(result)
    return result


def add(result: argparse.ArgumentParser) -> None:
    """Adds --name and --data-dir."""
    result.add_argument("--name", default=DEFAULT_NAME, help="name of the cluster (default: %(default)s)")
    result.add_argument("--data-dir", metavar="DIR", help="where it keeps everything (default: ~/.pybernetes/NAME)")
