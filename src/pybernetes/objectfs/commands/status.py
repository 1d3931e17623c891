"""`pyb objectfs status META`: the settings, use and sessions of a volume, as JSON, without secrets."""

from __future__ import annotations

import argparse
import json
import time

from pybernetes.objectfs import format as formats
from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.meta import usage
from pybernetes.objectfs.meta.sessions import Sessions
from pybernetes.objectfs.meta.urls import connect, masked


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("meta", metavar="META")


def run(arguments: argparse.Namespace) -> int:
    engine = connect(arguments.meta)
    try:
        settings = formats.load(engine)
        if settings is None:
            raise ObjectFSError(f"{masked(arguments.meta)} holds no volume")
        used, inodes = engine.read(usage.used)
        sessions = Sessions(engine, time.time_ns).all()
    finally:
        engine.close()
    print(json.dumps({"setting": settings.public(), "used": used, "inodes": inodes, "sessions": sessions}, indent=2))
    return 0
