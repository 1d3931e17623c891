"""`pyb objectfs fsck META`: exit code 1 if an object is missing or the metadata contradicts itself."""

from __future__ import annotations

import argparse

from pybernetes.objectfs import format as formats
from pybernetes.objectfs.check import check
from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.meta.urls import connect, masked
from pybernetes.objectfs.objects.store import open_store


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("meta", metavar="META")


def run(arguments: argparse.Namespace) -> int:
    engine = connect(arguments.meta)
    try:
        settings = formats.load(engine)
        if settings is None:
            raise ObjectFSError(f"{masked(arguments.meta)} holds no volume")
        report = check(engine, open_store(settings), settings.block_size)
    finally:
        engine.close()
    for each in report.missing:
        print(f"inode {each.inode}: object {each.key} is missing")
    for problem in report.problems:
        print(problem)
    print(
        f"{report.files} inodes, {report.objects} objects, {len(report.missing)} missing, {len(report.leaked)} leaked"
    )
    return 1 if report.missing or report.problems else 0
