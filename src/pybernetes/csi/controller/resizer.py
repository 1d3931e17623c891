"""Makes volumes larger for claims that ask for more: upstream's external-resizer.

Woken by: bound claims whose request is more than their volume has. Writes: the capacity of the PersistentVolume, then
the claim's status: done, or waiting for the node to expand the file system (the kubelet's part).
"""

from __future__ import annotations

from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from pybernetes.api.core.volumebinding import volume_size, wanted_size
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.quantity import parse
from pybernetes.api.times import rfc3339
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.keys import Key, key_of, uid_of
from pybernetes.csi import v1

from ..errors import CSIError
from .loop import Context, Loop
from .requests import amount, capabilities

INFEASIBLE: Final = frozenset(("InvalidArgument", "OutOfRange", "NotFound"))
INFEASIBLE_RETRY: Final = 300.0
"""Seconds until a size that the driver will never give is asked for again; upstream's is as long."""
NODE_PENDING: Final = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."


class Resizer:
    """Grows volumes of one driver."""

    def __init__(self, context: Context, ours: Any = None) -> None:
        """`ours(volume)` says whether a volume is this process's; without it all of the driver are."""
        self._context, self._ours = context, ours
        self._recorder = context.events.recorder(f"external-resizer {context.name}")
        self.claims = context.informers.informer(PersistentVolumeClaim)
        self.volumes = context.informers.informer(PersistentVolume)
        self._loop = Loop("resizer", context.clock, self.resize)
        self._controller = False
        self._node = False
        self._multi = False
        self.claims.add_handler(self._claim_seen, self._claim_updated)
        self.volumes.add_handler(self._volume_seen, lambda _, new: self._volume_seen(new))

    async def run(self) -> None:
        """Work until cancelled; nothing is done for a driver that cannot expand."""
        controller = await self._context.driver.controller_capabilities()
        self._controller = v1.ControllerRPC.EXPAND_VOLUME in controller
        self._multi = v1.ControllerRPC.SINGLE_NODE_MULTI_WRITER in controller
        try:
            self._node = v1.NodeRPC.EXPAND_VOLUME in await self._context.driver.node_capabilities()
        except CSIError:
            self._node = False  # a controller's socket has no node service
        if self._controller or self._node:
            await self._loop.run(self.claims, self.volumes)

    def _claim_seen(self, claim: PersistentVolumeClaim) -> None:
        status = claim.status
        if status is None or status.phase != "Bound":
            return
        has = (status.capacity or {}).get("storage")
        if has is not None and wanted_size(claim) > parse(str(has)):
            self._loop.queue.add(key_of(claim))

    def _claim_updated(self, old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> None:
        """Ignore updates that this controller wrote while it works on the claim."""
        if wanted_size(old) != wanted_size(new) or _phase(old) != _phase(new):
            self._claim_seen(new)

    def _volume_seen(self, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref if volume.spec else None
        claim = self.claims.named(reference.name or "", reference.namespace or "") if reference else None
        if claim is not None:
            self._claim_seen(claim)

    async def resize(self, key: Key) -> float | None:
        """Bring a claim's volume to the size that it asks for."""
        claim = self.claims.get(key)
        if claim is None or claim.spec is None or claim.status is None:
            return None
        volume = self.volumes.named(claim.spec.volume_name or "")
        spec = volume.spec if volume is not None else None
        if volume is None or spec is None or spec.csi is None or spec.csi.driver != self._context.name:
            return None
        if spec.claim_ref is None or spec.claim_ref.uid != uid_of(claim):
            return None
        if self._ours is not None and not self._ours(volume):
            return None
        wanted = wanted_size(claim)
        if volume_size(volume) >= wanted:
            await self._finish(key, wanted.value())
            return None
        name = volume.metadata.name if volume.metadata else ""
        self._recorder.event(claim, NORMAL, "Resizing", f"External resizer is resizing volume {name}")
        await self._status(
            key,
            {
                "allocatedResources": {"storage": amount(wanted.value())},
                "allocatedResourceStatuses": {"storage": "ControllerResizeInProgress"},
                "conditions": _condition("Resizing", "", self._context.clock.now()),
            },
        )
        size, node = wanted.value(), True
        if self._controller:
            try:
                size, node = await self._expand(volume, wanted.value())
            except (CSIError, errors.APIError) as error:
                message = f"resize volume {quote(name or '')} by resizer {quote(self._context.name)} failed: {error}"
                self._recorder.event(claim, WARNING, "VolumeResizeFailed", message)
                if isinstance(error, CSIError) and error.code in INFEASIBLE:
                    infeasible = {"allocatedResourceStatuses": {"storage": "ControllerResizeInfeasible"}}
                    await self._status(key, infeasible)
                    return INFEASIBLE_RETRY
                raise
        patch = {"spec": {"capacity": {"storage": amount(size)}}}
        await self._context.client.patch(PersistentVolume, name or "", patch)
        if node:
            await self._node_pending(key, claim, size)
        else:
            await self._done(key, claim, size)
        return None

    async def _finish(self, key: Key, size: int) -> None:
        """The volume is large enough: what an earlier process has not said, unless the claim has it meanwhile."""
        live = await self._context.client.get(PersistentVolumeClaim, key.name, key.namespace)
        has = ((live.status.capacity if live.status else None) or {}).get("storage", "0")
        if parse(str(has)).value() >= size or self._pending(live):
            return
        if self._node:
            await self._node_pending(key, live, size)
        else:
            await self._done(key, live, size)

    async def _done(self, key: Key, claim: PersistentVolumeClaim, size: int) -> None:
        await self._status(
            key,
            {
                "capacity": {"storage": amount(size)},
                "allocatedResources": {"storage": amount(size)},
                "allocatedResourceStatuses": {"storage": None},
                "conditions": [{"$patch": "delete", "type": each} for each in ("Resizing", "FileSystemResizePending")],
            },
        )
        self._recorder.event(claim, NORMAL, "VolumeResizeSuccessful", "Resize volume succeeded")

    async def _expand(self, volume: PersistentVolume, size: int) -> tuple[int, bool]:
        spec = volume.spec
        assert spec is not None
        assert spec.csi is not None
        block = spec.volume_mode == "Block"
        modes = list(spec.access_modes or ())[:1]
        capability = capabilities(modes, block, spec.csi.fs_type or "", spec.mount_options or (), self._multi)
        response = await self._context.driver.call(
            "ControllerExpandVolume",
            volume_id=spec.csi.volume_handle,
            capacity_range=v1.CapacityRange(required_bytes=size),
            secrets=await self._context.secret(spec.csi.controller_expand_secret_ref),
            volume_capability=capability[0] if capability else None,
        )
        return response.capacity_bytes or size, bool(response.node_expansion_required)

    def _pending(self, claim: PersistentVolumeClaim) -> bool:
        conditions = (claim.status.conditions if claim.status else None) or ()
        return any(each.type == "FileSystemResizePending" for each in conditions)

    async def _node_pending(self, key: Key, claim: PersistentVolumeClaim, size: int) -> None:
        now = self._context.clock.now()
        await self._status(
            key,
            {
                "allocatedResources": {"storage": amount(size)},
                "allocatedResourceStatuses": {"storage": "NodeResizePending"},
                "conditions": [
                    {"$patch": "delete", "type": "Resizing"},
                    *_condition("FileSystemResizePending", NODE_PENDING, now),
                ],
            },
        )
        message = "Require file system resize of volume on node"
        self._recorder.event(claim, NORMAL, "FileSystemResizeRequired", message)

    async def _status(self, key: Key, status: dict[str, Any]) -> None:
        await self._context.client.patch(
            PersistentVolumeClaim, key.name, {"status": status}, key.namespace, type="strategic", subresource="status"
        )


def _phase(claim: PersistentVolumeClaim) -> tuple[str | None, object]:
    status = claim.status
    return (status.phase, (status.capacity or {}).get("storage")) if status is not None else (None, None)


def _condition(type: str, message: str, now: float) -> list[dict[str, str]]:
    condition = {"type": type, "status": "True", "lastTransitionTime": rfc3339(now)}
    return [{**condition, "message": message} if message else condition]
