"""`pyb down`: stops every process of a cluster and takes its context out of the user's kubeconfig.

It also cleans up after a crash, so it never minds that something is already gone.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pybernetes.cluster import kubeconfig, processes
from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import Layout, Record, clusters, context_name, forget, locate
from pybernetes.cluster.removing import remove_tree


def main(argv: list[str]) -> int:
    """Stops the cluster the flags name."""
    parser = flags.parser("down", "Stops a cluster and takes its context out of the kubeconfig.")
    parser.add_argument("--purge", action="store_true", help="also remove its data")
    arguments = parser.parse_args(argv)
    layout = locate(arguments.name, arguments.data_dir)
    record = layout.read_record()
    if record is not None and record.name != layout.name:
        raise ClusterError(f"{layout.data} belongs to the cluster {record.name!r}")
    try:
        if record is not None:
            with layout.lock():
                stopped = processes.stop_all(layout)
                left = _remove_nodes(layout)
                layout.kubeconfig.unlink(missing_ok=True)
        else:
            stopped = []
        print(f"Cluster {layout.name!r}: stopped." if stopped else f"Cluster {layout.name!r} is not running.")
        if record is not None and left:
            print(f"Still in use, and left behind: {', '.join(left)}")
        _take_out_context(layout.name, record)
        if arguments.purge:
            if record is not None and record.store == "etcd" and record.etcd_endpoints:
                _purge_etcd(layout, record.etcd_endpoints)
            _purge(layout)
            forget(layout)
    except OSError as error:
        raise ClusterError(f"cannot change {error.filename or layout.data}: {error.strerror or error}") from error
    return 0


def _remove_nodes(layout: Layout) -> list[str]:
    if not (layout.data / "nodes").exists():
        return []
    from pybernetes.cluster.node import teardown

    return teardown.remove(layout)


def _take_out_context(name: str, record: Record | None) -> None:
    """From the file `up` wrote to, and from the one kubectl uses now.

    The context that was current before becomes current again, else that of another cluster that runs.
    """
    others = [record.former_context] if record and record.former_context else []
    others += [context_name(each.name) for each in clusters() if each.name != name and each.running()]
    merged_into = [Path(record.user_kubeconfig)] if record and record.user_kubeconfig else []
    for path in dict.fromkeys([*merged_into, kubeconfig.user_file()]):
        if kubeconfig.unmerge(path, context_name(name), others):
            print(f"Context {context_name(name)} is out of {path}.")


def _purge_etcd(layout: Layout, endpoints: str) -> None:
    """Removes the cluster's keys from etcd; if that fails, the record stays, so that a purge can be repeated."""
    import asyncio

    from pybernetes.store import etcd_purge
    from pybernetes.store.base import StoreUnavailable

    try:
        count = asyncio.run(etcd_purge.purge(endpoints.split(",")))
    except StoreUnavailable as error:
        hint = flags.command("down --purge", layout.name)
        raise ClusterError(f"the cluster's keys are still in etcd: {error}; repeat {hint} when it answers") from None
    print(f"Keys are removed from etcd at {endpoints}: {count}")


def _purge(layout: Layout) -> None:
    """Removes the data folder; only one that carries our record."""
    if not layout.data.exists():
        return
    if layout.read_record() is None:
        raise ClusterError(f"{layout.data} is not the data of a cluster; it is left alone")
    real = Path(os.path.realpath(layout.data))
    for path in sorted(real.iterdir(), key=lambda path: path == real / layout.record_file.name):
        # The record goes last: a purge that was interrupted can be repeated.
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink()
    with contextlib.suppress(OSError):  # A mount point stays, empty.
        real.rmdir()
    print(f"Data is removed: {layout.data}")
