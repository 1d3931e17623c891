"""A driver and what the tests of the controllers beside it ask of a cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from csi.mock_driver import MockDriver

from pybernetes.api import errors
from pybernetes.api.core.v1 import Event, Node, PersistentVolume, PersistentVolumeClaim
from pybernetes.api.storage.v1 import CSINode, StorageClass
from pybernetes.client.client import Client
from pybernetes.csi import v1
from tools import PATIENCE

NAME = "mock.example.com"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
SELECTED = "volume.kubernetes.io/selected-node"
ZONE = "topology.mock.example.com/zone"


class Disk(MockDriver):
    """Records volumes by name, and reports configured sizes."""

    topology_keys = (ZONE,)
    node_expansion = False

    def __init__(self) -> None:
        super().__init__()
        self.volumes: dict[str, int] = {}
        self.less = 0

    async def create_volume(self, request: Any) -> Any:
        await self.noted("CreateVolume", request)
        self.volumes[request.name] = request.capacity_range.required_bytes
        size = request.capacity_range.required_bytes - self.less
        response = v1.CreateVolumeResponse(volume={"volume_id": request.name, "capacity_bytes": size})
        response.volume.volume_context["color"] = request.parameters.get("color", "")
        response.volume.accessible_topology.add().segments[ZONE] = "east"
        return response

    async def delete_volume(self, request: Any) -> Any:
        await self.noted("DeleteVolume", request)
        self.volumes.pop(request.volume_id, None)
        return v1.DeleteVolumeResponse()

    async def controller_expand_volume(self, request: Any) -> Any:
        await self.noted("ControllerExpandVolume", request)
        size = request.capacity_range.required_bytes
        return v1.ControllerExpandVolumeResponse(capacity_bytes=size, node_expansion_required=self.node_expansion)


class Cluster:
    def __init__(self, client: Client, space: str, driver: Disk) -> None:
        self.client, self.space, self.driver = client, space, driver
        self.cls = f"class-{space}"

    async def make_class(self, **more: Any) -> None:
        spec = {"metadata": {"name": self.cls}, "provisioner": NAME, "allowVolumeExpansion": True, **more}
        await self.client.create(msgspec.convert(spec, StorageClass))

    async def claim(self, name: str, size: str = "1Gi", node: str = "", **spec: Any) -> PersistentVolumeClaim:
        """A claim as the binder leaves it to the provisioner."""
        annotations = {PROVISIONER: NAME, **({SELECTED: node} if node else {})}
        wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": self.cls, **spec}
        wanted["resources"] = {"requests": {"storage": size}}
        metadata = {"name": name, "namespace": self.space, "annotations": annotations}
        return await self.client.create(msgspec.convert({"metadata": metadata, "spec": wanted}, PersistentVolumeClaim))

    async def volume(self, claim: PersistentVolumeClaim) -> PersistentVolume:
        assert claim.metadata is not None
        name = f"pvc-{claim.metadata.uid}"
        async with asyncio.timeout(30):
            while True:
                found = [
                    each for each in (await self.client.list(PersistentVolume)).items if each.metadata.name == name
                ]
                if found:
                    return found[0]
                await asyncio.sleep(0.05)

    async def bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        """What the binder does."""
        assert claim.metadata is not None
        assert volume.metadata is not None
        name = claim.metadata.name or ""
        await self.client.patch(PersistentVolumeClaim, name, {"spec": {"volumeName": volume.metadata.name}}, self.space)
        status = {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
        await self.client.patch(PersistentVolumeClaim, name, {"status": status}, self.space, subresource="status")

    async def until(self, kind: Any, name: str, condition: Any) -> Any:
        """The object, or None, as soon as the condition is true for it."""
        async with asyncio.timeout(30):
            while True:
                try:
                    found = await self.client.get(kind, name)
                except errors.NotFound:
                    found = None
                if condition(found):
                    return found
                await asyncio.sleep(0.02)

    async def events(self, reason: str) -> list[str]:
        async with asyncio.timeout(30):
            while True:
                found = (await self.client.list(Event, self.space)).items
                messages = [
                    each.message or each.note or "" if hasattr(each, "note") else each.message or ""
                    for each in found
                    if each.reason == reason
                ]
                if messages:
                    return messages
                await asyncio.sleep(0.05)


async def becomes(wanted: object, current: Callable[[], Awaitable[object]]) -> None:
    """Return when the current value is the wanted one."""
    found: object = None
    try:
        async with asyncio.timeout(PATIENCE):
            while (found := await current()) != wanted:  # noqa: ASYNC110 - the API has no event for it
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"{found!r} is not {wanted!r}") from None


async def clean(client: Client, made: Cluster) -> None:
    for claim in (await client.list(PersistentVolumeClaim, made.space)).items:
        name = claim.metadata.name or ""
        await client.delete(PersistentVolumeClaim, name, made.space)
        with contextlib.suppress(errors.NotFound):
            await client.patch(PersistentVolumeClaim, name, {"metadata": {"finalizers": None}}, made.space)
    for volume in (await client.list(PersistentVolume)).items:
        name = volume.metadata.name or ""
        await client.delete(PersistentVolume, name)
        with contextlib.suppress(errors.NotFound):
            await client.patch(PersistentVolume, name, {"metadata": {"finalizers": None}})
    for kind, name in ((StorageClass, made.cls), (Node, f"n-{made.space}"), (CSINode, f"n-{made.space}")):
        if any(each.metadata.name == name for each in (await client.list(kind)).items):
            await client.delete(kind, name)
