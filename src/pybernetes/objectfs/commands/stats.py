"""`pyb objectfs stats FOLDER`: a line of figures of a mount each second, from its metrics."""

from __future__ import annotations

import argparse
import os
import time
import urllib.error
import urllib.request

from pybernetes.objectfs.errors import ObjectFSError

ATTRIBUTE = "objectfs.metrics"
COLUMNS = ("ops/s", "avg ms", "read MB/s", "written MB/s", "cache hits", "memory MB", "errors")


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--count", type=int, default=0, help="lines; 0 is until interrupted")


def run(arguments: argparse.Namespace) -> int:
    try:
        address = os.getxattr(arguments.folder, ATTRIBUTE).decode()
    except OSError:
        raise ObjectFSError(f"{arguments.folder} is no mount of ours that has metrics") from None
    print("  ".join(f"{name:>12}" for name in COLUMNS), flush=True)
    before, lines = _read(address), 0
    try:
        while not arguments.count or lines < arguments.count:
            time.sleep(arguments.interval)
            now = _read(address)
            print("  ".join(f"{each:>12}" for each in _line(before, now, arguments.interval)), flush=True)
            before, lines = now, lines + 1
    except KeyboardInterrupt:
        pass
    return 0


def _read(address: str) -> dict[str, float]:
    """The sums of the metrics over their labels."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except (urllib.error.URLError, OSError) as error:
        raise ObjectFSError(f"no metrics at {address}: {error}") from None
    found: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{")
            name = name.removeprefix("objectfs_")
            found[name] = found.get(name, 0.0) + float(rest.rpartition(" ")[2])
    return found


def _line(before: dict[str, float], now: dict[str, float], interval: float) -> list[str]:
    def more(name: str) -> float:
        return now.get(name, 0.0) - before.get(name, 0.0)

    operations = more("fuse_ops_durations_seconds_count")
    hits, misses = more("blockcache_hits"), more("blockcache_miss")
    return [
        f"{operations / interval:.0f}",
        f"{more('fuse_ops_durations_seconds_sum') / operations * 1000 if operations else 0:.3f}",
        f"{more('fuse_read_bytes') / interval / 1e6:.1f}",
        f"{more('fuse_written_bytes') / interval / 1e6:.1f}",
        f"{hits / (hits + misses):.0%}" if hits + misses else "-",
        f"{now.get('memory', 0) / 1e6:.0f}",
        f"{more('fuse_ops_errors'):.0f}",
    ]
