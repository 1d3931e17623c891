"""The archives of images that every node of a cluster gets, also one that is added later: DATA/images/*.tar."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from pybernetes.cluster import files
from pybernetes.cluster.images import builtin, oci, shell
from pybernetes.cluster.layout import Layout


def archive_path(layout: Layout, name: str) -> Path:
    """Where the archive of an image is kept."""
    return layout.images / f"{file_name(oci.full_name(name))}.tar"


def file_name(name: str) -> str:
    """An image's full name as a file can have it."""
    return re.sub(r"[^a-z0-9._-]+", "_", name.lower())


def forget_unfinished(layout: Layout) -> None:
    """Takes away what commands left that were killed, and abandoned partial pulls.

    For who has the cluster's lock. Builds have not, but their files end with the number of a process that runs.
    """
    from pybernetes.component.removal import remove_tree
    from pybernetes.cri.embedded.images.downloads import KEEP

    for path in layout.images.glob(".*"):
        process = path.suffix.removeprefix(".")
        if path.is_dir():
            if path.stat().st_mtime < time.time() - KEEP:
                remove_tree(path, ignore_errors=True)
        elif not (process.isdecimal() and os.path.exists(f"/proc/{process}")):
            path.unlink(missing_ok=True)


def ensure_builtin(layout: Layout) -> None:
    """Writes the archives of pause, shell and, where there is a static one, busybox, if they are not there."""
    files.make_private_folder(layout.images)
    pause = archive_path(layout, builtin.PAUSE)
    if not pause.exists():
        oci.write(pause, builtin.pause_image())
    busybox = archive_path(layout, builtin.BUSYBOX)
    if not busybox.exists():
        program = builtin.busybox_program()
        if program is not None:
            oci.write(busybox, builtin.busybox_image(program, *builtin.busybox_names(program), shell.NAME))
    if not busybox.exists() and not (own := archive_path(layout, shell.NAME)).exists():
        made = shell.image()
        if made is not None:
            oci.write(own, made)
