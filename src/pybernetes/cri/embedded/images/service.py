"""CRI's ImageService over the image store, in the words that containerd uses.

An image of an archive that this node was given counts as pulled, whatever a registry has under its name: the archive is
where the node has it from, on a machine without a network too. All others are pulled from a registry.

An image that is not here is an empty answer to ImageStatus and no error to RemoveImage. RemoveImage takes an image with
all its names, also while containers of it run: its layers stay until the last of them is released.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

from .. import users
from .store import Image, ImageStore
from .usage import Usage

T = TypeVar("T")
KEEP_USAGE = 10.0
"""Seconds that ImageFsInfo's figures are good: the kubelet asks as often, and counting reads every folder."""


class ImageService:
    """`archives` is a folder whose new archives are looked at when an image is missed.

    `registries` are folders with `HOST/hosts.toml` in containerd's format.
    """

    def __init__(self, store: ImageStore, archives: Path | None, registries: Sequence[Path] = ()) -> None:
        self._store = store
        self._archives = archives
        self._registries = registries
        self._looking = asyncio.Lock()
        self._measuring = asyncio.Lock()
        self._usage: tuple[float, Usage, Usage] | None = None

    async def look(self) -> None:
        """Takes in archives that are new."""
        if self._archives is not None:
            async with self._looking:
                await asyncio.to_thread(self._store.import_folder, self._archives)

    async def list_images(self, request: Any) -> Any:
        """The images that match a filter."""
        name = request.filter.image.image
        found = self._store.images()
        if name:
            one = self._find(name)
            found = [one] if one else []
        return cri.ListImagesResponse(images=[told for each in found if (told := self._described(each)) is not None])

    async def stream_images(self, request: Any) -> AsyncIterator[Any]:
        """The same, one message for all."""
        yield cri.StreamImagesResponse(images=(await self.list_images(request)).images)

    async def image_status(self, request: Any) -> Any:
        """An image, or an answer without one; `verbose` adds its configuration."""
        image = self._find(request.image.image)
        if image is None:
            await self.look()
            image = self._find(request.image.image)
        told = self._described(image) if image is not None else None
        if image is None or told is None:
            return cri.ImageStatusResponse()
        info = {}
        if request.verbose:
            with contextlib.suppress(FileNotFoundError):
                info["info"] = json.dumps({"imageSpec": json.loads(self._store.raw_config(image))})
        return cri.ImageStatusResponse(image=told, info=info)

    async def pull_image(self, request: Any) -> Any:
        """Makes an image be here; its id. A caller who goes away ends it, and the next one goes on where it was."""
        name = request.image.image
        await self.look()
        self._find(name)  # says what is wrong with a name
        image = await asyncio.to_thread(self._from_archive, name)
        if image is None:
            image = await self._pull(name, request.auth if request.HasField("auth") else None)
        return cri.PullImageResponse(image_ref=image.id)

    async def remove_image(self, request: Any) -> Any:
        """Removes an image with all its names."""
        self._find(request.image.image)
        await asyncio.to_thread(self._store.remove, request.image.image)
        self._usage = None
        return cri.RemoveImageResponse()

    async def image_fs_info(self, request: Any) -> Any:
        """The disk usage of images and containers."""
        async with self._measuring:
            now = time.monotonic()
            if self._usage is None or now - self._usage[0] >= KEEP_USAGE:
                self._usage = (now, *await asyncio.to_thread(self._store.usage))
            _, images, containers = self._usage
        root = self._store.root
        return cri.ImageFsInfoResponse(
            image_filesystems=[_usage(root, images)], container_filesystems=[_usage(root, containers)]
        )

    def _from_archive(self, name: str) -> Image | None:
        try:
            return self._store.from_archive(name)
        except ValueError:
            return None  # damaged since it was read

    async def _pull(self, name: str, auth: Any) -> Image:
        from . import pulling  # HTTP and TLS, which an idle node has no need of

        cancelled = threading.Event()
        try:
            login = pulling.credentials(auth)
            return await _in_own_thread(lambda: pulling.pull(self._store, self._registries, name, login, cancelled))
        except pulling.PullError as error:
            raise CRIError(error.code, error.message) from error
        finally:
            cancelled.set()
            self._usage = None

    def _find(self, name: str) -> Image | None:
        try:
            return self._store.find(name)
        except ValueError as error:
            raise CRIError("InvalidArgument", f"failed to parse image reference: {error}") from None

    def _described(self, image: Image) -> Any:
        """None if it is removed in this moment."""
        try:
            user = self._store.config(image).user.partition(":")[0]
        except FileNotFoundError:
            return None
        found = cri.Image(id=image.id, repo_tags=image.names, repo_digests=image.digests, size=max(1, image.size))
        number = users.number(user)
        if number is not None:
            found.uid.CopyFrom(cri.Int64Value(value=number))
        else:
            found.username = user
        return found


async def _in_own_thread(function: Callable[[], T]) -> T:
    """For what may take minutes: asyncio's few threads are for short work, and keep a process from ending."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(result)

    done.set_running_or_notify_cancel()  # from now on only its event cancels the thread
    threading.Thread(target=run, name="pull", daemon=True).start()
    return await asyncio.wrap_future(done)


def _usage(root: Path, usage: Usage) -> Any:
    return cri.FilesystemUsage(
        timestamp=time.time_ns(),
        fs_id=cri.FilesystemIdentifier(mountpoint=str(root)),
        used_bytes=cri.UInt64Value(value=usage.bytes),
        inodes_used=cri.UInt64Value(value=usage.inodes),
    )
