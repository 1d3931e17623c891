"""`pyb objectfs rmr META PATH...`: removes trees without a mount; with a trash, their files go there."""

from __future__ import annotations

import argparse

from pybernetes.objectfs import tree
from pybernetes.objectfs.opened import opened, progress


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("meta", metavar="META")
    parser.add_argument("paths", metavar="PATH", nargs="+", help="from the volume's root")


def run(arguments: argparse.Namespace) -> int:
    with opened(arguments.meta) as volume:
        count = 0
        for path in arguments.paths:
            volume.find(path)
            for _ in progress(tree.remove(volume.namespace(), *volume.parent(path)), "remove"):
                count += 1
    print(f"{count} removed")
    return 0
