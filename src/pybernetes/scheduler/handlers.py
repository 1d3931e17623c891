"""Event handlers of informers: they update the cache and the queue.

While a scheduling cycle runs, the snapshot must not change: events that arrive meanwhile (a cycle awaits only
extenders, preemption and the search for devices) are applied when it is over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pybernetes.api.base import Kind
from pybernetes.api.core.v1 import Node, Pod
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key
from pybernetes.trace.recorder import CURRENT

from .framework.events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, Action, ClusterEvent, Resource
from .framework.podinfo import PodInfo
from .queue.changes import node_events, pod_events

if TYPE_CHECKING:
    from .scheduler import Scheduler

# Pods that have ended use nothing and need nothing.
PODS = "status.phase!=Succeeded,status.phase!=Failed"
NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_DELETE = ClusterEvent(Resource.NODE, Action.DELETE)
K = TypeVar("K", bound=Kind)
log = logging.getLogger(__name__)


def kinds() -> dict[str, type[Kind]]:
    """The kinds that plugins can register events of, beside pods and nodes."""
    from pybernetes.api.core.v1 import PersistentVolume, PersistentVolumeClaim
    from pybernetes.api.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice
    from pybernetes.api.storage.v1 import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment

    return {
        Resource.PERSISTENT_VOLUME: PersistentVolume,
        Resource.PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
        Resource.CSI_NODE: CSINode,
        Resource.CSI_DRIVER: CSIDriver,
        Resource.CSI_STORAGE_CAPACITY: CSIStorageCapacity,
        Resource.STORAGE_CLASS: StorageClass,
        Resource.VOLUME_ATTACHMENT: VolumeAttachment,
        Resource.RESOURCE_CLAIM: ResourceClaim,
        Resource.RESOURCE_SLICE: ResourceSlice,
        Resource.DEVICE_CLASS: DeviceClass,
    }


class EventHandlers:
    """Follows pods, nodes, and whatever else plugins have registered for."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._cache = scheduler.cache
        self._queue = scheduler.queue
        self._pods = scheduler.informers.informer(Pod, field_selector=PODS)
        self._nodes = scheduler.informers.informer(Node)
        self._paused = False
        self._later: list[Callable[[], object]] = []

    def add(self) -> None:
        """Begin to follow."""
        self._handle(self._nodes, self._add_node, self._update_node, self._delete_node)
        self._handle(self._pods, self._add_pod, self._update_pod, self._delete_pod, self._vanished_pod)
        wanted: dict[str, int] = {}
        for framework in self._scheduler.frameworks.values():
            for registrations in framework.events_to_register().values():
                for each in registrations:
                    wanted[each.event.resource] = wanted.get(each.event.resource, 0) | each.event.action
        known = kinds()
        for resource in known if Resource.WILDCARD in wanted else wanted:
            if resource in known:
                self._follow(resource, known[resource])
            elif resource not in (Resource.POD, Resource.NODE, Resource.WILDCARD):
                log.warning("no plugin can be woken by events of %r: the scheduler does not follow them", resource)

    def pod(self, key: Key) -> Pod | None:
        """A pod as the informer last delivered it."""
        return self._pods.get(key)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing changes inside of the `with`; events that arrive meanwhile are applied at its end."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False
            while self._later:
                later, self._later = self._later, []
                for call in later:
                    try:
                        call()
                    except Exception:  # one call's mistake must not cost the others
                        log.exception("what waited for the end of a scheduling cycle failed")

    def soon(self, function: Callable[..., Any], *args: Any) -> None:
        """Call now, or when the cycle that runs is over."""
        if self._paused:
            later = partial(function, *args)
            self._later.append(later if CURRENT.get() is None else partial(copy_context().run, later))
        else:
            function(*args)

    def _handle(
        self,
        informer: Informer[K],
        on_add: Callable[[K], None],
        on_update: Callable[[K, K], None],
        on_delete: Callable[[K], None],
        on_vanished: Callable[[K], None] | None = None,
    ) -> None:
        """Follow an informer. Events that come while a cycle runs are delivered at its end, in the same way: one that
        fails is delivered again later."""
        now = informer.new_handler(on_add, on_update, on_delete, on_vanished)
        informer.add_handler(
            partial(self.soon, now.added),
            partial(self.soon, now.updated),
            partial(self.soon, now.deleted),
            on_vanished=partial(self.soon, now.vanished),
        )

    def _follow(self, resource: str, kind: type[Kind]) -> None:
        add, update, delete = (ClusterEvent(resource, each) for each in (Action.ADD, Action.UPDATE, Action.DELETE))
        move = self._queue.move_all
        self._handle(
            self._scheduler.informers.informer(kind),
            lambda new: move(add, None, new),
            lambda old, new: move(update, old, new),
            lambda old: move(delete, old, None),
        )

    # -- nodes

    def _add_node(self, node: Node) -> None:
        self._set_node(node)
        self._queue.move_all(NODE_ADD, None, node)

    def _update_node(self, old: Node, new: Node) -> None:
        events = node_events(old, new)
        images = (new.status and new.status.images) != (old.status and old.status.images)
        if not events and not images:
            self._cache.renew_node(new)
            return
        self._set_node(new)
        for event in events:
            self._queue.move_all(event, old, new)

    def _set_node(self, node: Node) -> None:
        try:
            self._cache.set_node(node)
        except Exception:
            # Half of a node is worse than none: no pod goes there until it can be read.
            self._cache.remove_node((node.metadata.name if node.metadata else None) or "")
            raise

    def _delete_node(self, node: Node) -> None:
        assert node.metadata is not None
        self._queue.move_all(NODE_DELETE, node, None)
        self._cache.remove_node(node.metadata.name or "")

    # -- pods

    def _ours(self, pod: Pod) -> bool:
        return pod.spec is not None and (pod.spec.scheduler_name or "") in self._scheduler.frameworks

    def _add_pod(self, pod: Pod) -> None:
        assert pod.spec is not None
        if pod.spec.node_name:
            self._cache.add_pod(pod)
            self._queue.move_all(ASSIGNED_POD_ADD, None, pod)
        elif self._ours(pod):
            self._queue.add(PodInfo(pod))

    def _update_pod(self, old: Pod, new: Pod) -> None:
        assert old.spec is not None
        assert new.spec is not None
        assert old.metadata is not None
        assert new.metadata is not None
        if old.metadata.uid != new.metadata.uid:  # replaced by another of the same name, unseen
            self._vanished_pod(old)
            self._add_pod(new)
        elif old.spec.node_name:
            self._cache.add_pod(new)
            for event in pod_events(old, new):
                self._queue.move_all(event, old, new)
        elif new.spec.node_name:
            self._cache.add_pod(new)
            self._queue.move_all(ASSIGNED_POD_ADD, None, new)
            if self._ours(old):
                self._queue.delete(old)
        elif self._ours(old):
            self._update_waiting(old, new)

    def _update_waiting(self, old: Pod, new: Pod) -> None:
        assert old.metadata is not None
        assert new.metadata is not None
        if old.metadata.resource_version == new.metadata.resource_version:
            return
        if self._cache.is_assumed(new.metadata.uid or ""):
            if new.metadata.deletion_timestamp and not old.metadata.deletion_timestamp:
                self._assumed_deleted(new)
            return
        self._queue.update(old, PodInfo(new))
        before = old.status.nominated_node_name if old.status else None
        if before and before != (new.status.nominated_node_name if new.status else None):
            self._nomination_gone(old)

    def _delete_pod(self, pod: Pod) -> None:
        assert pod.spec is not None
        assert pod.metadata is not None
        uid = pod.metadata.uid or ""
        if pod.spec.node_name:
            self._cache.remove_pod(uid)
            self._queue.move_all(ASSIGNED_POD_DELETE, pod, None)
        elif self._ours(pod):
            self._queue.delete(pod)
            if self._cache.is_assumed(uid):
                self._assumed_deleted(pod)
            elif pod.status and pod.status.nominated_node_name:
                self._nomination_gone(pod)
        if self._scheduler.recorder is not None:
            self._scheduler.recorder.forget(uid)

    def _vanished_pod(self, pod: Pod) -> None:
        """Its last state known may not have been its last."""
        assert pod.metadata is not None
        if self._cache.get(pod.metadata.uid or "") is not None:
            self._cache.remove_pod(pod.metadata.uid or "")
            self._queue.move_all(ASSIGNED_POD_DELETE, pod, None)
        if self._ours(pod):
            self._queue.delete(pod)
        if self._scheduler.recorder is not None:
            self._scheduler.recorder.forget(pod.metadata.uid or "")

    def _assumed_deleted(self, pod: Pod) -> None:
        assert pod.metadata is not None
        uid = pod.metadata.uid or ""
        assumed = self._cache.get(uid)
        if assumed is None:
            return
        waiting = self._scheduler.waiting_pod(uid)
        if waiting is None or not waiting.reject("", "removed"):
            self._cache.forget(uid)
        self._queue.move_all(ASSIGNED_POD_DELETE, assumed.pod, None)

    def _nomination_gone(self, pod: Pod) -> None:
        """The room that was made for this pod may do for others that are not more important."""
        priority = (pod.spec.priority if pod.spec else None) or 0
        self._queue.move_all(ASSIGNED_POD_DELETE, pod, None, lambda other: other.priority <= priority)
