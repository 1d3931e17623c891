"""Deletes pods from nodes with a NoExecute taint that they do not tolerate, or no longer.

Woken by: taints of nodes, pods that come to a node or change their tolerations. Writes: the condition
`DisruptionTarget` of a pod, then deletes it. How long a pod is tolerated counts from the moment the controller first
saw it beside a taint, whichever taints come and go afterwards; when the last one goes the pod may stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.tolerations import tolerates
from pybernetes.api.core.v1 import Node, ObjectReference, Pod, Taint, Toleration
from pybernetes.client.clock import Timer
from pybernetes.client.events import NORMAL
from pybernetes.client.keys import Key, key_of, uid_of

from .base import Controller
from .common.disruption_target import mark
from .common.nodes import NO_EXECUTE, index_by_node, pods_on, taints_of
from .common.pods import node_of

WORKERS: Final = 8
MESSAGE: Final = "Taint manager: deleting due to NoExecute taint"
LATENCY_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0)


def no_execute(taints: Sequence[Taint]) -> list[Taint]:
    """The taints that drive pods away."""
    return [each for each in taints if each.effect == NO_EXECUTE]


def tolerated_seconds(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> float | None:
    """How long a pod bears the taints: 0 = not at all, None = for ever.

    Of several tolerations that match a taint the first one counts, of several taints the one borne shortest.
    """
    shortest: int | None = None
    for taint in taints:
        match = next((each for each in tolerations if tolerates(each, taint)), None)
        if match is None:
            return 0.0
        if match.toleration_seconds is not None:
            shortest = match.toleration_seconds if shortest is None else min(shortest, match.toleration_seconds)
    return None if shortest is None else max(0.0, float(shortest))


@dataclass(slots=True)
class Eviction:
    """A pod that will be deleted. Without a timer it is being deleted now, and that is not taken back."""

    uid: str
    since: float
    due: float
    timer: Timer | None


class TaintEvictionController(Controller[Node]):
    """Evicts pods from tainted nodes. Its queue has nodes and pods: what has a namespace is a pod."""

    name = "taint-eviction-controller"
    kind = Node
    workers = 1  # deciding needs no IO

    def setup(self) -> None:
        """Follow pods by their nodes."""
        self.pods = self.informer(Pod)
        index_by_node(self.pods)
        self.pods.add_handler(self._pod_seen, self._pod_updated, self._pod_seen)
        self.scheduled: dict[Key, Eviction] = {}
        self._evictions = self.new_queue("taint_eviction_pods")
        metrics = self.context.metrics
        self._deleted = metrics.counter(
            "taint_eviction_controller_pod_deletions_total",
            "Total number of Pods deleted by TaintEvictionController since its start.",
        )
        self._latency = metrics.histogram(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "Latency, in seconds, between the time when a taint effect has been activated for the Pod and its deletion "
            "via TaintEvictionController.",
            LATENCY_BUCKETS,
        )

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "noexec_taint"

    def concerns(self, old: Node | None, new: Node | None) -> bool:
        """Only NoExecute taints."""
        if new is None:
            return False  # pods of a node that is gone keep their time
        return old is None or no_execute(taints_of(old)) != no_execute(taints_of(new))

    async def run(self) -> None:
        """Decide, and evict beside it."""
        await self.wait_synced()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.work(self.queue, self.reconcile, self.workers))
                group.create_task(self.work(self._evictions, self._evict, WORKERS))
        except asyncio.CancelledError:
            for eviction in self.scheduled.values():
                if eviction.timer:
                    eviction.timer.cancel()
            raise

    async def reconcile(self, key: Key) -> float | None:
        """Decide about a pod, or about all pods of a node."""
        if not key.namespace:
            node = self.own.get(key)
            if node is not None:
                for pod in pods_on(self.pods, key.name):
                    self._decide(pod, no_execute(taints_of(node)))
            return None
        found = self.pods.get(key)
        if found is None:
            self._cancel(key)
            return None
        node = self.own.get(Key("", node_of(found)))
        if node is not None and no_execute(taints_of(node)):
            self._decide(found, no_execute(taints_of(node)))
        return None

    def _decide(self, pod: Pod, taints: list[Taint]) -> None:
        key = key_of(pod)
        bears = tolerated_seconds(taints, (pod.spec.tolerations if pod.spec else None) or ())
        if bears is None:
            self._cancel(key)
            return
        known = self.scheduled.get(key)
        if known is not None and known.uid != uid_of(pod):
            self._cancel(key)
            known = None
        now = self.clock.now()
        since = known.since if known else now
        due = since + bears
        if known is not None and (known.timer is None or known.due == due):
            return
        if known is not None and bears == 0:
            self._cancel(key)
        elif known is not None and known.timer:
            known.timer.cancel()
        eviction = Eviction(uid_of(pod), since, due, None)
        self.scheduled[key] = eviction
        if due > now:
            eviction.timer = self.clock.call_later(due - now, self._due, key, eviction)
        else:
            self._due(key, eviction)

    def _due(self, key: Key, eviction: Eviction) -> None:
        eviction.timer = None
        self._tell(key, "Marking for deletion Pod")
        self._evictions.add(key)

    def _cancel(self, key: Key) -> None:
        eviction = self.scheduled.get(key)
        if eviction is not None and eviction.timer is not None:
            eviction.timer.cancel()
            del self.scheduled[key]
            self._tell(key, "Cancelling deletion of Pod")

    def _tell(self, key: Key, what: str) -> None:
        reference = ObjectReference(api_version="v1", kind="Pod", name=key.name, namespace=key.namespace)
        self.recorder.event(reference, NORMAL, "TaintManagerEviction", f"{what} {key}")

    async def _evict(self, key: Key) -> float | None:
        eviction = self.scheduled.get(key)
        if eviction is None or eviction.timer is not None:
            return None
        try:
            pod = await self.client.get(Pod, key.name, key.namespace)
            if uid_of(pod) == eviction.uid:
                now = self.clock.now()
                await mark(self.client, pod, now, "DeletionByTaintManager", MESSAGE)
                await self.client.delete(Pod, key.name, key.namespace, uid=eviction.uid)
                self._deleted.inc()
                self._latency.observe(self.clock.now() - eviction.due)
        except errors.NotFound:
            pass
        if self.scheduled.get(key) is eviction:  # else another pod of this name has come meanwhile
            del self.scheduled[key]
        return None

    def _pod_seen(self, pod: Pod) -> None:
        self.queue.add(key_of(pod))

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if (
            uid_of(old) != uid_of(new)
            or node_of(old) != node_of(new)
            or (old.spec and old.spec.tolerations) != (new.spec and new.spec.tolerations)
        ):
            self.queue.add(key_of(new))
