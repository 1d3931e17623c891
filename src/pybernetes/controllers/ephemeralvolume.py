"""Makes the claims that pods ask for with generic ephemeral volumes.

Woken by: new pods with such volumes, claims of such pods that are deleted. Writes: claims, owned by their pod, so that
the garbage collector deletes them with it. A claim of that name that is not the pod's is never used, and said to be in
the way.
"""

from __future__ import annotations

from pybernetes.api import errors
from pybernetes.api.core.v1 import PersistentVolumeClaim, PersistentVolumeClaimTemplate, Pod, Volume
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.events import WARNING
from pybernetes.client.keys import Key, controller_reference, copy, is_controlled_by, key_of

from .base import Controller
from .common.meta import is_deleting, meta, name_of
from .pvcprotection import claims_of

_BY_CLAIM = "pod-pvc"
RETRY = 60.0
"""Seconds until a pod is looked at again whose claim's name is taken. The claim's deletion wakes it before."""


def claim_for(pod: Pod, volume: Volume) -> PersistentVolumeClaim:
    """The claim of a pod's ephemeral volume."""
    assert volume.ephemeral is not None
    template = volume.ephemeral.volume_claim_template or PersistentVolumeClaimTemplate()
    said = template.metadata or ObjectMeta()
    metadata = ObjectMeta(
        name=f"{name_of(pod)}-{volume.name}",
        namespace=meta(pod).namespace,
        annotations=said.annotations,
        labels=said.labels,
        owner_references=[controller_reference(pod)],
    )
    return PersistentVolumeClaim(metadata=metadata, spec=copy(template.spec) if template.spec else None)


def ephemeral_volumes(pod: Pod) -> list[Volume]:
    """The volumes for which claims are made."""
    volumes = (pod.spec.volumes if pod.spec else None) or ()
    return [volume for volume in volumes if volume.ephemeral is not None]


class EphemeralVolumeController(Controller[Pod]):
    """Claims for pods."""

    name = "ephemeral-volume-controller"
    kind = Pod

    def setup(self) -> None:
        """Follow claims that are deleted."""
        self.workers = self.options.concurrent_ephemeralvolume_syncs
        self.recorder = self.context.events.recorder("ephemeral_volume")
        self.own.add_index(_BY_CLAIM, lambda pod: [str(key) for key in claims_of(pod)])
        self.claims = self.informer(PersistentVolumeClaim)
        self.claims.add_handler(on_delete=self._claim_gone)
        text = "Number of PersistentVolumeClaim creation requests"
        metrics = self.context.metrics
        self._attempts = metrics.counter("ephemeral_volume_controller_create_total", text)
        self._failures = metrics.counter("ephemeral_volume_controller_create_failures_total", text)

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "ephemeral_volume"

    def concerns(self, old: Pod | None, new: Pod | None) -> bool:
        """New pods: what they ask for does not change."""
        return new is not None and (old is None or meta(old).uid != meta(new).uid) and _needs_claims(new)

    def _claim_gone(self, claim: PersistentVolumeClaim) -> None:
        for pod in self.own.by_index(_BY_CLAIM, str(key_of(claim))):
            if _needs_claims(pod):
                self.queue.add(key_of(pod))

    async def reconcile(self, key: Key) -> float | None:
        """Make the claims that are missing."""
        pod = self.own.get(key)
        if pod is None or is_deleting(pod):
            return None
        for volume in ephemeral_volumes(pod):
            wanted = claim_for(pod, volume)
            present = self.claims.get(key_of(wanted))
            if present is None:
                await self._create(pod, volume, wanted)
            elif not is_controlled_by(present, pod):
                problem = f"PVC {key_of(wanted)} was not created for pod {key} (pod is not owner)"
                self._say(pod, volume, problem)
                return RETRY
        return None

    async def _create(self, pod: Pod, volume: Volume, wanted: PersistentVolumeClaim) -> None:
        self._attempts.inc()
        try:
            await self.client.create(wanted)
        except errors.APIError as error:
            self._failures.inc()
            self._say(pod, volume, f"create PVC {name_of(wanted)}: {error}")
            raise

    def _say(self, pod: Pod, volume: Volume, problem: str) -> None:
        self.recorder.event(pod, WARNING, "FailedBinding", f"ephemeral volume {volume.name}: {problem}")


def _needs_claims(pod: Pod) -> bool:
    return not is_deleting(pod) and bool(ephemeral_volumes(pod))
