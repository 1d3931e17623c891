"""`./pyb bench testkit`: what a cluster for each test costs.

Starts the first cluster of a run, further ones one after another, and many at once; moves one of them ahead by hours;
takes a snapshot and restores it. Every cluster is used (a namespace is created and read) before the next one starts.
Beside it stand published figures of what people use today: envtest 3-7 s, kind about 50 s for each cluster.
"""

from __future__ import annotations

import argparse
import statistics
import time

from _load import Report

from pybernetes.testing.cluster import Cluster

AT_ONCE = 20


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pyb bench testkit", description=__doc__)
    parser.add_argument("--clusters", type=int, default=1000, help="one after another (default: %(default)s)")
    parser.add_argument("--hours", type=float, default=3.0, help="that time is moved ahead (default: %(default)s)")
    options = parser.parse_args(argv)
    report = Report("testkit")
    first = _first(report)
    _further(report, options.clusters)
    _many(report, first)
    _time(report, options.hours)
    _snapshots(report)
    report.save()
    return 0


def _first(report: Report) -> Cluster:
    began = time.perf_counter()
    cluster = Cluster().start()
    _use(cluster)
    seconds = time.perf_counter() - began
    report.row("first cluster of a run", seconds, "s", "target 0.4")
    return cluster


def _further(report: Report, count: int) -> None:
    starts, ends = [], []
    began = time.perf_counter()
    for _ in range(count):
        mark = time.perf_counter()
        cluster = Cluster().start()
        starts.append(time.perf_counter() - mark)
        _use(cluster)
        mark = time.perf_counter()
        cluster.stop()
        ends.append(time.perf_counter() - mark)
    total = time.perf_counter() - began
    report.row("each further cluster, p50", statistics.median(starts) * 1000, "ms", "target 20")
    report.row("each further cluster, p99", statistics.quantiles(starts, n=100)[98] * 1000, "ms")
    report.row("ending one, p50", statistics.median(ends) * 1000, "ms")
    report.row(f"{count} tests with a cluster of their own", total, "s", "target 60 for 1,000")


def _many(report: Report, first: Cluster) -> None:
    clusters = [Cluster().start() for _ in range(AT_ONCE)]
    for each in clusters:
        _use(each)
    private = statistics.median(_memory(each.running.pid, "Private_Dirty") for each in clusters)
    shared = _memory(first.running.pid, "Rss")
    report.row("resident memory of the first", shared, "MB", "target 60")
    report.row("memory of each further one alone", private, "MB", f"target 5; {AT_ONCE} at once")
    for each in [*clusters, first]:
        each.stop()


def _time(report: Report, hours: float) -> None:
    with Cluster() as cluster:
        began = time.perf_counter()
        cluster.clock.advance(hours=hours)
        seconds = time.perf_counter() - began
    report.row(f"{hours:g} hours of an idle cluster", seconds, "s")


def _snapshots(report: Report) -> None:
    with Cluster() as cluster:
        began = time.perf_counter()
        snapshot = cluster.snapshot()
        taken = time.perf_counter() - began
        began = time.perf_counter()
        cluster.restore(snapshot)
        _use(cluster)
        restored = time.perf_counter() - began
        snapshot.close()
    report.row("snapshot", taken * 1000, "ms")
    report.row("restore and use", restored * 1000, "ms")


def _use(cluster: Cluster) -> None:
    cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "used"}})
    cluster.client.get("namespaces", "used")


def _memory(pid: int, what: str) -> float:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(f"{what}:")) / 1024
