"""`pyb objectfs quota get|set|delete|list META [PATH]`: limits of folders."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping

from pybernetes.objectfs import tree
from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.meta.usage import Quota
from pybernetes.objectfs.opened import opened, progress


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["get", "set", "delete", "list"])
    parser.add_argument("meta", metavar="META")
    parser.add_argument("path", metavar="PATH", nargs="?", default="", help="from the volume's root")
    parser.add_argument("--capacity", type=float, default=0, metavar="GIB", help="limit of bytes; 0 is none")
    parser.add_argument("--inodes", type=int, default=0, help="limit of files; 0 is none")


def run(arguments: argparse.Namespace) -> int:
    with opened(arguments.meta) as volume:
        quotas = tree.Quotas(volume.engine, volume.namespace())
        if arguments.action == "list":
            print(json.dumps([_shown(*each) for each in quotas.all().values()], indent=2))
            return 0
        if not arguments.path:
            raise ObjectFSError("which folder? PATH is missing")
        root = volume.find(arguments.path).inode
        if arguments.action == "set":
            if arguments.capacity <= 0 and arguments.inodes <= 0:
                raise ObjectFSError("--capacity or --inodes is wanted, above 0")
            for _ in progress(quotas.set(root, int(arguments.capacity * (1 << 30)), arguments.inodes), "quota"):
                pass
        elif arguments.action == "delete":
            for _ in progress(quotas.remove(root), "quota"):
                pass
            return 0
        found = quotas.get(root)
        if found is None:
            raise ObjectFSError(f"{arguments.path} has no quota")
        print(json.dumps(_shown(*found), indent=2))
    return 0


def _shown(quota: Quota, used: tuple[int, int]) -> Mapping[str, int]:
    return {
        "inode": quota.root,
        "capacity": quota.size,
        "inodes": quota.inodes,
        "used": used[0],
        "usedInodes": used[1],
    }
