"""Deletes pods that no kubelet will: of nodes that are gone, on nodes out of service, deleted before they had a node,
and ended ones beyond a limit.

Looks every 20 seconds, at what an index has of such pods: most are none of them. A pod's node must have been missing
for 40 seconds, and the server asked, before the pod goes: a cache of nodes that lags must not cost pods. A pod that has
not ended is marked as Failed first, for its owner to count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pybernetes.api import errors
from pybernetes.api.core.podconditions import update_pod_condition
from pybernetes.api.core.v1.node import Node
from pybernetes.api.core.v1.pod import Pod, PodCondition, PodStatus
from pybernetes.api.times import rfc3339
from pybernetes.client.informer import Informer
from pybernetes.client.keys import copy, key_of, uid_of

from .base import Controller
from .common.meta import created, generation_of, is_deleting, name_of
from .common.nodes import index_by_node, nodes_with_pods, pods_on
from .common.pods import is_terminal, node_of, phase_of

CHECK_PERIOD: Final = 20.0
QUARANTINE: Final = 40.0
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


def terminated(pods: Iterable[Pod], threshold: int) -> list[Pod]:
    """The ended pods beyond the limit, evicted ones first, then the oldest; nothing if there is no limit."""
    if threshold <= 0:
        return []
    ended = [pod for pod in pods if phase_of(pod) not in ("Pending", "Running", "Unknown")]
    surplus = len(ended) - threshold
    return in_order(ended)[:surplus] if surplus > 0 else []


def on_nodes_out_of_service(pods: Iterable[Pod], nodes: Iterable[Node]) -> list[Pod]:
    """The pods that are being deleted on nodes of which an operator says that they will not come back."""
    lost = {name_of(node) for node in nodes if not _is_ready(node) and _is_out_of_service(node)}
    return in_order([pod for pod in pods if is_deleting(pod) and node_of(pod) in lost])


def unscheduled_terminating(pods: Iterable[Pod]) -> list[Pod]:
    """The pods that were deleted before they had a node whose kubelet could end them."""
    return [pod for pod in pods if is_deleting(pod) and not node_of(pod)]


def in_order(pods: Sequence[Pod]) -> list[Pod]:
    """Evicted ones first, which serve no owner; then from old to new."""
    return sorted(pods, key=lambda pod: (not _is_evicted(pod), created(pod), name_of(pod)))


def _is_evicted(pod: Pod) -> bool:
    return phase_of(pod) == "Failed" and pod.status is not None and pod.status.reason == "Evicted"


def _is_ready(node: Node) -> bool:
    conditions = (node.status.conditions if node.status else None) or ()
    return any(each.type == "Ready" and each.status == "True" for each in conditions)


def _is_out_of_service(node: Node) -> bool:
    return any(taint.key == OUT_OF_SERVICE for taint in (node.spec.taints if node.spec else None) or ())


ENDED, DELETING = "ended", "deleting"
_LEFT_OVER = "podgc"


def left_over(pod: Pod) -> list[str]:
    """The reasons for which a pod may be collected, beside being orphaned: an index."""
    found = [ENDED] if phase_of(pod) not in ("Pending", "Running", "Unknown") else []
    return [*found, DELETING] if is_deleting(pod) else found


class PodGarbageCollectorController(Controller[Pod]):
    """Looks after pods that are left over."""

    name = "pod-garbage-collector-controller"

    def setup(self) -> None:
        """Know pods and nodes."""
        self.pods: Informer[Pod] = self.informer(Pod)
        self.pods.add_index(_LEFT_OVER, left_over)
        index_by_node(self.pods)
        self.nodes: Informer[Node] = self.informer(Node)
        self._missing: dict[str, float] = {}
        """Nodes that pods name and that are not there, and since when."""
        labels = ("namespace", "reason")
        self._deleted = self.context.metrics.counter(
            "pod_gc_collector_force_delete_pods_total", "Pods deleted by force.", labels
        )
        self._errors = self.context.metrics.counter(
            "pod_gc_collector_force_delete_pod_errors_total", "Pods that could not be deleted by force.", labels
        )

    def queue_name(self) -> str:
        """Upstream's name of the queue."""
        return "orphaned_pods_nodes"

    async def run(self) -> None:
        """Look now and then."""
        await self.wait_synced()
        while True:
            try:
                await self.collect()
            except (errors.APIError, OSError, TimeoutError) as error:
                self.log.warning("%s", error)
            await self.clock.sleep(CHECK_PERIOD)

    async def collect(self) -> None:
        """Delete what is left over now."""
        ended = self.pods.by_index(_LEFT_OVER, ENDED)
        await self._delete(terminated(ended, self.options.terminated_pod_gc_threshold), "terminated")
        deleting = self.pods.by_index(_LEFT_OVER, DELETING)
        if deleting:
            await self._delete(on_nodes_out_of_service(deleting, self.nodes.items()), "out-of-service")
        await self._delete_orphaned()
        await self._delete(unscheduled_terminating(deleting), "unscheduled")

    async def _delete_orphaned(self) -> None:
        now = self.clock.monotonic()
        missing = {name for name in nodes_with_pods(self.pods) if self.nodes.named(name) is None}
        self._missing = {name: self._missing.get(name, now) for name in missing}
        gone = {
            name for name, since in self._missing.items() if now - since >= QUARANTINE and not await self._exists(name)
        }
        condition = PodCondition(
            type="DisruptionTarget", status="True", reason="DeletionByPodGC", message="PodGC: node no longer exists"
        )
        for name in sorted(gone):
            await self._delete(pods_on(self.pods, name), "orphaned", condition)

    async def _exists(self, node: str) -> bool:
        try:
            await self.client.get(Node, node)
        except errors.NotFound:
            return False
        except (errors.APIError, OSError, TimeoutError) as error:
            self.log.warning("node %s: %s", node, error)
        return True  # as far as we know

    async def _delete(self, pods: Iterable[Pod], reason: str, condition: PodCondition | None = None) -> None:
        for pod in pods:
            namespace = key_of(pod).namespace
            self._deleted.inc(namespace, reason)
            try:
                await self._mark_failed(pod, condition)
                await self.client.delete(Pod, name_of(pod), namespace, grace_period_seconds=0)
            except errors.NotFound:
                continue
            except (errors.APIError, OSError, TimeoutError) as error:
                self._errors.inc(namespace, reason)
                self.log.warning("cannot delete the %s pod %s: %s", reason, key_of(pod), error)
            except Exception:  # this pod stays; the others are not concerned
                self._errors.inc(namespace, reason)
                self.log.exception("cannot delete the %s pod %s", reason, key_of(pod))
            else:
                self.log.info("deleted the %s pod %s", reason, key_of(pod))

    async def _mark_failed(self, pod: Pod, condition: PodCondition | None) -> None:
        """Pods without a kubelet would be Running for ever."""
        if is_terminal(pod):
            return
        generation = generation_of(pod)
        status: dict[str, object] = {"phase": "Failed", "observedGeneration": generation}
        if condition is not None:
            told = copy(pod.status) if pod.status else PodStatus()
            mine = copy(condition)
            mine.observed_generation = generation
            update_pod_condition(told, mine, rfc3339(self.clock.now()))
            status["conditions"] = [mine]
        patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
        await self.client.patch(Pod, name_of(pod), patch, key_of(pod).namespace, type="strategic", subresource="status")
