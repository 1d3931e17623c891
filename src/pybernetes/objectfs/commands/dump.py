"""`pyb objectfs dump META FILE`: writes the metadata to a file."""

from __future__ import annotations

import argparse
import os
import sys

from pybernetes.objectfs.dump import dump
from pybernetes.objectfs.opened import opened, progress


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("meta", metavar="META")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--keep-secret-key", action="store_true", help="secrets too, for a file that is kept as one")


def run(arguments: argparse.Namespace) -> int:
    temporary = f"{arguments.file}.{os.getpid()}"
    with opened(arguments.meta) as volume:
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                records = dump(volume.engine, volume.settings, file, arguments.keep_secret_key)
                count = max(progress(records, "dump"))
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, arguments.file)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
    print(f"{count} records in {arguments.file}", file=sys.stderr)
    return 0
