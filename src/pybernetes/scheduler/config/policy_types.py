"""The policy file of old, as it is written: `kind: Policy`, what it may ask of nodes and how it may score them."""

from __future__ import annotations

from typing import Annotated

from pybernetes.api.base import Struct
from pybernetes.api.types import JSON, Int32, Int64, Pointer

from .v1.args import ResourceSpec, UtilizationShapePoint
from .v1.types import ExtenderManagedResource, ExtenderTLSConfig


class ServiceAffinity(Struct):
    """Pods of a Service on nodes alike in these labels."""

    labels: list[str] | None = None


class LabelsPresence(Struct):
    """Nodes that have all these labels, or none of them."""

    labels: list[str] | None = None
    presence: bool | None = None


class PredicateArgument(Struct):
    """The arguments of a custom predicate."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(Struct):
    """A condition on nodes."""

    name: str | None = None
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(Struct):
    """Pods of a Service spread by the values of this label."""

    label: str | None = None


class LabelPreference(Struct):
    """Nodes that have this label, or do not, are better."""

    label: str | None = None
    presence: bool | None = None


class RequestedToCapacityRatioArguments(Struct):
    """A function from utilization to score."""

    shape: list[UtilizationShapePoint] | None = None
    resources: list[ResourceSpec] | None = None


class PriorityArgument(Struct):
    """The arguments of a custom priority."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(Struct):
    """A way to score nodes, and how much it counts."""

    name: str | None = None
    weight: Int64 | None = None
    argument: PriorityArgument | None = None


class LegacyExtender(Struct):
    """An extender; its timeout is a number of nanoseconds."""

    url_prefix: str | None = None
    filter_verb: str | None = None
    preempt_verb: str | None = None
    prioritize_verb: str | None = None
    weight: Int64 | None = None
    bind_verb: str | None = None
    enable_https: bool | None = None
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: JSON = None
    node_cache_capable: bool | None = None
    managed_resources: list[ExtenderManagedResource] | None = None
    ignorable: bool | None = None


class Policy(Struct):
    """The whole file."""

    kind: str | None = None
    api_version: str | None = None
    predicates: list[PredicatePolicy] | None = None
    priorities: list[PriorityPolicy] | None = None
    extenders: list[LegacyExtender] | None = None
    hard_pod_affinity_symmetric_weight: Annotated[Int32 | None, Pointer] = None
    always_check_all_predicates: bool | None = None
