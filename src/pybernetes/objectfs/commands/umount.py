"""`pyb objectfs umount FOLDER [--force]`: unmounts a volume and waits until its client has stored everything."""

from __future__ import annotations

import argparse
import os

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.fuse import mount_point
from pybernetes.objectfs.mount_options import KIND


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("-f", "--force", action="store_true", help="also while files are open")


def run(arguments: argparse.Namespace) -> int:
    folder = os.path.abspath(arguments.folder)
    found = mount_point.mounted(folder)
    if found is None or found[1] != f"fuse.{KIND}":
        raise ObjectFSError(f"no volume is mounted at {folder}")
    mount_point.unmount(folder, lazy=arguments.force)
    return 0
