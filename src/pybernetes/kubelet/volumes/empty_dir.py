"""`emptyDir`: a folder that lives as long as its pod; on the disk, in memory, or in huge pages.

Also what the volumes that show objects of the API lie in (`wrap`). A file `ready` in the pod's folder of this plugin
says that a folder was finished, so that a kubelet that starts again leaves it, and the user's files in it, alone. In
memory a volume may become as large as its `sizeLimit`, the pod's memory limit and the node allow, whichever is least.
A limit on the disk is not kept by the file system: the eviction manager looks at it.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from pybernetes.api.core.podresources import parsed
from pybernetes.api.core.v1 import EmptyDirVolumeSource, Pod, PodSpec, Volume
from pybernetes.api.quantity import Quantity, QuantityError, parse
from pybernetes.client.keys import uid_of
from pybernetes.cri.mounting import is_mount_point, may_mount, mount

from ..cgroups.config import pod_config
from .base import MountedVolume
from .host import Host, fs_group
from .ownership import set_group

PLUGIN: Final = "empty-dir"
MODE: Final = 0o777
_HUGE_PAGES: Final = "HugePages"
_RESOURCE: Final = "hugepages-"


async def set_up(host: Host, pod: Pod, volume: Volume) -> MountedVolume:
    """Make the folder, once."""
    source = volume.empty_dir or EmptyDirVolumeSource()
    name = volume.name or ""
    folder = host.volume_folder(uid_of(pod), PLUGIN, name)
    # In a thread: the pod may have mounted something on it, if its mounts reach the node.
    await host.look(pod, str(folder), make, host, pod, folder, host.meta_folder(uid_of(pod), name), source)
    return MountedVolume(name, folder)


def wrap(host: Host, pod: Pod, folder: Path, name: str, *, memory: bool) -> None:
    """A folder for a volume of another kind."""
    source = EmptyDirVolumeSource(medium="Memory" if memory else None)
    make(host, pod, folder, host.meta_folder(uid_of(pod), f"wrapped_{name}"), source)


def make(host: Host, pod: Pod, folder: Path, meta: Path, source: EmptyDirVolumeSource) -> None:
    """Make a folder on the medium that is asked for; nothing if it is ready."""
    medium = source.medium or ""
    ready = meta / "ready"
    on_disk = not medium or (medium == "Memory" and not may_mount())  # tmpfs cannot be mounted: a folder instead
    if ready.exists() and (folder.is_dir() if on_disk else is_mount_point(folder)):
        return
    new = not folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True, mode=0o750)
    os.chmod(folder, MODE)  # what is mounted on it has a mode of its own: of tmpfs 1777, with upstream too
    if on_disk:
        pass
    elif medium == "Memory":
        if new or not is_mount_point(folder):
            _mount_tmpfs(folder, memory_size(pod, source, host.facts.allocatable.get("memory")))
    elif medium == _HUGE_PAGES or medium.startswith(f"{_HUGE_PAGES}-"):
        if new or not is_mount_point(folder):
            mount("nodev", folder, "hugetlbfs", options=f"pagesize={_page_size(pod, medium)}")
    elif medium:
        raise ValueError(f'unknown storage medium "{medium}"')
    set_group(folder, fs_group(pod), read_only=False)
    meta.mkdir(parents=True, exist_ok=True, mode=0o750)
    ready.touch()


def memory_size(pod: Pod, source: EmptyDirVolumeSource, allocatable: Quantity | None) -> int:
    """How many bytes a volume in memory may have; 0 leaves it to the kernel (half of the memory)."""
    size = allocatable.value() if allocatable else 0
    limits = [pod_config(pod).memory or 0, parse(str(source.size_limit)).value() if source.size_limit else 0]
    for limit in limits:
        if limit > 0 and (size == 0 or limit <= size):
            size = limit
    return size


def _mount_tmpfs(folder: Path, size: int) -> None:
    options = [f"size={size}"] if size else []
    try:
        mount("tmpfs", folder, "tmpfs", options=",".join([*options, "noswap"]))  # secrets must not reach the disk
    except OSError as error:
        if error.errno != errno.EINVAL:  # a kernel before 6.4 knows no noswap
            raise
        mount("tmpfs", folder, "tmpfs", options=",".join(options))


def _page_size(pod: Pod, medium: str) -> str:
    spec = pod.spec or PodSpec()
    wanted = parse(medium.removeprefix(f"{_HUGE_PAGES}-")) if medium != _HUGE_PAGES else None
    lists = [spec.resources, *(each.resources for each in (*(spec.containers or ()), *(spec.init_containers or ())))]
    found: set[Quantity] = set()
    for resources in lists:
        for name in parsed(resources.requests if resources else None):
            if name.startswith(_RESOURCE):
                try:
                    found.add(parse(name.removeprefix(_RESOURCE)))
                except QuantityError:
                    continue
    if wanted is not None:
        found &= {wanted}
    if len(found) > 1:
        raise ValueError(f"medium: {medium} can't be used if container requests multiple huge page sizes")
    if not found:
        raise ValueError(
            f"medium {medium}: hugePages storage requested, but there is no resource request for huge pages"
        )
    return str(found.pop().value())
