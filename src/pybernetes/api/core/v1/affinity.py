"""core/v1: affinity.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from ...base import Struct
from ...meta.v1.labelselector import LabelSelector
from ...types import Always, Enum, Int32, Int64, ListType, MapType, Pointer, Required, Time


class Affinity(Struct):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class NodeAffinity(Struct):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[PreferredSchedulingTerm] | None, ListType("atomic")
    ] = None


class PodAffinity(Struct):
    required_during_scheduling_ignored_during_execution: Annotated[list[PodAffinityTerm] | None, ListType("atomic")] = (
        None
    )
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[WeightedPodAffinityTerm] | None, ListType("atomic")
    ] = None


class PodAntiAffinity(Struct):
    required_during_scheduling_ignored_during_execution: Annotated[list[PodAffinityTerm] | None, ListType("atomic")] = (
        None
    )
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[WeightedPodAffinityTerm] | None, ListType("atomic")
    ] = None


class PreferredSchedulingTerm(Struct):
    weight: Annotated[Int32 | None, Required, Always(0)] = None
    preference: Annotated[NodeSelectorTerm | None, Required, Always({})] = None


class PodAffinityTerm(Struct):
    label_selector: LabelSelector | None = None
    namespaces: Annotated[list[str] | None, ListType("atomic")] = None
    topology_key: Annotated[str | None, Required, Always("")] = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: Annotated[list[str] | None, ListType("atomic")] = None
    mismatch_label_keys: Annotated[list[str] | None, ListType("atomic")] = None


class WeightedPodAffinityTerm(Struct):
    weight: Annotated[Int32 | None, Required, Always(0)] = None
    pod_affinity_term: Annotated[PodAffinityTerm | None, Required, Always({})] = None


class NodeSelector(Struct):
    map_type: ClassVar = MapType("atomic")

    node_selector_terms: Annotated[list[NodeSelectorTerm] | None, Required, Always(None), ListType("atomic")] = None


class NodeSelectorTerm(Struct):
    map_type: ClassVar = MapType("atomic")

    match_expressions: Annotated[list[NodeSelectorRequirement] | None, ListType("atomic")] = None
    match_fields: Annotated[list[NodeSelectorRequirement] | None, ListType("atomic")] = None


class NodeSelectorRequirement(Struct):
    key: Annotated[str | None, Required, Always("")] = None
    operator: Annotated[str | None, Required, Always(""), Enum("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn")] = (
        None
    )
    values: Annotated[list[str] | None, ListType("atomic")] = None


class Taint(Struct):
    key: Annotated[str | None, Required, Always("")] = None
    value: str | None = None
    effect: Annotated[str | None, Required, Always(""), Enum("NoExecute", "NoSchedule", "PreferNoSchedule")] = None
    time_added: Time | None = None


class Toleration(Struct):
    key: str | None = None
    operator: Annotated[str | None, Enum("Equal", "Exists", "Gt", "Lt")] = None
    value: str | None = None
    effect: Annotated[str | None, Enum("NoExecute", "NoSchedule", "PreferNoSchedule")] = None
    toleration_seconds: Annotated[Int64 | None, Pointer] = None


class TopologySpreadConstraint(Struct):
    max_skew: Annotated[Int32 | None, Required, Always(0)] = None
    topology_key: Annotated[str | None, Required, Always("")] = None
    when_unsatisfiable: Annotated[str | None, Required, Always(""), Enum("DoNotSchedule", "ScheduleAnyway")] = None
    label_selector: LabelSelector | None = None
    min_domains: Annotated[Int32 | None, Pointer] = None
    node_affinity_policy: Annotated[str | None, Pointer, Enum("Honor", "Ignore")] = None
    node_taints_policy: Annotated[str | None, Pointer, Enum("Honor", "Ignore")] = None
    match_label_keys: Annotated[list[str] | None, ListType("atomic")] = None


class TopologySelectorTerm(Struct):
    map_type: ClassVar = MapType("atomic")

    match_label_expressions: Annotated[list[TopologySelectorLabelRequirement] | None, ListType("atomic")] = None


class TopologySelectorLabelRequirement(Struct):
    key: Annotated[str | None, Required, Always("")] = None
    values: Annotated[list[str] | None, Required, Always(None), ListType("atomic")] = None
