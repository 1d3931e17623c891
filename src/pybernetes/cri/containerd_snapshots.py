"""Images as file systems, by containerd's own services: for its versions that mount no images as volumes (before 2.1).

A view is a read-only snapshot of all layers of an image. It is labelled as in use, so that neither
containerd's garbage collection nor the removal of its image takes it away; its creator removes it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import grpc.aio  # type: ignore[import-untyped]

from pybernetes.cri import v1
from pybernetes.cri.errors import CRIError
from pybernetes.cri.remote import Runtime, to_cri_error
from pybernetes.protofile import Proto, read

NAMESPACE = (("containerd-namespace", "k8s.io"),)
"""Where containerd's CRI part keeps its images."""
TIMEOUT = 30.0
_CONTENT = "/containerd.services.content.v1.Content"
_SNAPSHOTS = "/containerd.services.snapshots.v1.Snapshots"
_KEEP = {"containerd.io/gc.root": "true"}


@dataclass(frozen=True, slots=True)
class SnapshotMount:
    """How a snapshot is mounted: the arguments of mount(8)."""

    type: str
    source: str
    options: tuple[str, ...]


class ImageViews:
    """Views of images at a containerd."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._snapshotter = ""

    async def view(self, key: str, image: str) -> SnapshotMount:
        """A view of an image that CRI knows, under a key of one's own; the same one when asked for again."""
        names = _proto().names
        request = names["ViewSnapshotRequest"](
            snapshotter=await self._name(), key=key, parent=await self._chain(image), labels=_KEEP
        )
        try:
            found = await self._call(f"{_SNAPSHOTS}/View", request, "MountsResponse")
        except CRIError as error:
            if error.code != "AlreadyExists":
                raise
            again = names["MountsRequest"](snapshotter=await self._name(), key=key)
            found = await self._call(f"{_SNAPSHOTS}/Mounts", again, "MountsResponse")
        if len(found.mounts) != 1:
            raise CRIError("Unimplemented", f"a snapshot of {len(found.mounts)} mounts")
        mount = found.mounts[0]
        return SnapshotMount(mount.type, mount.source, tuple(mount.options))

    async def remove(self, key: str) -> None:
        """Give a view back; nothing happens if there is none."""
        request = _proto().names["RemoveSnapshotRequest"](snapshotter=await self._name(), key=key)
        try:
            await self._call(f"{_SNAPSHOTS}/Remove", request, "Empty")
        except CRIError as error:
            if error.code != "NotFound":
                raise

    async def _name(self) -> str:
        """The snapshotter that CRI's images are unpacked with."""
        if not self._snapshotter:
            status = await self._runtime.status(v1.StatusRequest(verbose=True))
            config = json.loads(status.info.get("config") or "{}")
            self._snapshotter = config.get("containerd", {}).get("snapshotter") or "overlayfs"
        return self._snapshotter

    async def _chain(self, image: str) -> str:
        """The name of the snapshot of all layers, from the image's config: its digest is the image's id."""
        found = await self._runtime.image_status(v1.ImageStatusRequest(image=v1.ImageSpec(image=image)))
        if not found.image.id:
            raise CRIError("NotFound", f"image {image} not found")
        layers = json.loads(await self._content(found.image.id))["rootfs"]["diff_ids"]
        chain: str = layers[0]
        for layer in layers[1:]:
            chain = "sha256:" + hashlib.sha256(f"{chain} {layer}".encode()).hexdigest()
        return chain

    async def _content(self, digest: str) -> bytes:
        names = _proto().names
        call = self._runtime.channel().unary_stream(
            f"{_CONTENT}/Read",
            request_serializer=names["ReadContentRequest"].SerializeToString,
            response_deserializer=names["ReadContentResponse"].FromString,
        )
        try:
            answers = call(names["ReadContentRequest"](digest=digest), metadata=NAMESPACE, timeout=TIMEOUT)
            return b"".join([each.data async for each in answers])
        except grpc.aio.AioRpcError as error:
            raise to_cri_error(error) from None

    async def _call(self, path: str, request: Any, answer: str) -> Any:
        call = self._runtime.channel().unary_unary(
            path,
            request_serializer=type(request).SerializeToString,
            response_deserializer=_proto().names[answer].FromString,
        )
        try:
            return await call(request, metadata=NAMESPACE, timeout=TIMEOUT)
        except grpc.aio.AioRpcError as error:
            raise to_cri_error(error) from None


@cache
def _proto() -> Proto:
    return read(Path(__file__).with_name("containerd_snapshots.proto"))
