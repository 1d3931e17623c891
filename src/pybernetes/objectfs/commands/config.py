"""`pyb objectfs config META [--FLAG VALUE]...`: shows the settings of a volume, or changes those that may change."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace

from pybernetes.objectfs.commands.format import check_store, read_secret
from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.format import Format
from pybernetes.objectfs.meta import records
from pybernetes.objectfs.objects.store import open_store
from pybernetes.objectfs.opened import opened


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("meta", metavar="META")
    parser.add_argument("--capacity", type=float, metavar="GIB", help="limit of bytes; 0 is none")
    parser.add_argument("--inodes", type=int, help="limit of files; 0 is none")
    parser.add_argument("--trash-days", type=float, help="how long removed files are kept; 0 is not at all")
    parser.add_argument("--upload-limit", type=int, metavar="MBIT/S", help="of each client; 0 is none")
    parser.add_argument("--download-limit", type=int, metavar="MBIT/S", help="of each client; 0 is none")
    for flag in ("access-key", "secret-key", "session-token"):
        parser.add_argument(f"--{flag}", help=f"new {flag.replace('-', ' ')}; @FILE reads it from a file")


def run(arguments: argparse.Namespace) -> int:
    changes: dict[str, object] = {}
    for name, factor in (("capacity", 1 << 30), ("upload_limit", 1 << 17), ("download_limit", 1 << 17)):
        value = getattr(arguments, name)
        if value is not None:
            changes[name] = int(value * factor)
    for name in ("inodes", "trash_days"):
        if getattr(arguments, name) is not None:
            changes[name] = getattr(arguments, name)
    for name, number in changes.items():
        if isinstance(number, int | float) and number < 0:
            raise ObjectFSError(f"--{name.replace('_', '-')} cannot be negative")
    secrets = {
        name: read_secret(getattr(arguments, name))
        for name in ("access_key", "secret_key", "session_token")
        if getattr(arguments, name) is not None
    }
    with opened(arguments.meta) as volume:
        settings: Format = replace(volume.settings, **changes, **secrets)  # type: ignore[arg-type]
        if secrets:
            check_store(open_store(settings), settings)
        if changes or secrets:
            volume.engine.transact(lambda tx: tx.put(records.SETTING, json.dumps(asdict(settings)).encode()))
            volume.engine.sync()
        print(json.dumps(settings.public(), indent=2))
    return 0
