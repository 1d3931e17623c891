"""Writes to the API server what was decided about claims, and waits for devices that have to be made ready."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any

from pybernetes.api import errors
from pybernetes.api.core.v1 import ContainerExtendedResourceRequest, Pod
from pybernetes.api.resource.v1 import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from pybernetes.api.times import rfc3339
from pybernetes.client.keys import copy, key_of, uid_of
from pybernetes.client.retry import retry_on_conflict

from ...framework import Handle, PodInfo
from . import conditions
from .claims import ClaimsMissing, allocation_of

FINALIZER = "resource.kubernetes.io/delete-protection"

log = logging.getLogger(__name__)


class ClaimWriter:
    """All requests of the plugin, and the waiting."""

    def __init__(self, handle: Handle, timeout: float) -> None:
        self.handle = handle
        self._timeout = timeout
        self._claims = handle.informer(ResourceClaim)
        self._changed = asyncio.Event()
        """Set when a claim changes, for pods that wait for their devices."""
        self._claims.add_handler(on_update=lambda _, new: self._changed.set(), on_delete=lambda _: self._changed.set())
        self._tasks: set[asyncio.Task[None]] = set()

    async def reserve(self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo) -> ResourceClaim:
        """Write down which devices the claim has, and that the pod uses them."""
        client, current, first = self.handle.client, copy(claim), True
        user = ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)

        async def attempt() -> ResourceClaim:
            nonlocal current, first
            if not first:
                key = key_of(claim)
                current = await client.get(ResourceClaim, key.name, key.namespace)
            first = False
            metadata = current.metadata
            assert metadata is not None
            if metadata.deletion_timestamp is not None:
                raise ClaimsMissing(f"claim {_text(claim)} got deleted in the meantime")
            if allocation is not None:
                if allocation_of(current) is not None:
                    raise ClaimsMissing(f"claim {_text(claim)} got allocated elsewhere in the meantime")
                if FINALIZER not in (metadata.finalizers or ()):
                    metadata.finalizers = [*(metadata.finalizers or ()), FINALIZER]
                    current = await client.update(current)
            changed = copy(current)
            status = changed.status = changed.status or ResourceClaimStatus()
            if allocation is not None:
                status.allocation = copy(allocation)
            if status.allocation is None:
                raise ClaimsMissing(f"claim {_text(claim)} got deallocated elsewhere in the meantime")
            if status.allocation.allocation_timestamp is None:
                status.allocation.allocation_timestamp = rfc3339(self.handle.clock.now())
            status.reserved_for = [*(status.reserved_for or ()), user]
            return await client.update_status(changed)

        return await retry_on_conflict(attempt)

    async def make(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim for extended resources."""
        new = copy(claim)
        assert new.metadata is not None
        new.metadata.name = new.metadata.uid = None
        return await self.handle.client.create(new)

    async def tell_pod(
        self, pod: PodInfo, claim: ResourceClaim, mappings: list[ContainerExtendedResourceRequest]
    ) -> None:
        """Which container uses which of the claim's requests."""
        said = {
            "resourceClaimName": key_of(claim).name,
            "requestMappings": [
                {
                    "containerName": each.container_name,
                    "resourceName": each.resource_name,
                    "requestName": each.request_name,
                }
                for each in mappings
            ],
        }
        patch = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": said}}
        await self.handle.client.patch(Pod, pod.name, patch, pod.namespace, type="strategic", subresource="status")

    async def wait_for_devices(self, claims: Iterable[ResourceClaim], pod: PodInfo, node_name: str) -> None:
        """Return when all devices with binding conditions are ready. Raises `DeviceBindingFailed`."""
        claims = [each for each in claims if conditions.has_conditions(each)]
        if not claims:
            return
        message = f"waiting for binding conditions for device on node {node_name}"
        self.handle.recorder.event(pod.pod, "Normal", "BindingConditionsPending", message)
        deadline = self.handle.clock.monotonic() + self._timeout
        while True:
            self._changed.clear()
            newest = [self._claims.get(key_of(each)) for each in claims]
            if all(each is not None and conditions.is_ready(each) for each in newest):
                return
            left = deadline - self.handle.clock.monotonic()
            if left <= 0:
                raise conditions.DeviceBindingFailed("device binding timeout")
            timer = self.handle.clock.call_later(left, self._changed.set)
            try:
                await self._changed.wait()
            finally:
                timer.cancel()

    async def release(self, claim: ResourceClaim, uid: str) -> None:
        """The pod does not use the claim after all."""
        key = key_of(claim)
        users = [{"$patch": "delete", "uid": uid}]
        patch = {"metadata": {"uid": uid_of(claim)}, "status": {"reservedFor": users}}
        await self.handle.client.patch(
            ResourceClaim, key.name, patch, key.namespace, type="strategic", subresource="status"
        )

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete an unused claim that the scheduler made for a pod."""
        client, key = self.handle.client, key_of(claim)

        async def attempt() -> None:
            current = await client.get(ResourceClaim, key.name, key.namespace)
            if current.metadata and FINALIZER in (current.metadata.finalizers or ()):
                current.metadata.finalizers = [each for each in current.metadata.finalizers or () if each != FINALIZER]
                await client.update(current)

        await retry_on_conflict(attempt)
        await client.delete(ResourceClaim, key.name, key.namespace)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Undo something at the API server, while the pod goes on."""

        async def run() -> None:
            try:
                await work
            except (errors.APIError, OSError, TimeoutError) as error:
                log.warning("cannot undo what was done for a pod's claim: %s", error)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _text(claim: ResourceClaim) -> str:
    return str(key_of(claim))
