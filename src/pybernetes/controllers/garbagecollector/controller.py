"""Deletes objects whose owners are all gone, and takes part in foreground and orphaning deletions.

Woken by: every change of every resource that can be listed, watched and deleted, known or custom, through caches of
metadata (or of whole objects, where others have them). Writes: deletes; owner references and finalizers of others'
objects.

`graph.py` knows who owns whom and whom to look at; what is decided here is decided on what the server says at that
moment, never on the graph alone: an owner is gone if the server says so, and a deletion names the revision that was
judged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from pybernetes.api import errors
from pybernetes.api.core.v1 import ObjectReference
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference, PartialObjectMetadata
from pybernetes.api.resources import Resource
from pybernetes.client.client import PropagationPolicy
from pybernetes.client.discovery import discover
from pybernetes.client.event_handlers import Handler
from pybernetes.client.informer import Informer
from pybernetes.client.metadata import MetadataClient
from pybernetes.client.retry import retry_on_conflict
from pybernetes.client.workqueue import WorkQueue

from ..base import Controller
from ..common.meta import meta
from .graph import (
    FOREGROUND_FINALIZER,
    ORPHAN_FINALIZER,
    Actions,
    Graph,
    Identity,
    Node,
    identity_of,
    is_deleting_dependents,
)

IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
SYNC_PERIOD: Final = 30.0
"""Seconds between two looks at what the server serves."""
INITIAL_SYNC_TIMEOUT: Final = 60.0
"""Seconds after which garbage is collected with what is known."""
_SETTLE: Final = 1.0
"""Seconds from a change of a definition until the server serves it."""
_DEFINITIONS: Final = frozenset(
    {("apiextensions.k8s.io", "customresourcedefinitions"), ("apiregistration.k8s.io", "apiservices")}
)

ResourceKey = tuple[str, str, str]


class _Again(errors.Conflict):
    """Not an error: the item is to be looked at again, later each time."""

    def __init__(self, item: Node, why: str) -> None:
        super().__init__("", "garbage collection of", str(item.identity), why)


class _Hopeless(Exception):
    """A cluster-scoped object names a namespaced owner: no look will ever find it."""


class GarbageCollectorController(Controller[Any]):
    """The collector around the graph."""

    name = "garbage-collector-controller"

    def setup(self) -> None:
        """Queues of nodes, by identity."""
        self.graph = Graph()
        self.metadata = MetadataClient(self.client)
        self.delete_queue: WorkQueue[Node] = self.new_queue("garbage_collector_attempt_to_delete")
        self.orphan_queue: WorkQueue[Node] = self.new_queue("garbage_collector_attempt_to_orphan")
        self.kinds: dict[tuple[str, str], Resource] = {}
        """The served resources, by apiVersion and kind, as owner references name them."""
        self.monitors: dict[ResourceKey, tuple[Resource, Informer[Any], Handler[Any]]] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Follow what the server serves; collect once the first caches are filled."""
        if not self.options.enable_garbage_collector:
            return
        workers = self.options.concurrent_gc_syncs
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_discovery())
            await self._wait_monitors()
            group.create_task(self.work(self.delete_queue, self._delete, workers))
            group.create_task(self.work(self.orphan_queue, self._orphan, workers))

    # -- what is served

    async def _follow_discovery(self) -> None:
        while True:
            try:
                await self.sync_monitors()
            except (errors.APIError, OSError, TimeoutError) as error:
                self.log.warning("cannot ask what is served: %s", error)
            sleeping = asyncio.ensure_future(self.clock.sleep(SYNC_PERIOD))
            changed = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait((sleeping, changed), return_when=asyncio.FIRST_COMPLETED)
                if self._changed.is_set():
                    await self.clock.sleep(_SETTLE)
            finally:
                sleeping.cancel()
                changed.cancel()
            self._changed.clear()

    async def sync_monitors(self) -> None:
        """Watch every resource that is served now, and no other."""
        found = await discover(self.client)
        if not found.resources:
            return
        self.kinds = {(each.api_version, each.kind): each for each in reversed(found.resources)}
        wanted = {
            (each.group, each.version, each.plural): each
            for each in found.with_verbs("delete", "list", "watch")
            if (each.group, each.plural) not in IGNORED
        }
        stale = set(found.stale)
        for key, (resource, informer, handler) in list(self.monitors.items()):
            if key not in wanted and resource.api_version not in stale:
                handler.remove()
                del self.monitors[key]
                await self.context.informers.release(resource, informer)
        for key, resource in wanted.items():
            if key not in self.monitors:
                self._monitor(key, resource)

    def _monitor(self, key: ResourceKey, resource: Resource) -> None:
        informer = self.context.informers.least_informer(resource)
        definition = (resource.group, resource.plural) in _DEFINITIONS

        def added(obj: PartialObjectMetadata) -> None:
            self._act(self.graph.observed(resource.api_version, resource.kind, meta(obj)))
            if definition and informer.has_synced:
                self._changed.set()

        def updated(old: PartialObjectMetadata, new: PartialObjectMetadata) -> None:
            before, after = meta(old), meta(new)
            if before.uid != after.uid:
                self._act(self.graph.gone(resource.api_version, resource.kind, before))
                added(new)
                return
            self._act(self.graph.observed(resource.api_version, resource.kind, after, before))
            if definition and before.generation != after.generation:
                self._changed.set()

        def deleted(obj: PartialObjectMetadata) -> None:
            self._act(self.graph.gone(resource.api_version, resource.kind, meta(obj)))
            if definition:
                self._changed.set()

        self.monitors[key] = resource, informer, informer.add_handler(added, updated, deleted)

    async def _wait_monitors(self) -> None:
        deadline = self.clock.monotonic() + INITIAL_SYNC_TIMEOUT
        while not self.is_synced():
            if self.clock.monotonic() > deadline:
                self.log.warning("not all caches could be filled, collecting with what is known")
                return
            await self.clock.sleep(0.05)

    def is_synced(self) -> bool:
        """Whether all resources are known; never without any."""
        return bool(self.monitors) and all(informer.has_synced for _, informer, _ in self.monitors.values())

    def _act(self, actions: Actions) -> None:
        for node in actions.delete:
            self.delete_queue.add(node)
        for node in actions.delete_later:
            self.delete_queue.add_rate_limited(node)
        for node in actions.orphan:
            self.orphan_queue.add(node)
        for node, owner in actions.invalid:
            self._report(node, owner)

    def _report(self, node: Node, owner: OwnerReference) -> None:
        kind, api_version, namespace, name, uid = node.identity
        self.recorder.event(
            ObjectReference(kind=kind, api_version=api_version, namespace=namespace or None, name=name, uid=uid),
            "Warning",
            "OwnerRefInvalidNamespace",
            f"ownerRef {identity_of(owner, namespace)} does not exist in namespace {quote(namespace)}",
        )

    # -- trying to delete

    async def _delete(self, node: Node) -> None:
        if node.virtual:
            known = self.graph.nodes.get(node.identity.uid)
            if known is None or not known.virtual:
                return  # it went, or was seen, while this look waited
        try:
            await self._attempt_to_delete(node)
        except _Hopeless:
            return
        if node.virtual and self.graph.nodes.get(node.identity.uid) is node:
            raise _Again(node, "it exists and has not been seen yet")

    async def _attempt_to_delete(self, node: Node) -> None:
        if node.being_deleted and not node.deleting_dependents:
            return  # on its way; its dependents are looked at when it is gone
        try:
            latest = meta(await self._get(node.identity))
        except errors.NotFound:
            self._act(self.graph.absent(node.identity))
            return
        if latest.uid != node.identity.uid:
            self._act(self.graph.absent(node.identity))
            return
        if node.deleting_dependents:
            await self._delete_dependents(node)
            return
        owners = latest.owner_references or []
        if not owners:
            return
        solid, dangling, waiting = await self._classify(node, owners)
        if solid:
            if dangling or waiting:
                await self._drop_owners(node.identity, [each.uid or "" for each in (*dangling, *waiting)])
            return
        policy = _policy(latest)
        if waiting and node.dependents:
            if any(each.deleting_dependents for each in node.dependents):
                await self._unblock(node)  # a circle, perhaps: none in it may wait for this one
            policy = "Foreground"
        try:
            await self._delete_object(node.identity, latest, policy)
        except errors.NotFound:
            self._act(self.graph.absent(node.identity))

    async def _delete_dependents(self, node: Node) -> None:
        """An owner that waits for its dependents may go when no blocking one is left."""
        blocking = node.blocking_dependents()
        if not blocking:
            await self._remove_finalizer(node.identity, FOREGROUND_FINALIZER)
        for each in blocking:
            if not each.deleting_dependents:
                self.delete_queue.add(each)

    async def _classify(
        self, node: Node, owners: Iterable[OwnerReference]
    ) -> tuple[list[OwnerReference], list[OwnerReference], list[OwnerReference]]:
        """Owners that exist, that do not, and that wait for their dependents to go."""
        solid, dangling, waiting = [], [], []
        for each in owners:
            owner = await self._owner(node, each)
            if owner is None:
                dangling.append(each)
            elif is_deleting_dependents(owner):
                waiting.append(each)
            else:
                solid.append(each)
        return solid, dangling, waiting

    async def _owner(self, node: Node, owner: OwnerReference) -> ObjectMeta | None:
        namespace = node.identity.namespace
        claimed = identity_of(owner, namespace)
        if claimed._replace(namespace="") in self.graph.absent_owners or claimed in self.graph.absent_owners:
            return None
        resource = self._resource(claimed)
        if resource.namespaced and not namespace:
            raise _Hopeless
        if not resource.namespaced:
            claimed = claimed._replace(namespace="")
        try:
            found = meta(await self.metadata.get(resource, claimed.name, claimed.namespace))
        except errors.NotFound:
            found = None
        if found is None or found.uid != owner.uid:
            self.graph.absent_owners.add(claimed)
            return None
        return found

    async def _delete_object(self, identity: Identity, judged: ObjectMeta, policy: PropagationPolicy) -> None:
        resource, namespace = self._place(identity)
        try:
            await self.metadata.delete(
                resource,
                identity.name,
                namespace,
                propagation_policy=policy,
                uid=identity.uid,
                resource_version=judged.resource_version,
            )
        except errors.Conflict:
            live = meta(await self.metadata.get(resource, identity.name, namespace))
            if live.uid != identity.uid or live.owner_references != judged.owner_references:
                raise
            # It changes all the time, but not its owners: the judgement stands.
            await self.metadata.delete(resource, identity.name, namespace, propagation_policy=policy, uid=identity.uid)

    # -- orphaning

    async def _orphan(self, node: Node) -> None:
        dependents = list(node.dependents)
        await asyncio.gather(*(self._orphan_one(each, node.identity.uid) for each in dependents))
        await self._remove_finalizer(node.identity, ORPHAN_FINALIZER)

    async def _orphan_one(self, dependent: Node, owner: str) -> None:
        try:
            await self._drop_owners(dependent.identity, [owner])
        except errors.NotFound:
            return

    # -- changing others

    async def _drop_owners(self, identity: Identity, uids: list[str]) -> None:
        delete = [{"$patch": "delete", "uid": uid} for uid in uids]
        await self._patch_owners(identity, delete, lambda owner: None if owner.uid in uids else owner)

    async def _unblock(self, node: Node) -> None:
        blocking = [
            {"uid": each.uid, "blockOwnerDeletion": False, "apiVersion": each.api_version, "kind": each.kind,
             "name": each.name}
            for each in node.owners
            if each.block_owner_deletion
        ]  # fmt: skip

        def unblocked(owner: OwnerReference) -> OwnerReference:
            return OwnerReference(
                api_version=owner.api_version,
                kind=owner.kind,
                name=owner.name,
                uid=owner.uid,
                controller=owner.controller,
                block_owner_deletion=False,
            )

        await self._patch_owners(node.identity, blocking, unblocked)

    async def _patch_owners(self, identity: Identity, strategic: list[dict[str, Any]], change: Any) -> None:
        """By a strategic merge patch; custom resources know none and get the whole list, for one revision."""
        resource, namespace = self._place(identity)
        patch: dict[str, Any] = {"metadata": {"uid": identity.uid, "ownerReferences": strategic}}
        try:
            await self.metadata.patch(resource, identity.name, patch, namespace, type="strategic")
            return
        except errors.UnsupportedMediaType:
            pass
        latest = meta(await self.metadata.get(resource, identity.name, namespace))
        owners = [change(each) for each in latest.owner_references or ()]
        kept = [each for each in owners if each is not None]
        patch = {"metadata": {"resourceVersion": latest.resource_version, "ownerReferences": kept or None}}
        await self.metadata.patch(resource, identity.name, patch, namespace)

    async def _remove_finalizer(self, identity: Identity, finalizer: str) -> None:
        async def attempt() -> None:
            try:
                latest = meta(await self._get(identity))
            except errors.NotFound:
                return
            finalizers = latest.finalizers or []
            if finalizer not in finalizers or latest.uid != identity.uid:
                return
            rest = [each for each in finalizers if each != finalizer]
            resource, namespace = self._place(identity)
            patch = {"metadata": {"resourceVersion": latest.resource_version, "finalizers": rest}}
            try:
                await self.metadata.patch(resource, identity.name, patch, namespace)
            except errors.NotFound:
                return

        await retry_on_conflict(attempt)

    # -- finding

    async def _get(self, identity: Identity) -> PartialObjectMetadata:
        resource, namespace = self._place(identity)
        if resource.namespaced and not namespace:
            raise _Hopeless
        return await self.metadata.get(resource, identity.name, namespace)

    def _place(self, identity: Identity) -> tuple[Resource, str]:
        resource = self._resource(identity)
        return resource, identity.namespace if resource.namespaced else ""

    def _resource(self, identity: Identity) -> Resource:
        found = self.kinds.get((identity.api_version, identity.kind))
        if found is None:
            # An error of the owner reference, or a kind that will be served soon; there is no way to tell.
            raise errors.Conflict(
                "",
                "garbage collection of",
                str(identity),
                f"unable to get REST mapping for {identity.api_version}/{identity.kind}.",
            )
        return found


def _policy(metadata: ObjectMeta) -> PropagationPolicy:
    """How to delete: as the object's own finalizers already say, else in the background."""
    finalizers = metadata.finalizers or ()
    if ORPHAN_FINALIZER in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND_FINALIZER in finalizers else "Background"
