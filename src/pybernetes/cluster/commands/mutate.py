"""`pyb mutate`: breaks the code at random places and tells which breaks no test notices (tools/mutation)."""

from __future__ import annotations

import importlib
import sys

from pybernetes.cluster.checkout import root


def main(argv: list[str]) -> int:
    """Runs tools/mutation/runner.py of the checkout."""
    from pybernetes.cluster.commands.test import install_packages

    folder = root()
    if not {"-h", "--help"} & set(argv):
        install_packages(folder)
    sys.path.insert(0, str(folder / "tools" / "mutation"))
    return int(importlib.import_module("runner").main(folder, argv))
