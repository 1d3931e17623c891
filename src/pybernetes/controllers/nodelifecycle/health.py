"""When a node was last heard of, and what is written about it when it has been silent for too long. No IO.

A node is heard of when the heartbeat of its Ready condition changes or its Lease is renewed. What counts is our own
clock at the moment we noticed: the clocks of nodes may be wrong, and set back. Ours is the monotonic one: when the
machine's clock is set forward no node has been silent for an hour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pybernetes.api.coordination.v1 import Lease
from pybernetes.api.core.v1 import Node, NodeCondition, NodeStatus
from pybernetes.api.times import rfc3339
from pybernetes.client.keys import copy

from ..common.meta import created, meta
from ..common.nodes import node_condition

# NetworkUnavailable is not here: it is the control plane that says it, not the kubelet.
KUBELET_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a node."""

    heard_at: float
    """By the monotonic clock."""
    ready: NodeCondition | None
    renewed: str
    """When its Lease says it was renewed, as a `MicroTime`; empty if never."""


def observe(known: Health | None, node: Node, lease: Lease | None, now: float, wall: float) -> Health:
    """Update the health of a node from its status and Lease. `now` is monotonic, `wall` the time of day."""
    ready = node_condition(node, "Ready")
    renewed = (lease.spec.renew_time if lease and lease.spec else None) or ""
    if known is None:
        # Who has never said anything is as old as its object; of others we cannot know for how long they are silent.
        heard = now - max(0.0, wall - created(node)) if ready is None else now
        return Health(now if renewed else heard, ready, renewed)
    heard = known.heard_at
    if ready is not None and (known.ready is None or known.ready.last_heartbeat_time != ready.last_heartbeat_time):
        heard = now
    if renewed and renewed != known.renewed:  # not only later ones: the node's clock may have been set back
        heard = now
    return Health(heard, ready, renewed or known.renewed)


def is_silent(health: Health, now: float, grace: float, startup_grace: float) -> bool:
    """Whether the node has not been heard of for too long; one that has never reported its state gets more time."""
    return now > health.heard_at + (startup_grace if health.ready is None else grace)


def silent(node: Node, now: float) -> Node:
    """The node with its conditions set to Unknown."""
    changed = copy(node)
    status = changed.status = changed.status or NodeStatus()
    time = rfc3339(now)
    conditions = status.conditions = list(status.conditions or ())
    for kind in KUBELET_CONDITIONS:
        condition = node_condition(changed, kind)
        if condition is None:
            conditions.append(
                NodeCondition(
                    type=kind,
                    status="Unknown",
                    reason="NodeStatusNeverUpdated",
                    message="Kubelet never posted node status.",
                    last_heartbeat_time=meta(node).creation_timestamp,
                    last_transition_time=time,
                )
            )
        elif condition.status != "Unknown":
            condition.status = "Unknown"
            condition.reason = "NodeStatusUnknown"
            condition.message = "Kubelet stopped posting node status."
            condition.last_transition_time = time
    return changed
