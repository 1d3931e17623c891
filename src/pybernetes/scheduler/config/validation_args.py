"""Validates the arguments of the default plugins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from pybernetes.api import labels
from pybernetes.api.core.v1.affinity import NodeSelectorRequirement, NodeSelectorTerm, TopologySpreadConstraint
from pybernetes.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from pybernetes.api.meta.validation import validate_label_name
from pybernetes.api.times import parse_duration

from .v1.args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)

STRATEGIES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
MAX_UTILIZATION: Final = 100
MAX_CUSTOM_SCORE: Final = 10

_OPERATORS = {
    "In": labels.IN,
    "NotIn": labels.NOT_IN,
    "Exists": labels.EXISTS,
    "DoesNotExist": labels.DOES_NOT_EXIST,
    "Gt": labels.GREATER_THAN,
    "Lt": labels.LESS_THAN,
}


def _default_preemption(args: DefaultPreemptionArgs, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    percentage, absolute = args.min_candidate_nodes_percentage or 0, args.min_candidate_nodes_absolute or 0
    at_percentage, at_absolute = path.child("minCandidateNodesPercentage"), path.child("minCandidateNodesAbsolute")
    if not 0 <= percentage <= 100:
        errors.append(invalid(at_percentage, percentage, "not in valid range [0, 100]"))
    if absolute < 0:
        errors.append(invalid(at_absolute, absolute, "not in valid range [0, inf)"))
    if not percentage and not absolute:
        detail = "cannot be zero at the same time as "
        errors.append(invalid(at_percentage, percentage, f"{detail}minCandidateNodesAbsolute"))
        errors.append(invalid(at_absolute, absolute, f"{detail}minCandidateNodesPercentage"))
    return errors


def _dynamic_resources(args: DynamicResourcesArgs, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if args.filter_timeout is not None and parse_duration(args.filter_timeout) < 0:
        errors.append(invalid(path.child("filterTimeout"), args.filter_timeout, "must be zero or positive"))
    if args.binding_timeout is not None and parse_duration(args.binding_timeout) < 1_000_000_000:
        errors.append(invalid(path.child("bindingTimeout"), args.binding_timeout, "must be at least 1 second"))
    return errors


def _inter_pod_affinity(args: InterPodAffinityArgs, path: Path) -> list[FieldError]:
    weight = args.hard_pod_affinity_weight or 0
    if 0 <= weight <= 100:
        return []
    return [invalid(path.child("hardPodAffinityWeight"), weight, "not in valid range [0, 100]")]


def _node_affinity(args: NodeAffinityArgs, path: Path) -> list[FieldError]:
    if args.added_affinity is None:
        return []
    errors: list[FieldError] = []
    at = path.child("addedAffinity")
    required = args.added_affinity.required_during_scheduling_ignored_during_execution
    terms = (required.node_selector_terms if required else None) or ()
    where = at.child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for index, term in enumerate(terms):
        errors += _term(term, where.index(index))
    where = at.child("preferredDuringSchedulingIgnoredDuringExecution")
    preferred = args.added_affinity.preferred_during_scheduling_ignored_during_execution
    for index, each in enumerate(preferred or ()):
        if each.weight and each.preference:
            errors += _term(each.preference, where.index(index))
    return errors


def _term(term: NodeSelectorTerm, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, each in enumerate(term.match_expressions or ()):
        at = path.child("matchExpressions").index(index)
        operator = _OPERATORS.get(each.operator or "")
        if operator is None:
            errors.append(not_supported(at.child("operator"), each.operator or "", list(_OPERATORS)))
        else:
            errors += labels.validate(each.key or "", operator, each.values or (), at)
    for index, each in enumerate(term.match_fields or ()):
        errors += _field(each, path.child("matchFields").index(index))
    return errors


def _field(each: NodeSelectorRequirement, path: Path) -> list[FieldError]:
    if each.operator not in ("In", "NotIn"):
        return [not_supported(path.child("operator"), each.operator or "", ["In", "NotIn"])]
    if len(each.values or ()) != 1:
        return [invalid(path.child("values"), each.values, "must have one element")]
    return []


def _balanced_allocation(args: NodeResourcesBalancedAllocationArgs, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, each in enumerate(args.resources or ()):
        at = path.child("resources").index(index)
        name = each.name or ""
        if name in seen:
            errors.append(duplicate(at.child("name"), name))
        seen.add(name)
        if each.weight != 1:
            errors.append(invalid(at.child("weight"), each.weight or 0, "must be 1"))
    return errors


def _fit(args: NodeResourcesFitArgs, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, name in enumerate(args.ignored_resources or ()):
        errors += validate_label_name(name, path.child("ignoredResources").index(index))
    for index, group in enumerate(args.ignored_resource_groups or ()):
        at = path.child("ignoredResourceGroups").index(index)
        if "/" in group:
            errors.append(invalid(at, group, "resource group name can't contain '/'"))
        errors += validate_label_name(group, at)
    at = path.child("scoringStrategy")
    strategy = args.scoring_strategy
    if strategy is None:
        return [*errors, required(at, "ScoringStrategy field is required")]
    if strategy.type not in STRATEGIES:
        errors.append(not_supported(at.child("type"), strategy.type or "", STRATEGIES))
    errors += _resources(strategy.resources or [], at.child("resources"))
    where = at.child("requestedToCapacityRatio")
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type == "RequestedToCapacityRatio":
        if ratio is None:
            errors.append(required(where, "must be specified when type is RequestedToCapacityRatio"))
        else:
            errors += _shape(ratio.shape or [], where.child("shape"))
    elif ratio is not None:
        errors.append(forbidden(where, "must be nil when type is not RequestedToCapacityRatio"))
    return errors


def _resources(resources: list[ResourceSpec], path: Path) -> list[FieldError]:
    return [
        invalid(
            path.index(index).child("weight"),
            each.weight or 0,
            f"resource weight of {each.name or ''} not in valid range (0, 100]",
        )
        for index, each in enumerate(resources)
        if not 0 < (each.weight or 0) <= 100
    ]


def _shape(shape: list[UtilizationShapePoint], path: Path) -> list[FieldError]:
    if not shape:
        return [required(path, "at least one point must be specified")]
    errors: list[FieldError] = []
    for index in range(1, len(shape)):
        if (shape[index - 1].utilization or 0) >= (shape[index].utilization or 0):
            at = path.index(index).child("utilization")
            errors.append(invalid(at, shape[index].utilization or 0, "values must be sorted in increasing order"))
            break
    for index, point in enumerate(shape):
        for name, value, highest in (
            ("utilization", point.utilization or 0, MAX_UTILIZATION),
            ("score", point.score or 0, MAX_CUSTOM_SCORE),
        ):
            if not 0 <= value <= highest:
                errors.append(invalid(path.index(index).child(name), value, f"not in valid range [0, {highest}]"))
    return errors


def _topology_spread(args: PodTopologySpreadArgs, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    constraints = args.default_constraints or []
    at = path.child("defaultingType")
    if args.defaulting_type not in ("System", "List"):
        errors.append(not_supported(at, args.defaulting_type or "", ["System", "List"]))
    elif args.defaulting_type == "System" and constraints:
        errors.append(invalid(at, args.defaulting_type, "when .defaultConstraints are not empty"))
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(constraints):
        errors += _constraint(each, path.child("defaultConstraints").index(index))
        pair = (each.topology_key or "", each.when_unsatisfiable or "")
        if pair in seen:
            errors.append(duplicate(path.child("defaultConstraints").index(index), f"{{{pair[0]}, {pair[1]}}}"))
        seen.add(pair)
    return errors


def _constraint(each: TopologySpreadConstraint, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if (each.max_skew or 0) <= 0:
        errors.append(invalid(path.child("maxSkew"), each.max_skew or 0, "not in valid range (0, inf)"))
    if not each.topology_key:
        errors.append(required(path.child("topologyKey"), "can not be empty"))
    else:
        errors += validate_label_name(each.topology_key, path.child("topologyKey"))
    at = path.child("whenUnsatisfiable")
    if not each.when_unsatisfiable:
        errors.append(required(at, "can not be empty"))
    elif each.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        errors.append(not_supported(at, each.when_unsatisfiable, ["DoNotSchedule", "ScheduleAnyway"]))
    if each.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        errors.append(forbidden(path.child("labelSelector"), detail))
    return errors


class _PrintedPoint(msgspec.Struct, rename="pascal"):
    """How upstream's own form of a point is printed."""

    utilization: int
    score: int


def _volume_binding(args: VolumeBindingArgs, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if (args.bind_timeout_seconds or 0) < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        errors.append(invalid(path.child("bindTimeoutSeconds"), args.bind_timeout_seconds, detail))
    if args.shape is not None:
        printed = [_PrintedPoint(each.utilization or 0, each.score or 0) for each in args.shape]
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        errors.append(invalid(path.child("shape"), printed, detail))
    return errors


VALIDATORS: Final[dict[str, Callable[[Any, Path], list[FieldError]]]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _topology_spread,
    "VolumeBinding": _volume_binding,
}
"""By the name of the plugin."""
