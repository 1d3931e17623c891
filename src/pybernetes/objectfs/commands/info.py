"""`pyb objectfs info META PATH|INODE`: attributes, slices and objects of a file."""

from __future__ import annotations

import argparse
import json

from pybernetes.objectfs.data.blocks import object_key
from pybernetes.objectfs.meta import records
from pybernetes.objectfs.opened import opened


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("meta", metavar="META")
    parser.add_argument("file", metavar="PATH|INODE", help="path from the volume's root, or an inode number")


def run(arguments: argparse.Namespace) -> int:
    with opened(arguments.meta) as volume:
        attributes = volume.find(arguments.file)
        inode, settings = attributes.inode, volume.settings
        chunks = [
            (records.chunk_of(key), records.decode_slices(value))
            for key, value in volume.engine.scan(records.chunk_prefix(inode))
        ]
    size = settings.block_size
    shown = {
        "inode": inode,
        "mode": f"{attributes.mode:o}",
        "size": attributes.size,
        "links": attributes.nlink,
        "chunks": [
            {
                "chunk": number,
                "slices": [
                    {
                        **each._asdict(),
                        "objects": [
                            object_key(each.id, index, min(size, each.size - index * size))
                            for index in range(-(-each.size // size))
                        ],
                    }
                    for each in slices
                ],
            }
            for number, slices in chunks
        ],
    }
    print(json.dumps(shown, indent=2))
    return 0
