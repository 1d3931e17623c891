"""Translates an update of a pod or a node to cluster events for the queue."""

from __future__ import annotations

from pybernetes.api.core.v1 import Node, Pod

from ..framework.events import Action, ClusterEvent, Resource
from ..framework.podinfo import PodInfo

POD_UPDATED = {
    resource: ClusterEvent(resource, Action.UPDATE) for resource in (Resource.ASSIGNED_POD, Resource.UNSCHEDULABLE_POD)
}


def pod_events(old: Pod, new: Pod) -> list[ClusterEvent]:
    """As specific as possible; a plain update when nothing that matters has changed."""
    assert new.spec is not None
    assert old.spec is not None
    resource = Resource.ASSIGNED_POD if new.spec.node_name else Resource.UNSCHEDULABLE_POD
    found = []
    if (new.metadata and new.metadata.labels) != (old.metadata and old.metadata.labels):
        found.append(ClusterEvent(resource, Action.UPDATE_POD_LABEL))
    if _scaled_down(old, new):
        found.append(ClusterEvent(resource, Action.UPDATE_POD_SCALE_DOWN))
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        found.append(ClusterEvent(resource, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED))
    if len(new.spec.tolerations or ()) != len(old.spec.tolerations or ()):
        found.append(ClusterEvent(resource, Action.UPDATE_POD_TOLERATION))
    if (new.status and new.status.resource_claim_statuses) != (old.status and old.status.resource_claim_statuses):
        found.append(ClusterEvent(resource, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM))
    return found or [POD_UPDATED[resource]]


def node_events(old: Node, new: Node) -> list[ClusterEvent]:
    """The cluster events for an update of a node; none for a mere heartbeat."""
    found = []
    if _allocatable(new) != _allocatable(old):
        found.append(Action.UPDATE_NODE_ALLOCATABLE)
    if _labels(new) != _labels(old):
        found.append(Action.UPDATE_NODE_LABEL)
    old_spec, new_spec = old.spec, new.spec
    if (new_spec and new_spec.taints) != (old_spec and old_spec.taints) or bool(
        new_spec and new_spec.unschedulable
    ) != bool(old_spec and old_spec.unschedulable):
        found.append(Action.UPDATE_NODE_TAINT)
    if _conditions(new) != _conditions(old):
        found.append(Action.UPDATE_NODE_CONDITION)
    if (new.metadata and new.metadata.annotations) != (old.metadata and old.metadata.annotations):
        found.append(Action.UPDATE_NODE_ANNOTATION)
    if (new.status and new.status.declared_features) != (old.status and old.status.declared_features):
        found.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    return [ClusterEvent(Resource.NODE, action) for action in found]


def pod_changed(old: Pod, new: Pod) -> bool:
    """Whether the scheduler's own view of a bound pod is another: labels, what it asks for, its spec."""
    return (
        (new.metadata and new.metadata.labels) != (old.metadata and old.metadata.labels)
        or new.spec != old.spec
        or PodInfo(new).requests != PodInfo(old).requests
    )


def _scaled_down(old: Pod, new: Pod) -> bool:
    if old.spec is new.spec and old.status is new.status:
        return False
    before, after = PodInfo(old).requests, PodInfo(new).requests
    return before is not after and any(amount > after.get(name, -1) for name, amount in before.items())


def _allocatable(node: Node) -> object:
    return node.status.allocatable if node.status else None


def _labels(node: Node) -> object:
    return node.metadata.labels if node.metadata else None


def _conditions(node: Node) -> list[tuple[str | None, str | None]]:
    """Without heartbeats and reasons, which change all the time."""
    return [(each.type, each.status) for each in (node.status.conditions if node.status else None) or ()]
