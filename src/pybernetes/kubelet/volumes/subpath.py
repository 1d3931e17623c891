"""`subPath`: bind-mounts a part of a volume at a path of its own, where only the kubelet can change it.

The runtime resolves the source of a mount by its path, later than we looked at it. So the part is opened once
(`safeopen`), the descriptor bound below `volume-subpaths` of the pod, and the runtime gets that path.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from pybernetes.cri.mounting import bind, is_mount_point, may_mount, unmount

from .safeopen import make_folders_beneath, opened_beneath

FOLDER: Final = "volume-subpaths"


def prepare(pod_folder: Path, volume_name: str, volume_path: Path, container: str, index: int, path: str) -> Path:
    """The place to mount for a part of a volume; a folder that is not there is made. Raises OSError."""
    try:
        with opened_beneath(volume_path, path):
            pass
    except FileNotFoundError:
        mode = stat.S_IMODE(os.stat(volume_path).st_mode)
        make_folders_beneath(volume_path, path, mode)
    if not may_mount():  # a container is a plain process then, and what it reaches is its own matter
        with opened_beneath(volume_path, path) as descriptor:
            return Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    target = pod_folder / FOLDER / volume_name / container / str(index)
    with opened_beneath(volume_path, path) as descriptor:
        found = os.fstat(descriptor)
        if is_mount_point(target):
            if os.path.samestat(os.stat(target), found):
                return target
            unmount(target)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        if stat.S_ISDIR(found.st_mode):
            if target.is_file():
                target.unlink()
            target.mkdir(exist_ok=True, mode=0o750)
        else:
            if target.is_dir():
                target.rmdir()
            target.touch(0o640)
        bind(f"/proc/self/fd/{descriptor}", target)
    return target
