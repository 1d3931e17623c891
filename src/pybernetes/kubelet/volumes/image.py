"""`image`: the files of an image, mounted by the runtime itself, if it can."""

from __future__ import annotations

from pathlib import Path

from pybernetes.api.core.v1 import ImageVolumeSource, Pod, Volume

from .base import MountedVolume
from .host import Host


async def set_up(host: Host, pod: Pod, volume: Volume) -> MountedVolume:
    """Nothing is done on the node: the image is pulled like a container's, and mounted with the container."""
    source = volume.image or ImageVolumeSource()
    if not host.image_volumes:
        raise ValueError("the container runtime cannot mount images as volumes (containerd can from 2.1 on)")
    return MountedVolume(volume.name or "", Path(), read_only=True, image=source.reference or "")
