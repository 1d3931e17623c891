"""Deletes pods that use a device with a NoExecute taint which their claim does not tolerate, or no longer.

Woken by: taints in ResourceSlices, allocated claims, pods that come to a node. Writes: the condition `DisruptionTarget`
of a pod, then deletes it. How long a claim bears a taint counts from the moment the taint was added. DeviceTaintRules
are behind a feature gate that is off, and not served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import Pod
from pybernetes.api.resource.tolerations import tolerates
from pybernetes.api.resource.v1 import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    ResourceClaim,
    ResourceSlice,
)
from pybernetes.client.events import NORMAL
from pybernetes.client.keys import Key, is_controlled_by, key_of, uid_of

from .base import Controller
from .common.disruption_target import mark
from .common.meta import is_deleting, meta, seconds
from .common.pods import node_of
from .resourceclaim.claims import claim_name, claim_names, entries, is_reserved_for, reservations
from .tainteviction import LATENCY_BUCKETS

NO_EXECUTE: Final = "NoExecute"
REASON: Final = "DeletionByDeviceTaintManager"
MESSAGE: Final = "Device Taint manager: deleting due to NoExecute taint"
_BY_CLAIM: Final = "podResourceClaim"
_BY_POOL: Final = "pool"

Taints = Callable[[DeviceRequestAllocationResult], Iterable[DeviceTaint]]
"""The taints of the device that was allocated."""


def allocated_devices(claim: ResourceClaim) -> list[DeviceRequestAllocationResult]:
    """The devices that a claim has."""
    allocation = claim.status.allocation if claim.status else None
    return (allocation.devices.results if allocation and allocation.devices else None) or []


def device_taints(slices: Iterable[ResourceSlice], device: str) -> list[DeviceTaint]:
    """The NoExecute taints of a device of a pool; only slices of the pool's newest generation count."""
    found = list(slices)
    newest = max((_generation(each) for each in found), default=0)
    for each in found:
        if _generation(each) != newest or each.spec is None:
            continue
        for candidate in each.spec.devices or ():
            if candidate.name == device:
                return [taint for taint in candidate.taints or () if taint.effect == NO_EXECUTE]
    return []


def claim_due(claim: ResourceClaim, taints: Taints) -> float | None:
    """When those who use the claim have to go; None if they may stay.

    Of several tolerations that match a taint the shortest counts, of several taints the one that is due first.
    """
    due: float | None = None
    for device in allocated_devices(claim):
        for taint in taints(device):
            matching = [
                each for each in device.tolerations or () if each.effect == NO_EXECUTE and tolerates(each, taint)
            ]
            if any(each.toleration_seconds is None for each in matching):
                continue
            borne = min((max(0, each.toleration_seconds or 0) for each in matching), default=0)
            when = seconds(taint.time_added) + borne
            due = when if due is None else min(due, when)
    return due


def pod_due(pod: Pod, get_claim: Callable[[str], ResourceClaim | None], taints: Taints) -> float | None:
    """When a pod has to go because of the devices that it uses; None if it may stay."""
    if not node_of(pod):
        return None
    due: float | None = None
    for entry in entries(pod):
        if entry.resource_claim_name is None and entry.resource_claim_template_name is None:
            continue
        name = claim_name(pod, entry).name
        claim = get_claim(name) if name else None
        if claim is None or not is_reserved_for(claim, pod):
            continue
        if entry.resource_claim_name is None and not is_controlled_by(claim, pod):
            continue
        when = claim_due(claim, taints)
        if when is not None:
            due = when if due is None else min(due, when)
    return due


class DeviceTaintEvictionController(Controller[Pod]):
    """Evicts pods from tainted devices."""

    name = "device-taint-eviction-controller"
    kind = Pod

    def setup(self) -> None:
        """Follow claims by their pools, and pods by their claims."""
        self.workers = self.options.concurrent_device_taint_eviction_syncs
        self.own.add_index(_BY_CLAIM, lambda pod: [f"{meta(pod).namespace}/{name}" for name in claim_names(pod)])
        self.claims = self.informer(ResourceClaim)
        self.claims.add_index(_BY_POOL, _pools_of)
        self.slices = self.informer(ResourceSlice)
        self.slices.add_index(_BY_POOL, lambda each: [_pool_of(each)])
        self.claims.add_handler(self._claim_seen, lambda _, new: self._claim_seen(new), self._claim_seen)
        self.slices.add_handler(self._slice_seen, self._slice_updated, self._slice_seen)
        self._scheduled: dict[Key, str] = {}
        """Uids of pods that will be deleted later if nothing changes."""
        metrics = self.context.metrics
        self._deleted = metrics.counter(
            "device_taint_eviction_controller_pod_deletions_total",
            "Total number of Pods deleted by DeviceTaintEvictionController since its start.",
        )
        self._latency = metrics.histogram(
            "device_taint_eviction_controller_pod_deletion_duration_seconds",
            "Latency, in seconds, between the time when a device taint effect has been activated and a Pod's deletion "
            "via DeviceTaintEvictionController.",
            LATENCY_BUCKETS,
        )

    # -- being woken

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return self.name

    def concerns(self, old: Pod | None, new: Pod | None) -> bool:
        """Pods with claims that come to a node, or whose claims have got their names; those that are gone."""
        if new is None:
            return old is not None and key_of(old) in self._scheduled
        if not entries(new):
            return False
        if old is None or uid_of(old) != uid_of(new):
            return True
        return node_of(old) != node_of(new) or list(claim_names(old)) != list(claim_names(new))

    def _claim_seen(self, claim: ResourceClaim) -> None:
        if not reservations(claim) and not self._scheduled:
            return
        for pod in self.own.by_index(_BY_CLAIM, str(key_of(claim))):
            self.queue.add(key_of(pod))

    def _slice_seen(self, each: ResourceSlice) -> None:
        pool = _pool_of(each)
        if _is_tainted(each) or any(_is_tainted(other) for other in self.slices.by_index(_BY_POOL, pool)):
            for claim in self.claims.by_index(_BY_POOL, pool):
                self._claim_seen(claim)

    def _slice_updated(self, old: ResourceSlice, new: ResourceSlice) -> None:
        if _is_tainted(old) or _pool_of(old) != _pool_of(new):
            self._slice_seen(old)
        self._slice_seen(new)

    # -- pods

    async def reconcile(self, key: Key) -> float | None:
        """Evict a pod, or look again when it is due."""
        pod = self.own.get(key)
        if pod is None or is_deleting(pod) or self._scheduled.get(key, uid_of(pod)) != uid_of(pod):
            self._scheduled.pop(key, None)
        if pod is None or is_deleting(pod):
            return None
        due = pod_due(pod, lambda name: self.claims.named(name, key.namespace), self._taints)
        if due is None:
            if self._scheduled.pop(key, None) is not None:
                self.recorder.event(pod, NORMAL, "DeviceTaintManagerEviction", "Cancelling deletion")
            return None
        self._scheduled[key] = uid_of(pod)
        wait = due - self.clock.now()
        if wait > 0:
            return wait
        await self._evict(key, uid_of(pod), due)
        self._scheduled.pop(key, None)
        return None

    def _taints(self, device: DeviceRequestAllocationResult) -> list[DeviceTaint]:
        return device_taints(self.slices.by_index(_BY_POOL, f"{device.driver}/{device.pool}"), device.device or "")

    async def _evict(self, key: Key, uid: str, due: float) -> None:
        try:
            pod = await self.client.get(Pod, key.name, key.namespace)
            if uid_of(pod) != uid or is_deleting(pod):
                return
            self.recorder.event(pod, NORMAL, "DeviceTaintManagerEviction", "Marking for deletion")
            await mark(self.client, pod, self.clock.now(), REASON, MESSAGE)
            await self.client.delete(Pod, key.name, key.namespace, uid=uid)
        except errors.NotFound:
            return
        self._deleted.inc()
        self._latency.observe(self.clock.now() - due)


def _generation(each: ResourceSlice) -> int:
    pool = each.spec.pool if each.spec else None
    return (pool.generation if pool else None) or 0


def _pool_of(each: ResourceSlice) -> str:
    spec = each.spec
    return f"{spec.driver}/{spec.pool.name if spec.pool else ''}" if spec else ""


def _pools_of(claim: ResourceClaim) -> list[str]:
    return sorted({f"{device.driver}/{device.pool}" for device in allocated_devices(claim)})


def _is_tainted(each: ResourceSlice) -> bool:
    devices = (each.spec.devices if each.spec else None) or ()
    return any(taint.effect == NO_EXECUTE for device in devices for taint in device.taints or ())
