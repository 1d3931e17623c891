"""CRI's ImageService over the image store.

There is no registry client yet: an image that is not here cannot be pulled, and the refusal says how it gets here. One
that is here counts as pulled, because its archive is where this node has it from.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

from .store import Image, ImageStore


class ImageService:
    """`archives` is a folder whose new archives are looked at when an image is missed; `used` counts files."""

    def __init__(self, store: ImageStore, archives: Path | None, used: Callable[[Path], tuple[int, int]]) -> None:
        self._store = store
        self._archives = archives
        self._used = used
        self._lock = asyncio.Lock()

    async def look(self) -> None:
        """Takes in archives that are new."""
        if self._archives is not None:
            async with self._lock:
                await asyncio.to_thread(self._store.import_folder, self._archives)

    async def list_images(self, request: Any) -> Any:
        """The images that match a filter."""
        name = request.filter.image.image
        found = self._store.images()
        if name:
            one = self._find(name)
            found = [one] if one else []
        return cri.ListImagesResponse(images=[self._described(each) for each in found])

    async def image_status(self, request: Any) -> Any:
        """An image, or an answer without one."""
        image = self._find(request.image.image)
        if image is None:
            await self.look()
            image = self._find(request.image.image)
        return cri.ImageStatusResponse(image=self._described(image)) if image else cri.ImageStatusResponse()

    async def pull_image(self, request: Any) -> Any:
        """The id of an image that is here."""
        name = request.image.image
        await self.look()
        image = self._find(name)
        if image is None:
            text = f'failed to pull image "{name}": not found: import an archive of it, this runtime pulls nothing yet'
            raise CRIError("NotFound", text)
        return cri.PullImageResponse(image_ref=image.id)

    async def remove_image(self, request: Any) -> Any:
        """Removes an image with all its names."""
        self._find(request.image.image)
        async with self._lock:
            await asyncio.to_thread(self._store.remove, request.image.image)
        return cri.RemoveImageResponse()

    async def image_fs_info(self, request: Any) -> Any:
        """What images and containers take of the disk."""
        root = self._store.root
        images, containers = await asyncio.to_thread(
            lambda: (self._used(self._store.layers), self._used(root / "containers"))
        )
        return cri.ImageFsInfoResponse(
            image_filesystems=[_usage(root, *images)], container_filesystems=[_usage(root, *containers)]
        )

    def _find(self, name: str) -> Image | None:
        try:
            return self._store.find(name)
        except ValueError as error:
            raise CRIError("InvalidArgument", f"failed to parse image reference: {error}") from None

    def _described(self, image: Image) -> Any:
        user = self._store.config(image).user.partition(":")[0]
        found = cri.Image(id=image.id, repo_tags=image.names, repo_digests=image.digests, size=max(1, image.size))
        if user.isdigit():
            found.uid.CopyFrom(cri.Int64Value(value=int(user)))
        else:
            found.username = user
        return found


def _usage(root: Path, size: int, inodes: int) -> Any:
    return cri.FilesystemUsage(
        timestamp=time.time_ns(),
        fs_id=cri.FilesystemIdentifier(mountpoint=str(root)),
        used_bytes=cri.UInt64Value(value=size),
        inodes_used=cri.UInt64Value(value=inodes),
    )
