"""Image garbage collection: images that no container uses.

Runs every five minutes. An image goes when its disk is nearly full (`imageGCHighThresholdPercent`), the one unused for
longest first, or when it was unused for longer than `imageMaximumGCAge`. Images of running and dead containers stay.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from pybernetes.client.clock import Clock
from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime

from ..images.pulled import PulledImages

IMAGES_EVERY: Final = 300.0
"""Seconds; upstream's."""
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Image:
    """The record of an image: when it was first seen, last used, and its size."""

    detected: float
    used: float
    size: int
    pinned: bool


class ImageCollector:
    """Removes images that no container uses."""

    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        pulled: PulledImages,
        event: Callable[[str, str, str], None],
        *,
        high: int = 85,
        low: int = 80,
        least_age: float = 120.0,
        greatest_age: float = 0.0,
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._pulled = pulled
        self._event = event
        self._high, self._low = high, low
        self._least_age, self._greatest_age = least_age, greatest_age
        self.removed: Callable[[str], None] = lambda reason: None
        """Called for each removed image: for `space`, or for its `age`."""
        self._images: dict[str, _Image] = {}

    async def run(self) -> None:
        """Look every five minutes until cancelled."""
        while True:
            await self._clock.sleep(IMAGES_EVERY)
            try:
                await self.collect()
            except (CRIError, OSError) as error:
                log.warning("image garbage collection: %s", error)
                self._event("Warning", "ImageGCFailed", str(error))

    async def collect(self) -> None:
        """Remove images if the disk is fuller than it should be, or they are too old."""
        in_use = await self._detect()
        if self._greatest_age:
            now = self._clock.now()
            for id, image in list(self._images.items()):
                old = id not in in_use and now - image.used > self._greatest_age
                if old and await self._remove(id):
                    self.removed("age")
        used, size = await self._usage()
        if not size or used * 100 < self._high * size:
            return
        wanted = used - size * self._low // 100
        freed = await self._free(wanted, in_use, self._least_age)
        if freed < wanted:
            message = (
                f"Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, "
                f"but only found {freed} bytes eligible to free."
            )
            self._event("Warning", "FreeDiskSpaceFailed", message)

    async def delete_unused(self) -> None:
        """Remove all images that are not in use, however young: the node is short of disk."""
        await self._free(1 << 62, await self._detect(), 0.0)

    async def _detect(self) -> set[str]:
        """Look which images there are; those that containers use."""
        images = (await self._runtime.list_images()).images
        containers = (await self._runtime.list_containers()).containers
        names = {name: each.id for each in images for name in (each.id, *each.repo_tags, *each.repo_digests)}
        in_use = {names[ref] for each in containers for ref in _references(each) if ref in names}
        now = self._clock.now()
        present = {each.id for each in images}
        self._images = {id: each for id, each in self._images.items() if id in present}
        for each in images:
            image = self._images.setdefault(each.id, _Image(now, 0.0, each.size, each.pinned))
            image.size, image.pinned = each.size, each.pinned
            if each.id in in_use:
                image.used = now
        self._pulled.keep(present)
        return in_use

    async def _free(self, wanted: int, in_use: set[str], least_age: float) -> int:
        now, freed = self._clock.now(), 0
        order = sorted(self._images.items(), key=lambda item: (item[1].used, item[1].detected))
        for id, image in order:
            if freed >= wanted:
                break
            if id in in_use or image.pinned or now - image.detected < least_age:
                continue
            if await self._remove(id):
                self.removed("space")
                freed += image.size
        return freed

    async def _remove(self, id: str) -> bool:
        try:
            await self._runtime.remove_image(cri.RemoveImageRequest(image=cri.ImageSpec(image=id)))
        except CRIError as error:
            log.info("image %s stays for now: %s", id, error)
            return False
        self._images.pop(id, None)
        return True

    async def _usage(self) -> tuple[int, int]:
        """Bytes used, and in all, of the disk that images are on."""
        found = (await self._runtime.image_fs_info()).image_filesystems
        mountpoint = found[0].fs_id.mountpoint if found else "/"
        try:
            space = os.statvfs(mountpoint)
        except FileNotFoundError:
            space = os.statvfs("/")
        return (space.f_blocks - space.f_bavail) * space.f_frsize, space.f_blocks * space.f_frsize


def _references(container: Any) -> Iterable[str]:
    return (container.image_ref, container.image.image, container.image_id)
