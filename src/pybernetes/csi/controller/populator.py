"""Fills the volumes of claims whose `dataSourceRef` is of a kind of its own: upstream's lib-volume-populator.

Woken by: claims with such a source, the claims and pods that it makes, classes. Writes: beside each claim another one,
`prime-<uid>`, of the same size and class, and a pod that fills its volume; when the pod has succeeded, the volume goes
over to the first claim, and claim and pod are removed. A finalizer on the claim keeps what was made from being lost.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pybernetes.api import errors
from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, Pod
from pybernetes.api.core.volumebinding import SELECTED_NODE, annotations_of, claim_class
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.storage.v1 import StorageClass
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.codec import decode
from pybernetes.client.events import NORMAL, WARNING, EventBroadcaster
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key, key_of, uid_of

from .loop import Loop

FINALIZER: Final = "populate-target-protection"
POPULATED_FROM: Final = "populated-from"
CLAIM: Final = "claim"
"""A label of what is made for a claim: its uid."""
VOLUME: Final = "target"
"""The pod's name for the volume that it fills."""
MOUNT: Final = "/mnt"
DEVICE: Final = "/dev/block"
SOURCE_RETRY: Final = 5.0
"""Seconds until a source that is missing is looked for again."""


@dataclass(frozen=True)
class Sources:
    """The kind of sources that a populator knows, and how a volume is filled from one."""

    group: str
    version: str
    kind: str
    plural: str
    pod: dict[str, Any]
    """The spec of the pod. Its containers get the volume at `/mnt` (`/dev/block` if it is a device) unless they mount
    `target` themselves, and the source's `spec` as JSON in $SOURCE."""
    namespace: str = "default"
    """Where the pods and their claims are."""

    def path(self, namespace: str, name: str) -> str:
        """Where a source is in the API."""
        return f"/apis/{self.group}/{self.version}/namespaces/{namespace}/{self.plural}/{name}"


class Populator:
    """Volumes from sources of one kind."""

    def __init__(
        self, sources: Sources, client: Client, informers: InformerFactory, events: EventBroadcaster, clock: Clock
    ) -> None:
        self._sources, self._client = sources, client
        self._recorder = events.recorder(f"{sources.plural}.{sources.group} populator")
        self.claims = informers.informer(PersistentVolumeClaim)
        self.pods = informers.informer(Pod, namespace=sources.namespace, label_selector=self._prefixed(CLAIM))
        self.classes = informers.informer(StorageClass)
        self._loop = Loop("populator", clock, self.populate)
        self.claims.add_handler(self._claim_seen, lambda _, new: self._claim_seen(new))
        self.pods.add_handler(self._pod_seen, lambda _, new: self._pod_seen(new), self._pod_seen)
        self.classes.add_handler(lambda _: self._all())

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run(self.claims, self.pods, self.classes)

    def _prefixed(self, name: str) -> str:
        return f"{self._sources.group}/{name}"

    # -- being woken

    def _claim_seen(self, claim: PersistentVolumeClaim) -> None:
        if self._is_ours(claim):
            self._loop.queue.add(key_of(claim))
        elif made_for := _labels(claim.metadata).get(self._prefixed(CLAIM)):
            self._wake(made_for)

    def _pod_seen(self, pod: Pod) -> None:
        self._wake(_labels(pod.metadata).get(self._prefixed(CLAIM), ""))

    def _wake(self, uid: str) -> None:
        for claim in self.claims.items():
            if uid_of(claim) == uid:
                self._loop.queue.add(key_of(claim))

    def _all(self) -> None:
        for claim in self.claims.items():
            self._claim_seen(claim)

    def _is_ours(self, claim: PersistentVolumeClaim) -> bool:
        source = claim.spec.data_source_ref if claim.spec else None
        return source is not None and (source.api_group, source.kind) == (self._sources.group, self._sources.kind)

    # -- working

    async def populate(self, key: Key) -> float | None:
        """Bring a claim one step closer to its volume."""
        claim = self.claims.get(key)
        if claim is None or claim.spec is None or claim.metadata is None or not self._is_ours(claim):
            return None
        if claim.metadata.deletion_timestamp or claim.spec.volume_name:
            await self._finish(claim, filled=not claim.metadata.deletion_timestamp)
            return None
        source = claim.spec.data_source_ref
        assert source is not None
        if source.namespace not in (None, "", key.namespace):
            self._warn(claim, f"dataSourceRef.namespace {source.namespace}: sources of other namespaces are not used")
            return None
        try:
            found = await self._client.call("GET", self._sources.path(key.namespace, source.name or ""))
        except errors.NotFound:
            self._warn(claim, f"dataSourceRef: {self._sources.kind} {key.namespace}/{source.name} not found")
            return SOURCE_RETRY
        if not self._may_begin(claim):
            return None
        await self._keep(claim)
        prime = await self._prime(claim)
        pod = await self._pod(claim, found)
        phase = (pod.status.phase if pod.status else None) or ""
        if phase == "Failed":
            self._warn(claim, f"populator pod {key_of(pod)} failed; it is made again")
            await self._delete(Pod, key_of(pod).name)
            raise errors.ServiceUnavailable(f"pod {key_of(pod)} failed")
        if phase == "Succeeded" and prime.spec is not None and prime.spec.volume_name:
            await self._hand_over(claim, prime, prime.spec.volume_name)
        return None

    def _may_begin(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim's class exists and, if it waits for a consumer, a node is selected."""
        found = self.classes.named(claim_class(claim))
        if found is None:
            return False
        return found.volume_binding_mode != "WaitForFirstConsumer" or SELECTED_NODE in annotations_of(claim)

    async def _keep(self, claim: PersistentVolumeClaim) -> None:
        metadata = claim.metadata or ObjectMeta()
        finalizers, ours = list(metadata.finalizers or ()), self._prefixed(FINALIZER)
        if ours not in finalizers:
            patch = {"finalizers": [*finalizers, ours], "resourceVersion": metadata.resource_version}
            key = key_of(claim)
            await self._client.patch(PersistentVolumeClaim, key.name, {"metadata": patch}, key.namespace)

    async def _prime(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        name, namespace = f"prime-{uid_of(claim)}", self._sources.namespace
        try:
            return await self._client.get(PersistentVolumeClaim, name, namespace)
        except errors.NotFound:
            pass
        spec = claim.spec or PersistentVolumeClaimSpec()
        node = annotations_of(claim).get(SELECTED_NODE)
        made = PersistentVolumeClaim(
            api_version="v1",
            kind="PersistentVolumeClaim",
            metadata=ObjectMeta(
                name=name,
                namespace=namespace,
                labels={self._prefixed(CLAIM): uid_of(claim)},
                annotations={SELECTED_NODE: node} if node else None,
            ),
            spec=PersistentVolumeClaimSpec(
                access_modes=spec.access_modes,
                resources=spec.resources,
                storage_class_name=spec.storage_class_name,
                volume_mode=spec.volume_mode,
                volume_attributes_class_name=spec.volume_attributes_class_name,
            ),
        )
        return await self._client.create(made)

    async def _pod(self, claim: PersistentVolumeClaim, source: dict[str, Any]) -> Pod:
        name, namespace = f"populate-{uid_of(claim)}", self._sources.namespace
        try:
            return await self._client.get(Pod, name, namespace)
        except errors.NotFound:
            pass
        block = claim.spec is not None and claim.spec.volume_mode == "Block"
        made = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {self._prefixed(CLAIM): uid_of(claim)}},
            "spec": pod_spec(self._sources.pod, source, f"prime-{uid_of(claim)}", block=block),
        }
        self._recorder.event(claim, NORMAL, "PopulatorCreated", f"Populator started: pod {namespace}/{name}")
        return await self._client.create(decode(Pod, msgspec.json.encode(made)))

    async def _hand_over(self, claim: PersistentVolumeClaim, prime: PersistentVolumeClaim, name: str) -> None:
        """Give the filled volume to the claim; the binder does the rest."""
        volume = await self._client.get(PersistentVolume, name)
        reference = volume.spec.claim_ref if volume.spec else None
        if reference is None or reference.uid != uid_of(prime):
            return
        metadata, source = claim.metadata or ObjectMeta(), claim.spec.data_source_ref if claim.spec else None
        taken = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        }
        annotations = {self._prefixed(POPULATED_FROM): f"{metadata.namespace}/{source.name if source else ''}"}
        own = {
            "annotations": annotations,
            "resourceVersion": volume.metadata.resource_version if volume.metadata else "",
        }
        await self._client.patch(PersistentVolume, name, {"metadata": own, "spec": {"claimRef": taken}})

    async def _finish(self, claim: PersistentVolumeClaim, *, filled: bool) -> None:
        """Remove what was made for a claim that has its volume, or is deleted."""
        metadata = claim.metadata or ObjectMeta()
        ours = self._prefixed(FINALIZER)
        if ours not in (metadata.finalizers or ()):
            return
        await self._delete(Pod, f"populate-{metadata.uid}")
        await self._delete(PersistentVolumeClaim, f"prime-{metadata.uid}")
        left = [each for each in metadata.finalizers or () if each != ours]
        patch = {"finalizers": left or None, "resourceVersion": metadata.resource_version}
        key = key_of(claim)
        await self._client.patch(PersistentVolumeClaim, key.name, {"metadata": patch}, key.namespace)
        if filled:
            self._recorder.event(claim, NORMAL, "PopulatorFinished", "Populator finished")

    async def _delete(self, kind: type[Pod] | type[PersistentVolumeClaim], name: str) -> None:
        try:
            await self._client.delete(kind, name, self._sources.namespace)
        except errors.NotFound:
            pass

    def _warn(self, claim: PersistentVolumeClaim, message: str) -> None:
        self._recorder.event(claim, WARNING, "PopulatorFailed", message)


def pod_spec(template: dict[str, Any], source: dict[str, Any], claim: str, *, block: bool) -> dict[str, Any]:
    """The spec of the pod that fills a claim's volume. Pure."""
    spec = deepcopy(template)
    spec.setdefault("restartPolicy", "Never")
    spec["volumes"] = [
        *(spec.get("volumes") or []),
        {"name": VOLUME, "persistentVolumeClaim": {"claimName": claim}},
    ]
    part, at = ("volumeDevices", {"devicePath": DEVICE}) if block else ("volumeMounts", {"mountPath": MOUNT})
    for container in spec.get("containers") or []:
        mounts = container.setdefault(part, [])
        if all(each.get("name") != VOLUME for each in mounts):
            mounts.append({"name": VOLUME, **at})
        environment = container.setdefault("env", [])
        environment.append({"name": "SOURCE", "value": json.dumps(source.get("spec") or {}, sort_keys=True)})
    return spec


def _labels(metadata: ObjectMeta | None) -> dict[str, str]:
    return (metadata.labels if metadata else None) or {}
