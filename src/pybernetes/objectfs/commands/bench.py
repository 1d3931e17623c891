"""`pyb objectfs bench FOLDER`: how fast a mounted folder (of any file system) is for large and for small files."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pybernetes.objectfs.errors import ObjectFSError

MIB = 1 << 20


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--big-file-size", type=int, default=256, metavar="MIB")
    parser.add_argument("--small-file-size", type=int, default=128, metavar="KIB")
    parser.add_argument("--small-file-count", type=int, default=100)
    parser.add_argument("-p", "--threads", type=int, default=1)


def run(arguments: argparse.Namespace) -> int:
    if min(arguments.big_file_size, arguments.small_file_count, arguments.threads) < 1:
        raise ObjectFSError("sizes, counts and threads begin at 1")
    folder = tempfile.mkdtemp(prefix="bench-", dir=arguments.folder)
    try:
        with ThreadPoolExecutor(arguments.threads) as pool:
            _measure(arguments, folder, pool)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _measure(arguments: argparse.Namespace, folder: str, pool: ThreadPoolExecutor) -> None:
    workers, count = arguments.threads, arguments.small_file_count
    block, small = os.urandom(MIB), os.urandom(arguments.small_file_size << 10)

    def timed(work: Callable[[int], object]) -> float:
        begun = time.perf_counter()
        list(pool.map(work, range(workers)))
        return time.perf_counter() - begun

    def write_big(worker: int) -> None:
        with open(f"{folder}/big-{worker}", "wb", buffering=0) as file:
            for _ in range(arguments.big_file_size):
                file.write(block)
            os.fsync(file.fileno())

    def read_big(worker: int) -> None:
        with open(f"{folder}/big-{worker}", "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while file.read(MIB):
                pass

    def write_small(worker: int) -> None:
        os.mkdir(f"{folder}/{worker}")
        for number in range(count):
            with open(f"{folder}/{worker}/{number}", "wb", buffering=0) as file:
                file.write(small)

    def read_small(worker: int) -> None:
        for number in range(count):
            with open(f"{folder}/{worker}/{number}", "rb", buffering=0) as file:
                while file.read(MIB):
                    pass

    def stat(worker: int) -> None:
        for number in range(count):
            os.stat(f"{folder}/{worker}/{number}")

    total = arguments.big_file_size * workers
    for name, work in (("write big file", write_big), ("read big file", read_big)):
        seconds = timed(work)
        print(f"{name:18} {total / seconds:10.2f} MiB/s {seconds:9.3f} s/file")
    for name, work in (("write small file", write_small), ("read small file", read_small), ("stat file", stat)):
        seconds = timed(work)
        print(f"{name:18} {count * workers / seconds:10.1f} files/s {seconds / count * 1000:7.3f} ms/file")
