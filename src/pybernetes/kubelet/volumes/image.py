"""`image`: the files of an image, read-only.

A runtime that can mount images gets the image with the container's config. For a containerd that cannot (before 2.1)
`ImageMounts` mounts a view of the image in the pod's folder, once the image is pulled, and containers get that.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pybernetes.api.core.v1 import ImageVolumeSource, Pod, Volume
from pybernetes.cri.mounting import MS_BIND, MS_RDONLY, MS_REC, MS_REMOUNT, is_mount_point, mount

from ..container.config_error import ConfigError
from ..error_text import why
from .base import MountedVolume
from .host import Host

if TYPE_CHECKING:
    from pybernetes.cri.containerd_snapshots import ImageViews

PLUGIN: Final = "image"
_FLAGS: Final = {"ro": MS_RDONLY, "bind": MS_BIND, "rbind": MS_BIND | MS_REC}


async def set_up(host: Host, pod: Pod, volume: Volume) -> MountedVolume:
    """Nothing is done yet: the image is pulled like a container's, and mounted with the container."""
    source = volume.image or ImageVolumeSource()
    if not host.image_volumes:
        raise ValueError("the container runtime cannot mount images as volumes")
    return MountedVolume(volume.name or "", Path(), read_only=True, image=source.reference or "")


class ImageMounts:
    """Mounts images into the folders of pods."""

    def __init__(self, root: Path, views: ImageViews) -> None:
        self._root = root
        self._views = views

    async def mount(self, uid: str, volume: MountedVolume, image: str) -> MountedVolume:
        """A volume of image as one of a folder; `image` is what was pulled. Raises `ConfigError`."""
        from pybernetes.cri.errors import CRIError

        folder = self._folder(uid) / volume.name
        if not is_mount_point(folder):
            try:
                view = await self._views.view(_key(uid, volume.name), image)
                folder.mkdir(parents=True, exist_ok=True, mode=0o750)
                _mount(view.type, view.source, view.options, folder)
            except (CRIError, OSError) as error:
                if isinstance(error, CRIError) and error.code == "Unimplemented":
                    return volume  # not containerd: a runtime that mounts images itself
                raise ConfigError(f"failed to mount image {image} for volume {volume.name}: {why(error)}") from None
        return MountedVolume(volume.name, folder, read_only=True)

    async def release(self, uid: str) -> None:
        """Give back the views of a pod whose volumes are not mounted any more; raises CRIError."""
        for name in self.names(uid):
            await self._views.remove(_key(uid, name))

    def names(self, uid: str) -> list[str]:
        """The image volumes of a pod that are here."""
        try:
            return os.listdir(self._folder(uid))
        except FileNotFoundError:
            return []

    def _folder(self, uid: str) -> Path:
        return self._root / "pods" / uid / "volumes" / f"kubernetes.io~{PLUGIN}"


def _key(uid: str, name: str) -> str:
    return f"pybernetes-image-volume-{uid}-{name}"


def _mount(type: str, source: str, options: tuple[str, ...], folder: Path) -> None:
    flags = 0
    for option in options:
        flags |= _FLAGS.get(option, 0)
    data = ",".join(option for option in options if option not in _FLAGS)
    if flags & MS_BIND:
        mount(source, folder, flags=flags & ~MS_RDONLY)
        mount("none", folder, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)
    else:
        mount(source, folder, type, flags | MS_RDONLY, data)
