"""Removes what a cluster has on this machine's disk: all of it, or what a first start made that came to nothing.

A start that fails must not decide anything for the next one. If the cluster was never ready, what the start made goes;
what was there before it (images, settings of registries) stays, and so do logs that have something to say.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from pybernetes.cluster.layout import Layout, Record
from pybernetes.component import removal
from pybernetes.cri.mounting import mounts

THREADS: Final = 8
"""That remove at the same time, because each unlink waits for the disk."""
PARTS: Final = 64
"""Folders that threads share, if there are so many."""
LEVELS: Final = 8
"""How deep they may be."""


def undo_first_start(layout: Layout, record: Record | None, before: set[str]) -> None:
    """Removes what a start made whose processes are gone, unless the cluster was ready once.

    `record` and `before` are the record and the names in the cluster's folder as they were.
    """
    if record is not None and record.server:
        return
    for path in (
        *(layout.pki, layout.database.parent, layout.data / "nodes", layout.images, layout.run),
        layout.data / "trace",
    ):
        if path.name not in before and path.exists():
            remove_tree(path)
    if layout.kubeconfig.name not in before:
        layout.kubeconfig.unlink(missing_ok=True)
    if layout.logs.name not in before and not any(path.stat().st_size for path in layout.logs.glob("*")):
        remove_tree(layout.logs)
    if record is not None or layout.logs.exists():
        layout.write_record(record or Record(layout.name))
        return
    layout.record_file.unlink(missing_ok=True)
    (layout.data / "lock").unlink(missing_ok=True)  # processes that wait for it see that it has gone
    with contextlib.suppress(OSError):  # there is more in it
        layout.data.rmdir()


def remove_tree(path: Path) -> None:
    """Removes a folder. Without root, pods' files may belong to users that are ours only in a user namespace."""
    with ThreadPoolExecutor(THREADS) as pool:
        pool.map(partial(removal.remove_tree, ignore_errors=True), _parts(path))
    try:
        removal.remove_tree(path)
    except PermissionError:
        if os.geteuid() == 0:
            raise
        from pybernetes.cluster.rootless import namespaces

        namespaces.as_root(lambda: removal.remove_tree(path))


def _parts(path: Path) -> list[Path]:
    """Folders below a folder that can be removed side by side; none where something is mounted, which must stay."""
    if path.is_symlink() or mounts(path):
        return []
    found = [path]
    for _ in range(LEVELS):
        below = [each for folder in found for each in _folders(folder)]
        if not below:
            return []
        found = below
        if len(found) >= PARTS:
            break
    return found


def _folders(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return [Path(each.path) for each in entries if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []
