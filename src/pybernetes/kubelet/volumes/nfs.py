"""`nfs`: a folder of an NFS server, mounted for each pod, as upstream's kubelet does. The node needs `mount.nfs`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pybernetes.api.core.v1 import NFSVolumeSource, Pod, Volume
from pybernetes.client.keys import uid_of
from pybernetes.component import offload

from .base import MountedVolume
from .filesystems import NETWORK_WITHIN, mount_network
from .host import Host

PLUGIN: Final = "nfs"


async def set_up(host: Host, pod: Pod, volume: Volume) -> MountedVolume:
    """Mount the folder that the pod names."""
    source = volume.nfs or NFSVolumeSource()
    return await set_up_source(host, pod, source, volume.name or "", volume.name or "", ())


async def set_up_source(
    host: Host,
    pod: Pod,
    source: NFSVolumeSource,
    name: str,
    spec_name: str,
    options: Sequence[str],
    *,
    read_only: bool = False,
) -> MountedVolume:
    """The same for a PersistentVolume, with its mount options."""
    read_only = read_only or bool(source.read_only)
    target: Path = host.volume_folder(uid_of(pod), PLUGIN, spec_name)
    server = source.server or ""
    where = f"{f'[{server}]' if ':' in server else server}:{source.path or ''}"
    words = [*options, "ro"] if read_only else list(options)
    await offload.run(
        f"nfs {server}", NETWORK_WITHIN + 10.0, mount_network, "nfs", where, target, words, needs="nfs-common"
    )
    return MountedVolume(name, target, read_only=read_only)
