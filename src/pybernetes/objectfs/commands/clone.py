"""`pyb objectfs clone META SOURCE TARGET`: a copy of a file or tree that shares its data."""

from __future__ import annotations

import argparse
import time

from pybernetes.objectfs import tree
from pybernetes.objectfs.meta.slices import Slices
from pybernetes.objectfs.opened import opened, progress


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("meta", metavar="META")
    parser.add_argument("source", metavar="SOURCE", help="from the volume's root")
    parser.add_argument("target", metavar="TARGET", help="from the volume's root; must not exist")


def run(arguments: argparse.Namespace) -> int:
    with opened(arguments.meta) as volume:
        names = volume.namespace()
        source = volume.find(arguments.source)
        parent, name = volume.parent(arguments.target)
        tree.check_free(names, parent, name)
        slices = Slices(volume.engine, time.time_ns)
        count = 0
        for _ in progress(tree.clone(names, slices, source.inode, parent, name), "clone"):
            count += 1
    print(f"{count} cloned")
    return 0
