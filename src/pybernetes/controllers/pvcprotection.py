"""Keeps PersistentVolumeClaims that pods use from being deleted.

Woken by: claims, and pods that end, go, or are not yet on a node. Writes: the claims' finalizer
`kubernetes.io/pvc-protection`. Before it is taken off, the server is asked for pods that the cache may not show yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pybernetes.api.core.v1 import PersistentVolumeClaim, Pod
from pybernetes.client.keys import Key, is_controlled_by, uid_of

from .base import Controller
from .common.meta import is_deleting, meta, name_of
from .common.pods import is_terminal, node_of
from .common.protection import add_finalizer, is_deletion_candidate, needs_finalizer, remove_finalizer

FINALIZER: Final = "kubernetes.io/pvc-protection"
_BY_CLAIM: Final = "pod-pvc"


class PersistentVolumeClaimProtectionController(Controller[PersistentVolumeClaim]):
    """Protects claims."""

    name = "persistentvolumeclaim-protection-controller"
    kind = PersistentVolumeClaim

    def setup(self) -> None:
        """Follow pods, by the claims they name."""
        self.pods = self.informer(Pod)
        self.pods.add_index(_BY_CLAIM, lambda pod: [str(key) for key in claims_of(pod)])
        self.pods.add_handler(self._pod_seen, self._pod_updated, self._pod_gone)

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "pvcprotection"

    def concerns(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:
        """Those to protect, or to let go."""
        return new is not None and (needs_finalizer(new, FINALIZER) or is_deletion_candidate(new, FINALIZER))

    async def reconcile(self, key: Key) -> float | None:
        """Put the finalizer on, or take it off."""
        claim = self.own.get(key)
        if claim is None:
            return None
        if is_deletion_candidate(claim, FINALIZER):
            if not await self._is_used(key, claim):
                await remove_finalizer(self.client, claim, FINALIZER)
        elif needs_finalizer(claim, FINALIZER):
            await add_finalizer(self.client, claim, FINALIZER)
        return None

    async def _is_used(self, key: Key, claim: PersistentVolumeClaim) -> bool:
        if any(uses(pod, claim) for pod in self.pods.by_index(_BY_CLAIM, str(key))):
            return True
        live = await self.client.list(Pod, key.namespace)
        return any(uses(pod, claim) for pod in live.items or ())

    def _pod_seen(self, pod: Pod) -> None:
        if is_terminal(pod) or not node_of(pod):
            self._pod_gone(pod)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        self._pod_seen(new)
        if uid_of(old) != uid_of(new):
            self._pod_gone(old)

    def _pod_gone(self, pod: Pod) -> None:
        for key in claims_of(pod):
            self.queue.add(key)


def claims_of(pod: Pod) -> Iterable[Key]:
    """The claims that a pod names, or that are made for it."""
    namespace = meta(pod).namespace or ""
    for volume in (pod.spec.volumes if pod.spec else None) or ():
        if volume.persistent_volume_claim is not None:
            yield Key(namespace, volume.persistent_volume_claim.claim_name or "")
        elif volume.ephemeral is not None:
            yield Key(namespace, f"{name_of(pod)}-{volume.name}")


def uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod on a node may have the claim's volume mounted."""
    if not node_of(pod):
        return False
    shut_down = is_deleting(pod) and meta(pod).deletion_grace_period_seconds == 0
    for volume in (pod.spec.volumes if pod.spec else None) or ():
        if volume.persistent_volume_claim is not None:
            if volume.persistent_volume_claim.claim_name == name_of(claim):
                return True
        elif (
            volume.ephemeral is not None
            and not shut_down
            and f"{name_of(pod)}-{volume.name}" == name_of(claim)
            and is_controlled_by(claim, pod)
        ):
            return True
    return False
