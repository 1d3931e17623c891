"""The two PriorityClasses that every cluster has: for what a node, and for what the cluster cannot do without."""

from __future__ import annotations

from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.scheduling.v1 import PriorityClass


def system_classes() -> list[PriorityClass]:
    """Both classes, as they are created."""
    return [
        PriorityClass(
            metadata=ObjectMeta(name="system-node-critical"),
            value=2_000_001_000,
            description="Used for system critical pods that must not be moved from their current node.",
        ),
        PriorityClass(
            metadata=ObjectMeta(name="system-cluster-critical"),
            value=2_000_000_000,
            description="Used for system critical pods that must run in the cluster, but can be moved to another node "
            "if necessary.",
        ),
    ]
