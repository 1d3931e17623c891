"""Anonymous volumes: for each VOLUME of an image a container has a folder of its own, with what the image has there.

So data that is written to it is no part of the container's writable root (a read-only root has it too), and it goes
with the container. A path where a pod mounts something else gets none, as with containerd.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from ..syscalls import open_in_root
from .roots import merged
from .store import Rootfs
from .trees import copy_folder


class VolumeError(Exception):
    """A volume that cannot be had."""


def wanted(rootfs: Rootfs, taken: Collection[str]) -> list[str]:
    """The paths of an image's volumes where nothing else is mounted."""
    paths = dict.fromkeys(os.path.normpath("/" + each.lstrip("/")) for each in rootfs.config.volumes)
    return [path for path in paths if path != "/" and path not in taken]


def make(rootfs: Rootfs, paths: Collection[str]) -> dict[str, Path]:
    """Makes the folders, by the paths where they are mounted; blocks for as long as copying takes."""
    found: dict[str, Path] = {}
    if not paths:
        return found
    top = rootfs.upper.parent / "volumes"
    top.mkdir(mode=0o700)
    with merged(rootfs.layers, rootfs.lower) as root:
        for number, path in enumerate(paths):
            folder = found[path] = top / str(number)
            folder.mkdir()
            folder.chmod(0o755)
            _fill(root, path, folder)
    return found


def _fill(root: int, path: str, folder: Path) -> None:
    target = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(open_in_root(root, path, os.O_PATH | os.O_DIRECTORY))
        copy_folder(root, path, target)
    except FileNotFoundError:
        pass  # the image has nothing there
    except OSError as error:
        raise VolumeError(f'failed to copy the image\'s content to volume "{path}": {error.strerror}') from None
    finally:
        os.close(target)
