"""`pyb objectfs`: the table of its commands."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from pybernetes.objectfs.errors import Failure, ObjectFSError
from pybernetes.objectfs.secrets import hide

COMMANDS = {
    "format": "make a volume: metadata in a database, data in an object store",
    "mount": "mount a volume at a folder",
    "umount": "unmount a volume",
    "status": "show a volume's settings, use and sessions",
    "info": "show the slices and objects of a file",
    "stats": "show the figures of a mount, again and again",
    "warmup": "fetch files into the block cache",
    "rmr": "remove a directory with everything below it",
    "clone": "copy a file or directory without copying its data",
    "quota": "show, set and remove limits of a folder",
    "config": "show or change a volume's settings",
    "dump": "write the metadata to a file",
    "load": "fill an empty metadata database from a dump",
    "bench": "measure a mounted folder",
    "csi": "the CSI driver: its processes, and the YAML that installs it",
    "gc": "find and delete objects that belong to no file; compact files of many slices",
    "fsck": "check that every object that a file needs is there",
}

INTERNAL = ("serve",)


def main(argv: list[str]) -> int:
    """Runs one command; what goes wrong is one line."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: pyb objectfs COMMAND [flags]\n")
        print("\n".join(f"  {name:8}  {text}" for name, text in COMMANDS.items()))
        return 0
    name = argv[0]
    if name not in COMMANDS and name not in INTERNAL:
        print(f"pyb objectfs: unknown command {name!r}; there are: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    hide(argv)
    module = import_module(f"pybernetes.objectfs.commands.{name}")
    parser = argparse.ArgumentParser(prog=f"pyb objectfs {name}", description=COMMANDS.get(name))
    module.add_flags(parser)
    try:
        return int(module.run(parser.parse_intermixed_args(argv[1:])))
    except (ObjectFSError, Failure) as error:
        print(f"pyb objectfs {name}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"pyb objectfs {name}: {where}{error.strerror or error}", file=sys.stderr)
        return 1


def mount_helper() -> int:
    """`mount.objectfs META FOLDER [-sfnv] [-o OPTIONS]`: what mount(8) runs for `mount -t objectfs` and /etc/fstab."""
    words, kept = sys.argv[1:], []
    place = 0
    while place < len(words):
        if words[place] in ("-N", "-t"):
            place += 1
        elif words[place] == "-f":
            return 0  # a fake mount, for /etc/mtab
        elif words[place] not in ("-s", "-n", "-v"):
            kept.append(words[place])
        place += 1
    return main(["mount", "-d", *kept])
