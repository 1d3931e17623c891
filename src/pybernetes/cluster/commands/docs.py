"""`pyb docs`: the pages of `docs/` as a site, by mkdocs, which is installed by hand: it is no part of a cluster.

pip install mkdocs && pyb docs build      # into build/site
pyb docs serve                            # at http://127.0.0.1:8000, renewed while you write
"""

from __future__ import annotations

import importlib.util
import os
import sys

from pybernetes.cluster.checkout import root
from pybernetes.cluster.cli import program
from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError


def main(argv: list[str]) -> int:
    """Becomes mkdocs."""
    parser = flags.Parser(prog=f"{program()} docs", description="The documentation as a site (mkdocs).")
    parser.add_argument("what", choices=["build", "serve"], nargs="?", default="build", help="default: %(default)s")
    arguments = parser.parse_args(argv)
    config = root() / "mkdocs.yml"
    if importlib.util.find_spec("mkdocs") is None:
        raise ClusterError(f"mkdocs is not installed: {sys.executable} -m pip install mkdocs")
    strict = ["--strict"] if arguments.what == "build" else []
    os.execv(sys.executable, [sys.executable, "-m", "mkdocs", arguments.what, *strict, "-f", str(config)])
