"""The arguments of the default plugins: one class for each, named after its plugin."""

from __future__ import annotations

from typing import Annotated

from pybernetes.api.base import Struct
from pybernetes.api.core.v1.affinity import NodeAffinity, TopologySpreadConstraint
from pybernetes.api.types import Always, Duration, Int32, Int64, Pointer


class _Args(Struct):
    kind: str | None = None
    api_version: str | None = None


class ResourceSpec(Struct):
    """A resource and how much it counts."""

    name: Annotated[str | None, Always("")] = None
    weight: Int64 | None = None


class UtilizationShapePoint(Struct):
    """One point of a function from utilization (percent) to score (0-10)."""

    utilization: Annotated[Int32 | None, Always(0)] = None
    score: Annotated[Int32 | None, Always(0)] = None


class RequestedToCapacityRatioParam(Struct):
    """The function; between its points it is linear."""

    shape: list[UtilizationShapePoint] | None = None


class ScoringStrategy(Struct):
    """How NodeResourcesFit scores."""

    type: str | None = None
    resources: list[ResourceSpec] | None = None
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class DefaultPreemptionArgs(_Args):
    """How many candidates for preemption are enough."""

    min_candidate_nodes_percentage: Annotated[Int32 | None, Pointer] = None
    min_candidate_nodes_absolute: Annotated[Int32 | None, Pointer] = None


class DynamicResourcesArgs(_Args):
    """How long devices are looked for, and waited for."""

    filter_timeout: Duration | None = None
    binding_timeout: Duration | None = None


class InterPodAffinityArgs(_Args):
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Annotated[Int32 | None, Pointer] = None
    ignore_preferred_terms_of_existing_pods: Annotated[bool | None, Always(False)] = None


class NodeAffinityArgs(_Args):
    """Affinity that every pod has besides its own."""

    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(_Args):
    """Which resources are to be used evenly."""

    resources: list[ResourceSpec] | None = None


class NodeResourcesFitArgs(_Args):
    """Which resources do not count, and how the others are scored."""

    ignored_resources: list[str] | None = None
    ignored_resource_groups: list[str] | None = None
    scoring_strategy: ScoringStrategy | None = None


class PodTopologySpreadArgs(_Args):
    """How pods are spread that say nothing about it."""

    default_constraints: list[TopologySpreadConstraint] | None = None
    defaulting_type: str | None = None


class VolumeBindingArgs(_Args):
    """How long volumes are waited for, and what free space is worth."""

    bind_timeout_seconds: Annotated[Int64 | None, Pointer] = None
    shape: list[UtilizationShapePoint] | None = None


ARGS: dict[str, type[_Args]] = {
    cls.__name__.removesuffix("Args"): cls
    for cls in (
        DefaultPreemptionArgs,
        DynamicResourcesArgs,
        InterPodAffinityArgs,
        NodeAffinityArgs,
        NodeResourcesBalancedAllocationArgs,
        NodeResourcesFitArgs,
        PodTopologySpreadArgs,
        VolumeBindingArgs,
    )
}
"""By the name of the plugin."""
