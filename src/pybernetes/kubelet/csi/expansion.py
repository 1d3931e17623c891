"""Expands the file system of a volume that has become larger, and then says so in the claim's status.

A PersistentVolume with more than its claim's status shows waits for this node: the controller's part is done. It is
looked for when a pod's volume is set up, and while the pod runs at its syncs, as upstream does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from pybernetes.api.core.volumebinding import volume_size
from pybernetes.api.quantity import Quantity, parse
from pybernetes.client.keys import key_of, uid_of
from pybernetes.csi import v1
from pybernetes.csi.errors import CSIError

from ..error_text import why
from ..volumes.base import StepError
from . import source
from .drivers import NotRegistered
from .source import Source

if TYPE_CHECKING:
    from .volumes import CSIVolumes, Mounted

LOOK_EVERY: Final = 30.0
"""Seconds between two looks at the claim of a running pod."""
PENDING: Final = frozenset(("FileSystemResizePending", "Resizing"))


async def look(volumes: CSIVolumes, pod: Pod, mounted: Mounted) -> None:
    """Look whether a mounted volume has become larger, now and then."""
    now = asyncio.get_running_loop().time()
    if mounted.claim is None or now - mounted.looked < LOOK_EVERY:
        return
    mounted.looked = now
    try:
        claim = await volumes.client.get(PersistentVolumeClaim, mounted.claim[1], mounted.claim[0])
        if not _needs_more(claim, None):
            return
        persistent = await volumes.client.get(PersistentVolume, mounted.source.spec_name)
    except (errors.APIError, OSError, TimeoutError):
        return  # the pod runs well without
    await expand(volumes, pod, mounted.source, persistent, claim)


async def expand(
    volumes: CSIVolumes, pod: Pod, found: Source, persistent: PersistentVolume, claim: PersistentVolumeClaim
) -> None:
    """Have the driver expand the volume if the claim has not got all of it yet; raises `StepError`."""
    size = volume_size(persistent)
    if not _needs_more(claim, size):
        return
    try:
        client = volumes.drivers.get(found.driver)
        capabilities = await client.node_capabilities()
        if v1.NodeRPC.EXPAND_VOLUME not in capabilities:
            return
        await client.call(
            "NodeExpandVolume",
            volume_id=found.handle,
            volume_path=str(volumes.published_path(uid_of(pod), found)),
            capacity_range=v1.CapacityRange(required_bytes=size.value()),
            staging_target_path=volumes.staging_path(found),
            volume_capability=source.capability(found, capabilities, None),
            secrets=await volumes.secrets(found, found.expand_secret, "NodeExpandVolume failed"),
        )
        await _report(volumes, claim, size)
    except (CSIError, NotRegistered, errors.APIError, OSError, TimeoutError) as error:
        message = f'NodeExpandVolume failed for volume "{found.spec_name}" : {why(error)}'
        volumes.event(pod, "Warning", "VolumeResizeFailed", message)
        if isinstance(error, CSIError) and error.code == "FailedPrecondition":  # the volume is in use: later, offline
            return
        raise StepError("NodeExpandVolume failed", found.spec_name, why(error)) from None
    message = f'MountVolume.NodeExpandVolume succeeded for volume "{found.spec_name}" {volumes.node}'
    volumes.event(pod, "Normal", "FileSystemResizeSuccessful", message)


def _needs_more(claim: PersistentVolumeClaim, size: Quantity | None) -> bool:
    """Whether a claim's status has less than `size`, or, without one, than its spec asks for."""
    status, spec = claim.status, claim.spec
    has = ((status.capacity if status else None) or {}).get("storage")
    if has is None:
        return False
    if size is None:
        wanted = ((spec.resources.requests if spec and spec.resources else None) or {}).get("storage")
        if wanted is None:
            return False
        size = parse(str(wanted))
    return parse(str(has)) < size


async def _report(volumes: CSIVolumes, claim: PersistentVolumeClaim, size: Quantity) -> None:
    status = claim.status
    conditions = (status.conditions if status else None) or []
    left = [each for each in conditions if each.type not in PENDING]
    patch: dict[str, Any] = {"status": {"capacity": {"storage": str(size)}}}
    if len(left) != len(conditions):
        patch["status"]["conditions"] = [{"$patch": "delete", "type": each} for each in sorted(PENDING)]
    if status is not None and status.allocated_resource_statuses:
        patch["status"]["allocatedResourceStatuses"] = {"storage": None}
    key = key_of(claim)
    await volumes.client.patch(
        PersistentVolumeClaim, key.name, patch, key.namespace, subresource="status", type="strategic"
    )
