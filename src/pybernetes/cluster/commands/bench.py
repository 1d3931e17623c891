"""`pyb bench NAME`: runs bench/NAME.py of the checkout, whose `main(argv) -> int` does the rest.

On TERM the command takes down what it has started, as after an interrupt.
"""

from __future__ import annotations

import importlib
import signal
import sys

from pybernetes.cluster.checkout import root
from pybernetes.cluster.cli import program
from pybernetes.cluster.errors import ClusterError


def main(argv: list[str]) -> int:
    """Runs one benchmark; without a name it lists them."""
    folder = root() / "bench"
    # A file that begins with an underscore is a helper of the others.
    names = sorted(path.stem for path in folder.glob("*.py") if not path.name.startswith("_"))
    if not argv or argv[0] in ("-h", "--help"):
        print(f"usage: {program()} bench NAME [flags]\n\nbenchmarks: {', '.join(names) or 'none yet'}")
        return 0
    if argv[0] not in names:
        raise ClusterError(f"no benchmark {argv[0]!r}; there are: {', '.join(names) or 'none yet'}")
    sys.path.insert(0, str(folder))
    before = signal.signal(signal.SIGTERM, _end)
    try:
        return int(importlib.import_module(argv[0]).main(argv[1:]) or 0)
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # what is being taken down is not left halfway
    raise SystemExit(128 + number)
