"""`hostPath`: a file or folder of the node itself, of the type that is asked for, made if the type says so."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pybernetes.api.core.v1 import HostPathVolumeSource, Pod, Volume

from .base import MountedVolume
from .host import Host

_TYPES: Final[dict[str, tuple[Callable[[int], bool], str]]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


async def set_up(host: Host, pod: Pod, volume: Volume) -> MountedVolume:
    """Check the path, or make what should be there."""
    return await set_up_source(host, pod, volume.host_path or HostPathVolumeSource(), volume.name or "")


async def set_up_source(
    host: Host, pod: Pod, source: HostPathVolumeSource, name: str, *, read_only: bool = False
) -> MountedVolume:
    """The same for a PersistentVolume."""
    path = source.path or ""
    if ".." in path.split("/"):
        raise ValueError(f"invalid HostPath `{path}`: must not contain '..'")
    if source.type:
        await host.look(pod, path, check_type, path, source.type)
    return MountedVolume(name, Path(path), read_only=read_only)


def check_type(path: str, type: str) -> None:
    """Raises ValueError if something else is at the path, or nothing that should not be made."""
    if type.endswith("OrCreate"):
        if not os.path.exists(path):
            _make(path, folder=type == "DirectoryOrCreate")
            return
        type = type.removesuffix("OrCreate")
    if type not in _TYPES:
        raise ValueError(f"{type} is an invalid volume type")
    is_type, what = _TYPES[type]
    try:
        right = is_type(os.stat(path).st_mode)
    except OSError:
        right = False
    if not right:
        raise ValueError(f"hostPath type check failed: {path} is not {what}")


def _make(path: str, *, folder: bool) -> None:
    if folder:
        os.makedirs(path, 0o755, exist_ok=True)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o644))
