"""`pyb objectfs gc META [--delete] [--compact]`: objects that belong to no file, files of many slices."""

from __future__ import annotations

import argparse
import time

from pybernetes.objectfs.check import GRACE_SECONDS, check
from pybernetes.objectfs.data.blocks import Blocks
from pybernetes.objectfs.data.codec import open_codec
from pybernetes.objectfs.data.collector import Collector
from pybernetes.objectfs.meta import records
from pybernetes.objectfs.meta.numbers import NumberPool
from pybernetes.objectfs.meta.slices import Slices
from pybernetes.objectfs.objects.store import open_store
from pybernetes.objectfs.opened import opened, progress


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("meta", metavar="META")
    parser.add_argument("--delete", action="store_true", help="delete what is found, not only count it")
    parser.add_argument("--compact", action="store_true", help="make one slice of chunks that consist of several")
    parser.add_argument(
        "--grace", type=float, default=GRACE_SECONDS, metavar="SECONDS", help="age below which an object may be in use"
    )


def run(arguments: argparse.Namespace) -> int:
    with opened(arguments.meta) as volume:
        engine, settings = volume.engine, volume.settings
        store = open_store(settings)
        blocks = Blocks(store, settings.block_size, None, codec=open_codec(settings))
        collector = Collector(engine, blocks, Slices(engine, time.time_ns), NumberPool(engine, records.NEXT_SLICE))
        if arguments.compact:
            compacted = 0
            for key, value in progress(engine.scan(b"A"), "compact"):
                if key[9:10] == b"C" and len(key) == 14 and len(records.decode_slices(value)) > 1:
                    compacted += collector.compact(records.number_at(key, 1), records.chunk_of(key))
            print(f"{compacted} chunks compacted")
        if arguments.delete or arguments.compact:
            print(f"objects of {collector.collect()} removed files deleted")
        report = check(engine, store, settings.block_size, arguments.grace)
        if arguments.delete:
            for each in progress(report.leaked, "delete", len(report.leaked)):
                store.delete(each.key)
        blocks.close()
    size = sum(each.size for each in report.leaked)
    print(
        f"{report.objects} objects, {len(report.leaked)} leaked ({size} bytes){' deleted' if arguments.delete else ''}"
    )
    return 0
