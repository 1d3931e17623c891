"""Makes volumes for claims and deletes those that are released: upstream's external-provisioner.

Woken by: claims that name this driver as their provisioner, their classes, released PersistentVolumes. Writes:
PersistentVolumes, the claim's selected node when there is no room on it. The volume's name comes from the claim's uid,
so that whatever a crash cuts off is found again by the next try.
"""

from __future__ import annotations

import asyncio
import logging
from hashlib import sha256
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import (
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    SecretReference,
)
from pybernetes.api.core.volumebinding import SELECTED_NODE, annotations_of, claim_class
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.storage.v1 import CSINode, StorageClass, VolumeAttributesClass
from pybernetes.client.events import NORMAL, WARNING
from pybernetes.client.keys import Key, key_of, uid_of
from pybernetes.csi import v1

from ..errors import CSIError
from . import requests, topology
from .loop import Context, Loop
from .sources import Content, ContentSources, ForPopulator, SourceError

STORAGE_PROVISIONER: Final = (
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)
MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"
CREATE_SECONDS: Final = 120.0
NOT_YET: Final = 1.0
"""Seconds until a node whose driver has not registered yet is looked at again."""
log = logging.getLogger(__name__)


class Provisioner:
    """Claims to volumes, and released volumes to nothing."""

    def __init__(self, context: Context, *, extra_metadata: bool = False) -> None:
        """`extra_metadata`: the driver gets the names of claim and volume as parameters."""
        self._context, self._extra_metadata = context, extra_metadata
        self._recorder = context.events.recorder(f"{context.name}_{context.node or 'provisioner'}")
        informers = context.informers
        self.claims = informers.informer(PersistentVolumeClaim)
        self.volumes = informers.informer(PersistentVolume)
        self.classes = informers.informer(StorageClass)
        self.nodes = informers.informer(Node)
        self.csi_nodes = informers.informer(CSINode)
        self._sources = ContentSources(context)
        self._claim_loop = Loop("claims", context.clock, self.provision)
        self._volume_loop = Loop("volumes", context.clock, self.delete)
        self._controller: set[int] = set()
        self._plugin: set[int] = set()
        self._begun: dict[Key, PersistentVolumeClaim] = {}
        """Claims whose volumes the driver may have made although the call has failed."""
        self.claims.add_handler(self._claim_seen, lambda _, new: self._claim_seen(new))
        self.volumes.add_handler(self._volume_seen, lambda _, new: self._volume_seen(new))
        self.classes.add_handler(lambda _: self._all_claims(), lambda _, __: self._all_claims())

    async def run(self) -> None:
        """Work until cancelled."""
        self._controller = await self._context.driver.controller_capabilities()
        self._plugin = await self._context.driver.plugin_capabilities()
        if v1.ControllerRPC.CREATE_DELETE_VOLUME not in self._controller:
            raise ValueError(f"driver {self._context.name} does not make volumes (no CREATE_DELETE_VOLUME)")
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claim_loop.run(self.claims, self.classes, self.nodes, self.csi_nodes))
            group.create_task(self._volume_loop.run(self.volumes))

    # -- being woken

    def _claim_seen(self, claim: PersistentVolumeClaim) -> None:
        if self._is_ours(claim):
            self._claim_loop.queue.add(key_of(claim))

    def _all_claims(self) -> None:
        for claim in self.claims.items():
            self._claim_seen(claim)

    def _volume_seen(self, volume: PersistentVolume) -> None:
        if annotations_of(volume).get(requests.PROVISIONED_BY) == self._context.name:
            self._volume_loop.queue.add(key_of(volume))

    def _is_ours(self, claim: PersistentVolumeClaim) -> bool:
        """Whether a claim waits for this driver, on this node."""
        annotations = annotations_of(claim)
        spec, metadata = claim.spec or PersistentVolumeClaimSpec(), claim.metadata
        named = annotations.get(MIGRATED_TO) or next(
            (annotations[each] for each in STORAGE_PROVISIONER if each in annotations), ""
        )
        if named != self._context.name or spec.volume_name or (metadata and metadata.deletion_timestamp):
            return False
        return not self._context.node or annotations.get(SELECTED_NODE) in (None, self._context.node)

    # -- making

    async def provision(self, key: Key) -> float | None:
        """Make the volume of a claim."""
        live, begun = self.claims.get(key), self._begun.get(key)
        if live is not None and self._is_ours(live) and (begun is None or uid_of(live) == uid_of(begun)):
            claim = live
        elif begun is not None:
            claim = begun  # what the driver may have made has to be known before it can be deleted
        else:
            return None
        found = self.classes.named(claim_class(claim))
        name = self._context.name
        if found is None or found.provisioner != name:
            return None  # the binder says so to the user
        selected = annotations_of(claim).get(SELECTED_NODE, "")
        if not selected and found.volume_binding_mode == "WaitForFirstConsumer":
            return None
        if not selected and self._context.node:
            return await self._choose_node(claim)
        if self.volumes.named(requests.volume_name(claim)) is not None:
            return None
        try:
            multi = v1.ControllerRPC.SINGLE_NODE_MULTI_WRITER in self._controller
            request = requests.request_for(claim, found, single_node_multi_writer=multi)
            where = self._where(found, selected)
            content = await self._sources.of(claim, self._controller)
        except (ValueError, SourceError) as error:
            self._failed(claim, found, str(error))
            return getattr(error, "retry_after", None)
        except ForPopulator as error:
            message = f"Assuming an external populator will provision the volume ({error})"
            self._recorder.event(claim, NORMAL, "Provisioning", message)
            return None
        except _NotYet as error:
            log.info("%s: %s", key, error)
            return NOT_YET
        if content is not None and (elsewhere := self._elsewhere(content)):
            message = f"The data source is on node {elsewhere}: the volume is made there"
            self._recorder.event(claim, NORMAL, "Provisioning", message)
            await self._select(claim, elsewhere)  # the scheduler brings the pod there
            return None
        source = content.source if content is not None else None
        message = f'External provisioner is provisioning volume for claim "{key}"'
        self._recorder.event(claim, NORMAL, "Provisioning", message)
        try:
            response = await self._context.driver.call(
                "CreateVolume",
                within=CREATE_SECONDS,
                name=request.name,
                capacity_range=v1.CapacityRange(required_bytes=request.size),
                volume_capabilities=request.capabilities,
                parameters=request.parameters | (requests.claim_metadata(claim) if self._extra_metadata else {}),
                secrets=await self._context.secret(request.secrets.get("provisioner")),
                volume_content_source=source,
                accessibility_requirements=where,
                mutable_parameters=await self._mutable_parameters(claim),
            )
        except CSIError as error:
            self._failed(claim, found, str(error))
            if error.final:
                self._begun.pop(key, None)
            else:
                self._begun[key] = claim
            if error.code == "ResourceExhausted" and selected:
                await self._reschedule(key)
                return None
            raise
        except (errors.APIError, ValueError) as error:
            self._failed(claim, found, str(error))
            raise
        await self._take(key, claim, found, request, response.volume, source)
        self._begun.pop(key, None)
        return None if claim is live else 0.0  # another claim of this name may wait for its turn

    async def _choose_node(self, claim: PersistentVolumeClaim) -> float | None:
        """Choose a node for a claim that no scheduler chooses one for: all processes of the driver choose the same."""
        candidates = [
            name
            for each in self.nodes.items()
            if _takes_pods(each)
            and topology.keys_of(self.csi_nodes.named(name := key_of(each).name), self._context.name) is not None
        ]
        chosen = min(candidates, key=lambda name: sha256(f"{uid_of(claim)}/{name}".encode()).digest(), default="")
        if chosen != self._context.node:
            return NOT_YET  # it may go before it has chosen
        await self._select(claim, chosen)
        return None

    async def _select(self, claim: PersistentVolumeClaim, node: str) -> None:
        metadata, key = claim.metadata, key_of(claim)
        change = {
            "annotations": {SELECTED_NODE: node},
            "resourceVersion": metadata.resource_version if metadata else "",
        }
        await self._context.client.patch(PersistentVolumeClaim, key.name, {"metadata": change}, key.namespace)

    def _elsewhere(self, content: Content) -> str:
        """The node that alone has the content, if that is another one than this process's."""
        if not self._context.node:
            return ""
        nodes = {key_of(each).name: each for each in self.nodes.items()}
        spec = content.volume.spec if content.volume else None
        found = content.node
        if spec is not None and not _is_on(spec, nodes.get(self._context.node)):
            found = next((name for name, each in nodes.items() if _is_on(spec, each)), "")
        return found if found in nodes and found != self._context.node else ""

    async def _take(
        self,
        key: Key,
        claim: PersistentVolumeClaim,
        found: StorageClass,
        request: requests.Request,
        volume: Any,
        source: Any,
    ) -> None:
        """Make the PersistentVolume for what the driver says that it has made; what it should not have is deleted."""
        problem = ""
        if not volume.volume_id:
            problem = "CreateVolume: the driver's answer has no volume_id"
        elif volume.capacity_bytes and volume.capacity_bytes < request.size:
            problem = f"created volume capacity {volume.capacity_bytes} less than requested capacity {request.size}"
        elif source is not None and not volume.HasField("content_source"):
            problem = "the driver has ignored the source of the volume"
        if problem:
            if volume.volume_id:
                secrets = await self._context.secret(request.secrets.get("provisioner"))
                await self._context.driver.call("DeleteVolume", volume_id=volume.volume_id, secrets=secrets)
            self._failed(claim, found, problem)
            raise CSIError("OutOfRange", problem)
        modes = list((claim.spec.access_modes if claim.spec else None) or ())
        read_only = modes == ["ReadOnlyMany"] and source is not None
        made = requests.persistent_volume(claim, found, request, volume, self._context.name, read_only=read_only)
        try:
            await self._context.client.create(made)
        except errors.AlreadyExists:
            return
        self._recorder.event(claim, NORMAL, "ProvisioningSucceeded", f"Successfully provisioned volume {request.name}")

    def _where(self, found: StorageClass, selected: str) -> Any:
        if v1.PluginService.VOLUME_ACCESSIBILITY_CONSTRAINTS not in self._plugin:
            return None
        name = self._context.name
        chosen: dict[str, str] | None = None
        if selected:
            node = self.nodes.named(selected)
            keys = topology.keys_of(self.csi_nodes.named(selected), name)
            if node is None:
                raise ValueError(f"error getting selected node {quote(selected)}: not found")
            if keys is None:
                raise _NotYet(f"driver {name} has not registered on node {selected} yet")
            chosen = topology.segments(node, keys)
            if chosen is None:
                raise _NotYet(f"node {selected} does not have the labels of driver {name} yet")
        everywhere = []
        for each in self.nodes.items():
            keys = topology.keys_of(self.csi_nodes.named(key_of(each).name), name)
            if keys and (there := topology.segments(each, keys)):
                everywhere.append(there)
        return topology.requirement(chosen, everywhere, topology.allowed(found), strict=bool(self._context.node))

    async def _mutable_parameters(self, claim: PersistentVolumeClaim) -> dict[str, str] | None:
        name = (claim.spec.volume_attributes_class_name if claim.spec else None) or ""
        if not name:
            return None
        if v1.ControllerRPC.MODIFY_VOLUME not in self._controller:
            raise ValueError(f"VolumeAttributesClass {name}: driver {self._context.name} cannot modify volumes")
        found = await self._context.client.get(VolumeAttributesClass, name)
        if found.driver_name != self._context.name:
            raise ValueError(f"VolumeAttributesClass {name} is of driver {found.driver_name}, not {self._context.name}")
        return dict(found.parameters or {})

    async def _reschedule(self, key: Key) -> None:
        """There is no room on the selected node: let the scheduler choose again."""
        patch = {"metadata": {"annotations": {SELECTED_NODE: None}}}
        await self._context.client.patch(PersistentVolumeClaim, key.name, patch, key.namespace)

    def _failed(self, claim: PersistentVolumeClaim, found: StorageClass, problem: str) -> None:
        name = (found.metadata.name if found.metadata else None) or ""
        message = f"failed to provision volume with StorageClass {quote(name)}: {problem}"
        self._recorder.event(claim, WARNING, "ProvisioningFailed", message)

    # -- deleting

    def _ours(self, volume: PersistentVolume) -> bool:
        spec = volume.spec or PersistentVolumeSpec()
        if annotations_of(volume).get(requests.PROVISIONED_BY) != self._context.name:
            return False
        if spec.csi is None or spec.csi.driver != self._context.name:  # every client can write the annotation
            return False
        return not self._context.node or self._is_here(spec)

    def _is_here(self, spec: PersistentVolumeSpec) -> bool:
        """Whether a volume is on this node alone."""
        return _is_on(spec, self.nodes.named(self._context.node))

    def _to_delete(self, volume: PersistentVolume) -> bool:
        spec, status = volume.spec or PersistentVolumeSpec(), volume.status
        released = status is not None and status.phase == "Released"
        return released and spec.persistent_volume_reclaim_policy == "Delete" and self._ours(volume)

    def _to_let_go(self, volume: PersistentVolume) -> bool:
        """Whether only our finalizer keeps a volume whose data is to stay."""
        metadata, spec = volume.metadata, volume.spec or PersistentVolumeSpec()
        kept = metadata is not None and requests.PV_FINALIZER in (metadata.finalizers or ())
        return kept and spec.persistent_volume_reclaim_policy != "Delete" and self._ours(volume)

    async def delete(self, key: Key) -> float | None:
        """Delete what is behind a released volume, then the volume."""
        await self.nodes.wait_synced()
        volume = self.volumes.get(key)
        if volume is None:
            return None
        if self._to_let_go(volume):
            await self._drop_finalizer(volume)
            return None
        if not self._to_delete(volume):
            return None
        csi = volume.spec.csi if volume.spec else None
        assert csi is not None
        annotations = annotations_of(volume)
        reference = None
        if name := annotations.get(f"{requests.DELETION_SECRET}name"):
            reference = SecretReference(
                name=name, namespace=annotations.get(f"{requests.DELETION_SECRET}namespace", "")
            )
        try:
            secrets = await self._context.secret(reference)
            await self._context.driver.call("DeleteVolume", volume_id=csi.volume_handle, secrets=secrets)
        except (CSIError, errors.APIError) as error:
            self._recorder.event(volume, WARNING, "VolumeFailedDelete", str(error))
            raise
        metadata = volume.metadata
        if metadata is not None and not metadata.deletion_timestamp:
            try:
                await self._context.client.delete(PersistentVolume, key.name)
            except errors.NotFound:
                return None
        await self._drop_finalizer(volume)
        return None

    async def _drop_finalizer(self, volume: PersistentVolume) -> None:
        name = key_of(volume).name
        try:
            live = await self._context.client.get(PersistentVolume, name)
        except errors.NotFound:
            return
        assert live.metadata is not None
        left = [each for each in live.metadata.finalizers or () if each != requests.PV_FINALIZER]
        if len(left) != len(live.metadata.finalizers or ()):
            patch = {"metadata": {"finalizers": left or None, "resourceVersion": live.metadata.resource_version}}
            await self._context.client.patch(PersistentVolume, name, patch)


def _is_on(spec: PersistentVolumeSpec, node: Node | None) -> bool:
    """Whether a volume is on a node; its affinity names the node's label."""
    labels = (node.metadata.labels if node and node.metadata else None) or {}
    required = spec.node_affinity.required if spec.node_affinity else None
    wanted = [term.match_expressions or () for term in (required.node_selector_terms if required else None) or ()]
    return any(all(labels.get(each.key or "") in (each.values or ()) for each in term) for term in wanted)


def _takes_pods(node: Node) -> bool:
    conditions = (node.status.conditions if node.status else None) or ()
    ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
    return ready and not (node.spec is not None and node.spec.unschedulable)


class _NotYet(Exception):
    """Something that comes by itself is not there yet."""
