"""The whole decision: every default plugin in upstream's order, and upstream's weights."""

from __future__ import annotations

from pybernetes.api.core.v1 import Node, Pod

from . import interpod, node_rules, resources, spread, volumes
from .cluster import Cluster, Refusal

FILTERS = {
    "NodeUnschedulable": node_rules.node_unschedulable,
    "NodeName": node_rules.node_name,
    "TaintToleration": node_rules.taint_toleration,
    "NodeAffinity": node_rules.node_affinity,
    "NodePorts": node_rules.node_ports,
    "NodeResourcesFit": resources.node_resources_fit,
    "VolumeRestrictions": volumes.volume_restrictions,
    "NodeVolumeLimits": volumes.node_volume_limits,
    "VolumeBinding": volumes.volume_binding,
    "VolumeZone": volumes.volume_zone,
    "PodTopologySpread": spread.topology_spread,
    "InterPodAffinity": interpod.inter_pod_affinity,
}
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


def refusal(pod: Pod, node: Node, cluster: Cluster) -> Refusal | None:
    """Why the node cannot take the pod, by the first that says so; None if it can."""
    for each in FILTERS.values():
        found = each(pod, node, cluster)
        if found is not None:
            return found
    return None


def totals(pod: Pod, candidates: list[Node], cluster: Cluster) -> dict[str, int]:
    """What each candidate is worth in all."""
    return {
        node.metadata.name: sum(
            weight * part[node.metadata.name][1]
            for name, weight in WEIGHTS.items()
            if (part := scores(name, pod, candidates, cluster)) is not None
        )
        for node in candidates
    }


def scores(name: str, pod: Pod, candidates: list[Node], cluster: Cluster) -> dict[str, tuple[int, int]] | None:
    """(raw, normalised) by one plugin; None if it does not score this pod."""
    if name == "PodTopologySpread":
        return spread.topology_spread_scores(pod, candidates, cluster)
    if name == "InterPodAffinity":
        return interpod.inter_pod_affinity_scores(pod, candidates, cluster)
    each = {
        "TaintToleration": node_rules.taint_toleration_score,
        "NodeAffinity": node_rules.node_affinity_score,
        "NodeResourcesFit": resources.least_allocated,
        "NodeResourcesBalancedAllocation": resources.balanced_allocation,
        "ImageLocality": node_rules.image_locality_score,
    }[name]
    raw = {node.metadata.name: each(pod, node, cluster) for node in candidates}
    if None in raw.values():
        return None
    highest = max(raw.values())  # type: ignore[type-var]
    if name == "TaintToleration":
        return {node: (value, 100 - 100 * value // highest if highest else 100) for node, value in raw.items()}
    if name == "NodeAffinity":
        return {node: (value, 100 * value // highest if highest else 0) for node, value in raw.items()}
    return {node: (value, value) for node, value in raw.items()}
