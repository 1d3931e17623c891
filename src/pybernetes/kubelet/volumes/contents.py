"""Volumes that show what the API says: files in a folder that are replaced all at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeVar

from pybernetes.api import errors
from pybernetes.api.core.v1 import ConfigMap, Pod, PodSpec, Secret
from pybernetes.client.keys import uid_of

from ..runtime.types import all_containers
from .atomic_writer import Payload, size_of, write
from .base import MountedVolume
from .empty_dir import wrap
from .host import Host, fs_group
from .ownership import set_group

K = TypeVar("K", ConfigMap, Secret)
MOST_SHOWN: Final = 128 << 20
"""Bytes of all files that a pod is shown of objects; the largest object has 1 MiB. The node pays for them, not the pod:
one key may be shown as thousands of files, and one object in thousands of volumes."""
NO_MODE: Final = "no defaultMode used, not even the default value for it"


async def fetch(host: Host, pod: Pod, kind: type[K], name: str, *, optional: bool) -> K:
    """The object that a volume shows; an empty one if it is not there and need not be."""
    if host.objects is None:
        raise ValueError("no kubeClient defined")
    namespace = (pod.metadata.namespace if pod.metadata else None) or ""
    try:
        return await host.objects.get(kind, namespace, name)
    except errors.NotFound:
        if not optional:
            raise
        return kind()


def check_size(size: int) -> None:
    """Raises ValueError for more bytes than a pod may be shown."""
    if size > MOST_SHOWN:
        raise ValueError(
            f"the files of ConfigMaps, Secrets and fields in a pod's volumes have more than {MOST_SHOWN} bytes"
        )


async def show(host: Host, pod: Pod, name: str, plugin: str, payload: Payload, *, memory: bool) -> MountedVolume:
    """Make a volume show exactly these files. In memory what must not be found on a disk."""
    folder = host.volume_folder(uid_of(pod), plugin, name)
    sizes = {**host.shown.get(uid_of(pod), {}), name: size_of(payload)}
    check_size(sum(sizes.values()))
    host.shown[uid_of(pod)] = sizes
    await host.look(pod, str(folder), _show, host, pod, name, folder, payload, memory=memory)
    return MountedVolume(name, folder, read_only=True)


def _show(host: Host, pod: Pod, name: str, folder: Path, payload: Payload, *, memory: bool) -> None:
    wrap(host, pod, folder, name, memory=memory)
    for nested in nested_mount_points(pod, name):
        (folder / nested).mkdir(parents=True, exist_ok=True, mode=0o755)
    write(folder, payload, lambda: set_group(folder, fs_group(pod), read_only=True))


def nested_mount_points(pod: Pod, name: str) -> list[str]:
    """The folders in a volume that containers mount other volumes on: the volume is read-only then, so made before."""
    found: dict[str, None] = {}
    for container in all_containers(pod.spec or PodSpec()):
        points = sorted((os.path.normpath(each.mount_path or ""), each.name) for each in container.volume_mounts or ())
        for own in [path for path, volume in points if volume == name]:
            if own.startswith("../"):
                raise ValueError(f"invalid container mount point {own}")
            outer: list[str] = []
            for path, _ in points:
                if path.startswith(f"{own}/") and not path.startswith(tuple(outer)):
                    outer.append(f"{path}/")
                    found[path.removeprefix(f"{own}/")] = None
    return list(found)
