"""`pyb objectfs load META FILE`: fills an empty metadata database from a dump."""

from __future__ import annotations

import argparse
import sys

from pybernetes.objectfs.dump import load
from pybernetes.objectfs.meta.urls import connect
from pybernetes.objectfs.opened import progress


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("meta", metavar="META")
    parser.add_argument("file", metavar="FILE")


def run(arguments: argparse.Namespace) -> int:
    with open(arguments.file, "rb") as file:
        engine = connect(arguments.meta)
        try:
            count = max(progress(load(engine, file), "load"))
            engine.sync()
        finally:
            engine.close()
    print(f"{count} records; secrets that the dump does not have are set by `config`", file=sys.stderr)
    return 0
