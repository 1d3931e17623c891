"""Brings claims and volumes together, and reclaims volumes whose claim is gone.

Woken by: claims, volumes, classes. Writes: both, first the volume (`claimRef`), then the claim (`volumeName`), and
their phases. A volume that the user reserved, or the scheduler chose for a node, is bound as it says; making and
deleting what is behind a volume is the work of external provisioners, which read the annotations written here.

A claim that waits is looked at again after `--pvclaimbinder-sync-period`, when an event repeats the reason; a volume
that becomes free wakes one claim that it suits at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim, PersistentVolumeStatus, Pod
from pybernetes.api.core.volumebinding import BIND_COMPLETED, claim_class, volume_class
from pybernetes.api.storage.v1 import StorageClass
from pybernetes.client.keys import Key, copy, key_of, uid_of

from ..base import Controller
from ..common.meta import annotations_of, by_creation, is_deleting, name_of
from ..common.pods import is_terminal, node_of
from ..pvcprotection import claims_of
from .changes import (
    bound_claim,
    bound_volume,
    claim_of_class,
    claim_status,
    migrated_claim,
    migrated_volume,
    provisioned_claim,
    unbound_volume,
)
from .claims import AssignClass, Bind, Provision, Report, Say, best_volume, decide_claim
from .latest import Latest
from .metrics import add_metrics
from .user_event import UserEvent
from .volumes import Mismatched, Phase, Release, Unbind, WakeClaim, decide_reclaim, decide_volume

WORKERS: Final = 10  # upstream has one, and binds one claim after the other

_FREE: Final = "pv-free-by-class"
_BY_CLAIM: Final = "pv-by-claim"
_WAITING: Final = "pvc-waiting-by-class"
_BY_VOLUME: Final = "pvc-by-volume"
_PODS: Final = "pod-pvc"


class PersistentVolumeBinderController(Controller[PersistentVolumeClaim]):
    """Two loops: `reconcile` for claims, `sync_volume` for volumes."""

    name = "persistentvolume-binder-controller"
    kind = PersistentVolumeClaim

    def setup(self) -> None:
        """Follow volumes, classes, and pods by their claims."""
        if self.options.enable_hostpath_provisioner:
            raise ValueError("--enable-hostpath-provisioner: making volumes in folders of the host is not supported")
        self.recorder = self.context.events.recorder("persistentvolume-controller")
        self.claims: Latest[PersistentVolumeClaim] = Latest(self.own)
        self.own.add_index(_WAITING, _waiting_class)
        self.own.add_index(_BY_VOLUME, _volume_of)
        volumes = self.informer(PersistentVolume)
        volumes.add_index(_FREE, _free_class)
        volumes.add_index(_BY_CLAIM, _claim_of)
        self.volumes: Latest[PersistentVolume] = Latest(volumes)
        self.classes = self.informer(StorageClass)
        self.pods = self.informer(Pod)
        self.pods.add_index(_PODS, lambda pod: [str(key) for key in claims_of(pod)])
        self._volume_queue = self.new_queue("volumes")
        self._served: set[Key] = set()
        """Claims that wait as far as the cache knows, and for which a volume has been found or has become free."""
        self._taken: dict[str, Key] = {}
        """Volumes that a worker is about to bind, by whom: between choosing and writing others choose too."""
        volumes.add_handler(self._volume_seen, lambda _, new: self._volume_seen(new), self._volume_gone)
        self.own.add_handler(self._claim_seen, lambda _, new: self._claim_seen(new), self._claim_gone)
        self.classes.add_handler(self._class_seen, lambda _, new: self._class_seen(new))
        add_metrics(self.context.metrics, self.own, volumes)
        self._retroactive = self.context.metrics.counter(
            "retroactive_storageclass_total",
            "Total number of retroactive StorageClass assignments to persistent volume claim",
        )
        self._not_retroactive = self.context.metrics.counter(
            "retroactive_storageclass_errors_total",
            "Total number of failed retroactive StorageClass assignments to persistent volume claim",
        )

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "claims"

    async def run(self) -> None:
        """Work on claims and volumes."""
        await self.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.work(self.queue, self.reconcile, WORKERS))
            group.create_task(self.work(self._volume_queue, self.sync_volume, WORKERS))

    # -- being woken

    def _volume_seen(self, volume: PersistentVolume) -> None:
        self._volume_queue.add(key_of(volume))
        for claim in self.own.by_index(_BY_VOLUME, name_of(volume)):
            self.queue.add(key_of(claim))
        for text in _claim_of(volume):
            self.queue.add(_key(text))
        for free in _free_class(volume):
            waiting = self.own.by_index(_WAITING, free)
            suited = (each for each in waiting if key_of(each) not in self._served and best_volume(each, [volume]))
            oldest = min(suited, key=by_creation, default=None)
            if oldest is not None:
                self._served.add(key_of(oldest))
                self.queue.add(key_of(oldest))

    def _volume_gone(self, volume: PersistentVolume) -> None:
        for claim in self.own.by_index(_BY_VOLUME, name_of(volume)):
            self.queue.add(key_of(claim))

    def _claim_seen(self, claim: PersistentVolumeClaim) -> None:
        if not _waiting_class(claim):
            self._served.discard(key_of(claim))
        for volume in self.volumes.informer.by_index(_BY_CLAIM, str(key_of(claim))):
            self._volume_queue.add(key_of(volume))

    def _claim_gone(self, claim: PersistentVolumeClaim) -> None:
        self._claim_seen(claim)
        self._served.discard(key_of(claim))
        for name in _volume_of(claim):
            self._volume_queue.add(Key("", name))

    def _class_seen(self, found: StorageClass) -> None:
        for claim in (*self.own.by_index(_WAITING, name_of(found)), *self.own.by_index(_WAITING, "")):
            self.queue.add(key_of(claim))

    # -- claims

    async def reconcile(self, key: Key) -> float | None:
        """Bring a claim closer to its volume."""
        try:
            return await self._sync_claim(key)
        except Exception:
            self._served.discard(key)
            raise

    async def _sync_claim(self, key: Key) -> float | None:
        claim = self.claims.get(key)
        if claim is None:
            self._served.discard(key)
            return None
        migrated = migrated_claim(claim)
        if migrated is not None:
            claim = await self._update_claim(migrated)
        decision = decide_claim(
            claim,
            self.volumes.get(Key("", claim.spec.volume_name)) if claim.spec and claim.spec.volume_name else None,
            self._candidates(claim),
            self.classes.items(),
            lambda: self._unscheduled(key),
            self.options.enable_dynamic_provisioning,
        )
        match decision:
            case Bind():
                if _waiting_class(claim):
                    self._served.add(key)
                with self._taking(name_of(decision.volume), key):
                    await self._bind(decision.volume, claim)
                return None
            case Report():
                await self._report(claim, decision)
            case AssignClass():
                await self._assign_class(claim, decision.name)
                self._served.discard(key)
                return None
            case Provision():
                await self._provision(claim, decision)
            case Say():
                self._say(claim, decision.event)
        self._served.discard(key)
        waits = BIND_COMPLETED not in annotations_of(claim)
        return self.options.pvclaimbinder_sync_period if waits else None

    def _candidates(self, claim: PersistentVolumeClaim) -> Iterator[PersistentVolume]:
        cache = self.volumes.informer
        key = key_of(claim)
        yield from self.volumes.of(cache.by_index(_BY_CLAIM, str(key)))
        for volume in self.volumes.of(cache.by_index(_FREE, claim_class(claim))):
            if self._taken.get(name_of(volume), key) == key:
                yield volume

    @contextmanager
    def _taking(self, volume: str, key: Key) -> Iterator[None]:
        self._taken[volume] = key
        try:
            yield
        finally:
            if self._taken.get(volume) == key:
                del self._taken[volume]

    def _unscheduled(self, key: Key) -> list[str]:
        pods = self.pods.by_index(_PODS, str(key))
        return sorted(name_of(pod) for pod in pods if not is_terminal(pod) and not node_of(pod))

    async def _bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        changed = bound_volume(volume, claim)
        if changed is not None:
            volume = await self._update_volume(changed)
        volume = await self._set_phase(volume, "Bound")
        named = bound_claim(claim, volume)
        if named is not None:
            claim = await self._update_claim(named)
        await self._set_status(claim, "Bound", volume)

    async def _report(self, claim: PersistentVolumeClaim, report: Report) -> None:
        was = claim.status.phase if claim.status else None
        if report.phase == "Lost" and was == "Lost":
            return
        if report.phase == "Pending":
            self._say(claim, report.event)
        claim = await self._set_status(claim, report.phase, None)
        if report.phase != "Pending":
            self._say(claim, report.event)

    async def _assign_class(self, claim: PersistentVolumeClaim, name: str) -> None:
        try:
            await self._update_claim(claim_of_class(claim, name))
        except errors.APIError:
            self._not_retroactive.inc()
            raise
        self._retroactive.inc()

    async def _provision(self, claim: PersistentVolumeClaim, decision: Provision) -> None:
        changed = provisioned_claim(claim, decision.provisioner)
        if changed is not None:
            claim = await self._update_claim(changed)
        self._say(claim, decision.event)

    # -- volumes

    async def sync_volume(self, key: Key) -> float | None:
        """Bring a volume into the phase it is in, and reclaim it."""
        volume = self.volumes.get(key)
        if volume is None:
            return None
        migrated = migrated_volume(volume)
        if migrated is not None:
            volume = await self._update_volume(migrated)
        claim = await self._claim(volume)
        decision = decide_volume(volume, claim)
        match decision:
            case Phase():
                await self._set_phase(volume, decision.phase)
            case Release():
                await self._release(volume)
            case WakeClaim():
                assert claim is not None
                self.queue.add(key_of(claim))
            case Mismatched():
                assert claim is not None
                self._say(volume, decision.volume)
                self._say(claim, decision.claim)
            case Unbind():
                volume = await self._update_volume(unbound_volume(volume))
                await self._set_phase(volume, "Available")
        return None

    async def _claim(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """The very claim that a volume names. Before one is taken for gone, the server is asked."""
        reference = volume.spec.claim_ref if volume.spec else None
        if reference is None or not reference.uid:
            return None
        if not reference.namespace or not reference.name:
            return None  # no claim is called so
        key = Key(reference.namespace, reference.name)
        claim = self.claims.get(key)
        if claim is None and _phase(volume) in ("Released", "Failed"):
            return None
        if claim is None or uid_of(claim) != reference.uid:
            try:
                claim = await self.client.get(PersistentVolumeClaim, key.name, key.namespace)
            except errors.NotFound:
                return None
        return claim if uid_of(claim) == reference.uid else None

    async def _release(self, volume: PersistentVolume) -> None:
        if _phase(volume) not in ("Released", "Failed"):
            volume = await self._set_phase(volume, "Released")
        problem = decide_reclaim(volume)
        if problem is not None and _phase(volume) != "Failed":
            volume = await self._set_phase(volume, "Failed", problem.message)
            self._say(volume, problem)

    # -- writing

    async def _update_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        return self.claims.wrote(await self.client.update(claim))

    async def _update_volume(self, volume: PersistentVolume) -> PersistentVolume:
        return self.volumes.wrote(await self.client.update(volume))

    async def _set_status(
        self, claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None
    ) -> PersistentVolumeClaim:
        status = claim_status(claim, phase, volume)
        if status is None:
            return claim
        changed = copy(claim)
        changed.status = status
        return self.claims.wrote(await self.client.update_status(changed))

    async def _set_phase(self, volume: PersistentVolume, phase: str, message: str = "") -> PersistentVolume:
        if _phase(volume) == phase:
            return volume
        changed = copy(volume)
        changed.status = changed.status or PersistentVolumeStatus()
        changed.status.phase = phase
        changed.status.message = message or None
        return self.volumes.wrote(await self.client.update_status(changed))

    def _say(self, obj: PersistentVolume | PersistentVolumeClaim, event: UserEvent | None) -> None:
        if event is not None:
            self.recorder.event(obj, event.type, event.reason, event.message)


def _phase(volume: PersistentVolume) -> str:
    return (volume.status.phase if volume.status else None) or ""


def _volume_of(claim: PersistentVolumeClaim) -> list[str]:
    """The volume that a claim names."""
    name = claim.spec.volume_name if claim.spec else None
    return [name] if name else []


def _waiting_class(claim: PersistentVolumeClaim) -> list[str]:
    """The class of a claim that would take any volume."""
    if _volume_of(claim) or BIND_COMPLETED in annotations_of(claim):
        return []
    return [claim_class(claim)]


def _free_class(volume: PersistentVolume) -> list[str]:
    """The class of an unreserved volume."""
    taken = volume.spec is None or volume.spec.claim_ref is not None
    return [] if taken or is_deleting(volume) or _phase(volume) != "Available" else [volume_class(volume)]


def _claim_of(volume: PersistentVolume) -> list[str]:
    """The claim that a volume is for."""
    reference = volume.spec.claim_ref if volume.spec else None
    return [] if reference is None else [str(Key(reference.namespace or "", reference.name or ""))]


def _key(text: str) -> Key:
    namespace, _, name = text.rpartition("/")
    return Key(namespace, name)
