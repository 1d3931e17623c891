"""`pyb objectfs warmup PATH...`: reads files of a mount, so that its block cache has them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from pybernetes.objectfs.opened import progress

CHUNK = 4 << 20


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help="files and folders of a mount")
    parser.add_argument("-p", "--threads", type=int, default=16)


def run(arguments: argparse.Namespace) -> int:
    files = [file for path in arguments.paths for file in _files(path)]
    size = failed = 0
    with ThreadPoolExecutor(max(1, arguments.threads)) as pool:
        for count in progress(pool.map(_read, files), "warm up", len(files)):
            size, failed = size + max(count, 0), failed + (count < 0)
    print(f"{len(files)} files, {size} bytes read{f', {failed} files cannot be read' if failed else ''}")
    return 1 if failed else 0


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        os.stat(path)
        yield path
        return
    for folder, _, names in os.walk(path):
        for name in names:
            if os.path.isfile(file := os.path.join(folder, name)):
                yield file


def _read(path: str) -> int:
    """The bytes of a file, or -1 if it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            # What the kernel has of it would keep us from the block cache.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            size = 0
            while data := file.read(CHUNK):
                size += len(data)
            return size
    except OSError:
        return -1
