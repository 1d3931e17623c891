"""Attaches volumes to nodes and detaches them: upstream's external-attacher, for one driver.

Woken by: VolumeAttachments that name this driver. Writes: their status and finalizer. No detachment is forgotten: the
finalizer is there before the driver is called, and goes after ControllerUnpublishVolume has succeeded.
"""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import PersistentVolume
from pybernetes.api.storage.v1 import CSINode, VolumeAttachment
from pybernetes.api.times import rfc3339
from pybernetes.client.keys import Key, key_of
from pybernetes.csi import v1

from ..errors import CSIError
from .loop import Context, Loop
from .requests import capabilities

ATTACH_SECONDS: Final = 120.0


class Attacher:
    """VolumeAttachments of one driver."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.attachments = context.informers.informer(VolumeAttachment)
        self._loop = Loop("attacher", context.clock, self.sync)
        self._controller: set[int] = set()
        self.finalizer = f"external-attacher/{context.name.replace('.', '-')}"
        self.attachments.add_handler(self._seen, self._updated)

    async def run(self) -> None:
        """Work until cancelled. For a driver that attaches nothing, attachments are said to be done at once."""
        plugin = await self._context.driver.plugin_capabilities()
        if v1.PluginService.CONTROLLER_SERVICE in plugin:
            self._controller = await self._context.driver.controller_capabilities()
        await self._loop.run(self.attachments)

    @property
    def _attaches(self) -> bool:
        return v1.ControllerRPC.PUBLISH_UNPUBLISH_VOLUME in self._controller

    def _seen(self, found: VolumeAttachment) -> None:
        if found.spec is not None and found.spec.attacher == self._context.name:
            self._loop.queue.add(key_of(found))

    def _updated(self, old: VolumeAttachment, new: VolumeAttachment) -> None:
        """Ignore updates that this controller wrote."""
        if _state(old) != _state(new):
            self._seen(new)

    async def sync(self, key: Key) -> float | None:
        """Bring an attachment to where it should be."""
        found = self.attachments.get(key)
        if found is None or found.spec is None or found.metadata is None:
            return None
        if found.metadata.deletion_timestamp:
            await self._detach(key, found)
        elif found.status is None or not found.status.attached:
            await self._attach(key, found)
        return None

    async def _attach(self, key: Key, found: VolumeAttachment) -> None:
        if not self._attaches:
            await self._report(key, {"attached": True})
            return
        assert found.metadata is not None
        finalizers = list(found.metadata.finalizers or ())
        if self.finalizer not in finalizers:
            change = {"finalizers": [*finalizers, self.finalizer], "resourceVersion": found.metadata.resource_version}
            await self._context.client.patch(VolumeAttachment, key.name, {"metadata": change})
        try:
            volume = await self._volume(found)
            spec = volume.spec
            assert spec is not None
            assert spec.csi is not None
            multi = v1.ControllerRPC.SINGLE_NODE_MULTI_WRITER in self._controller
            modes = list(spec.access_modes or ())[:1]
            block = spec.volume_mode == "Block"
            wanted = capabilities(modes, block, spec.csi.fs_type or "", spec.mount_options or (), multi)
            response = await self._context.driver.call(
                "ControllerPublishVolume",
                within=ATTACH_SECONDS,
                volume_id=spec.csi.volume_handle,
                node_id=await self._node_id(found),
                volume_capability=wanted[0] if wanted else None,
                readonly=bool(spec.csi.read_only) and v1.ControllerRPC.PUBLISH_READONLY in self._controller,
                secrets=await self._context.secret(spec.csi.controller_publish_secret_ref),
                volume_context=spec.csi.volume_attributes or None,
            )
        except (CSIError, errors.APIError, ValueError) as error:
            await self._report(key, {"attachError": self._error(error)})
            raise _again(error) from None
        context = dict(response.publish_context)
        await self._report(key, {"attached": True, "attachError": None, "attachmentMetadata": context or None})

    async def _detach(self, key: Key, found: VolumeAttachment) -> None:
        assert found.metadata is not None
        finalizers = list(found.metadata.finalizers or ())
        if self.finalizer not in finalizers:
            return
        if self._attaches:
            try:
                volume = await self._volume(found)
                csi = volume.spec.csi if volume.spec else None
                assert csi is not None
                await self._context.driver.call(
                    "ControllerUnpublishVolume",
                    within=ATTACH_SECONDS,
                    volume_id=csi.volume_handle,
                    node_id=await self._node_id(found),
                    secrets=await self._context.secret(csi.controller_publish_secret_ref),
                )
            except (CSIError, errors.APIError, ValueError) as error:
                if not (isinstance(error, CSIError) and error.code == "NotFound"):
                    await self._report(key, {"detachError": self._error(error)})
                    raise _again(error) from None
        left = [each for each in finalizers if each != self.finalizer]
        change = {"finalizers": left or None, "resourceVersion": found.metadata.resource_version}
        await self._context.client.patch(VolumeAttachment, key.name, {"metadata": change})

    async def _volume(self, found: VolumeAttachment) -> PersistentVolume:
        source = found.spec.source if found.spec else None
        if source is None or not source.persistent_volume_name:
            raise ValueError("spec.source.persistentVolumeName is empty: nothing else can be attached")
        volume = await self._context.client.get(PersistentVolume, source.persistent_volume_name)
        csi = volume.spec.csi if volume.spec else None
        if csi is None or csi.driver != self._context.name:
            raise ValueError(f"PersistentVolume {source.persistent_volume_name} is not of driver {self._context.name}")
        return volume

    async def _node_id(self, found: VolumeAttachment) -> str:
        name = (found.spec.node_name if found.spec else None) or ""
        node = await self._context.client.get(CSINode, name)
        for each in (node.spec.drivers if node.spec else None) or ():
            if each.name == self._context.name and each.node_id:
                return each.node_id
        raise ValueError(f"CSINode {name} does not contain driver {self._context.name}")

    def _error(self, error: Exception) -> dict[str, str]:
        return {"message": str(error), "time": rfc3339(self._context.clock.now())}

    async def _report(self, key: Key, status: dict[str, Any]) -> None:
        await self._context.client.patch(VolumeAttachment, key.name, {"status": status}, subresource="status")


def _state(found: VolumeAttachment) -> tuple[bool, bool]:
    deleting = found.metadata is not None and bool(found.metadata.deletion_timestamp)
    return deleting, found.status is not None and bool(found.status.attached)


def _again(error: Exception) -> Exception:
    """An error that the loop repeats the work after, with a growing delay."""
    return error if isinstance(error, CSIError) else CSIError("Internal", str(error))
