"""The policy file of old (`kind: Policy`, `--policy-config-file`), as a profile of today's plugins.

Upstream dropped these files in 1.23; clusters still have them. Every predicate and priority that ever had a name is
known here. Most became a plugin of nearly the same name. Some live on in the arguments of another: label presence and
label preference as affinity that every pod has, spreading by a label as default spread constraints. What has no
counterpart and would change where pods may run is refused; what would only have scored is left out with a warning.

As then, a list that is absent means the defaults and an empty one means nothing, but taints and unschedulable nodes are
always respected; queueing, preemption and binding are not a matter of policy.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pybernetes.api import field, strict
from pybernetes.api.configfile import ConfigError, Scheme, check_type, parse
from pybernetes.api.core.v1.affinity import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from pybernetes.api.field import FieldError, Path, invalid, required
from pybernetes.api.times import TimeError, format_duration, parse_duration

from .defaults import set_defaults
from .load import SCHEME, check, decode
from .policy_types import LegacyExtender, Policy, PredicateArgument, PredicatePolicy, PriorityArgument, PriorityPolicy
from .v1 import GROUP_VERSION
from .v1.args import (
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
)
from .v1.types import (
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
)

_SCHEME: Final = Scheme({("v1", "Policy"), (GROUP_VERSION, "Policy")}, SCHEME.name)
MAX_WEIGHT: Final = (2**63 - 1) // 100
DEFAULT_EXTENDER_TIMEOUT: Final = "5s"


class Loaded(NamedTuple):
    """A policy file converted to today's configuration."""

    config: KubeSchedulerConfiguration
    always_check_all_predicates: bool
    """Whether a node is asked all filters, although one has refused."""
    warnings: list[str]


# --- what became of each name

PREDICATES: Final[dict[str, tuple[str, ...]]] = {
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "PodFitsResources": ("NodeResourcesFit",),
    "HostName": ("NodeName",),
    "MatchNodeSelector": ("NodeAffinity",),
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "NoDiskConflict": ("VolumeRestrictions",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "NoVolumeNodeConflict": ("VolumeBinding",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "PodToleratesNodeNoExecuteTaints": ("TaintToleration",),
    # The conditions of a node have become taints.
    "CheckNodeCondition": ("TaintToleration",),
    "CheckNodeMemoryPressure": ("TaintToleration",),
    "CheckNodeDiskPressure": ("TaintToleration",),
    "CheckNodePIDPressure": ("TaintToleration",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}

PRIORITIES: Final[dict[str, str]] = {
    "LeastRequestedPriority": "NodeResourcesFit",
    "MostRequestedPriority": "NodeResourcesFit",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "SelectorSpreadPriority": "PodTopologySpread",
    "ServiceSpreadingPriority": "PodTopologySpread",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
}
_STRATEGIES = {"LeastRequestedPriority": "LeastAllocated", "MostRequestedPriority": "MostAllocated"}
_SPREADING = ("SelectorSpreadPriority", "ServiceSpreadingPriority")
_WITHOUT_EFFECT = {
    "EqualPriority": "it scores all nodes alike",
    "NodePreferAvoidPodsPriority": "the annotation that it reads is no more",
    "ResourceLimitsPriority": "limits are not scored any more",
}

DEFAULT_PREDICATES: Final = (
    "NoVolumeZoneConflict",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
    "CheckNodeUnschedulable",
    "EvenPodsSpread",
)
MANDATORY_PREDICATES: Final = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")
DEFAULT_PRIORITIES: Final = (
    ("SelectorSpreadPriority", 1),
    ("InterPodAffinityPriority", 1),
    ("LeastRequestedPriority", 1),
    ("BalancedResourceAllocation", 1),
    ("NodeAffinityPriority", 1),
    ("TaintTolerationPriority", 1),
    ("ImageLocalityPriority", 1),
    ("EvenPodsSpreadPriority", 2),
)
_ORDER = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
"""Filters and scores run in today's order, whatever the order in the file."""


def load(data: bytes) -> Loaded:
    """Convert a policy file; `ConfigError` with all that is invalid or has no counterpart."""
    value, repeated = parse(data)
    check_type(value, data, _SCHEME)
    policy, problems = decode(Policy, value)
    if repeated or problems:
        raise ConfigError(strict.strict_decoding_error([*repeated, *problems]))
    made = _Translation()
    made.predicates(policy.predicates)
    made.priorities(policy.priorities)
    made.symmetric_weight(policy.hard_pod_affinity_symmetric_weight)
    extenders = [made.extender(each, Path("extenders").index(n)) for n, each in enumerate(policy.extenders or ())]
    if made.errors:
        raise ConfigError(field.aggregate(made.errors))
    config = KubeSchedulerConfiguration(
        kind="KubeSchedulerConfiguration",
        api_version=GROUP_VERSION,
        profiles=[made.profile()],
        extenders=extenders or None,
    )
    set_defaults(config)
    check(config)
    return Loaded(config, bool(policy.always_check_all_predicates), made.warnings)


class _Translation:
    """Collects plugins, their weights and their arguments while the file is read."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []
        self.filters: set[str] = set()
        self.weights: dict[str, int] = {}
        self.strategy: ScoringStrategy | None = None
        self.hard_weight: int | None = None
        self.required: list[NodeSelectorRequirement] = []
        self.preferred: list[PreferredSchedulingTerm] = []
        self.constraints: list[TopologySpreadConstraint] = []
        self.system_spreading = False

    def predicates(self, found: list[PredicatePolicy] | None) -> None:
        path = Path("predicates")
        if found is None:
            found = [PredicatePolicy(name=name) for name in DEFAULT_PREDICATES]
        for index, each in enumerate(found):
            at, name = path.index(index), each.name or ""
            if not name:
                self.errors.append(required(at.child("name")))
            elif each.argument is not None:
                self.custom_predicate(each.argument, at.child("argument"))
            elif name in PREDICATES:
                self.filters.update(PREDICATES[name])
            else:
                self.errors.append(invalid(at.child("name"), name, "unknown predicate, and no argument defines it"))
        for name in MANDATORY_PREDICATES:
            self.filters.update(PREDICATES[name])

    def custom_predicate(self, argument: PredicateArgument, path: Path) -> None:
        if (argument.service_affinity is None) == (argument.labels_presence is None):
            self.errors.append(required(path, "exactly 1 predicate argument is required"))
        elif argument.service_affinity is not None:
            detail = (
                "has no counterpart: no plugin keeps the pods of a Service on nodes alike in a label; "
                "use podAffinity in the pods"
            )
            self.errors.append(field.forbidden(path.child("serviceAffinity"), detail))
        elif argument.labels_presence is not None:
            operator = "Exists" if argument.labels_presence.presence else "DoesNotExist"
            for label in argument.labels_presence.labels or ():
                self.required.append(NodeSelectorRequirement(key=label, operator=operator))
            self.filters.add("NodeAffinity")

    def priorities(self, found: list[PriorityPolicy] | None) -> None:
        path = Path("priorities")
        if found is None:
            found = [PriorityPolicy(name=name, weight=weight) for name, weight in DEFAULT_PRIORITIES]
        for index, each in enumerate(found):
            at, name, weight = path.index(index), each.name or "", each.weight or 0
            if not name:
                self.errors.append(required(at.child("name")))
            elif not 0 < weight < MAX_WEIGHT:
                detail = f"Priority {name} should have a positive weight applied to it or it has overflown"
                self.errors.append(invalid(at.child("weight"), weight, detail))
            elif each.argument is not None:
                self.custom_priority(each.argument, weight, at.child("argument"))
            elif name in _WITHOUT_EFFECT:
                self.warnings.append(f"{at}: {name} is left out: {_WITHOUT_EFFECT[name]}")
            elif name in PRIORITIES:
                self.weigh(PRIORITIES[name], weight)
                self.system_spreading |= name in _SPREADING
                if name in _STRATEGIES:
                    self.score_by(ScoringStrategy(type=_STRATEGIES[name]), at.child("name"))
            else:
                self.errors.append(invalid(at.child("name"), name, "unknown priority, and no argument defines it"))

    def custom_priority(self, argument: PriorityArgument, weight: int, path: Path) -> None:
        given = [getattr(argument, name) for name in PriorityArgument.__struct_fields__]
        if sum(each is not None for each in given) != 1:
            self.errors.append(required(path, "exactly 1 priority argument is required"))
        elif argument.service_anti_affinity is not None:
            self.weigh("PodTopologySpread", weight)
            self.constraints.append(
                TopologySpreadConstraint(
                    max_skew=1,
                    topology_key=argument.service_anti_affinity.label,
                    when_unsatisfiable="ScheduleAnyway",
                )
            )
        elif argument.label_preference is not None:
            wanted = argument.label_preference
            one = NodeSelectorRequirement(key=wanted.label, operator="Exists" if wanted.presence else "DoesNotExist")
            self.weigh("NodeAffinity", weight)
            self.preferred.append(
                PreferredSchedulingTerm(weight=1, preference=NodeSelectorTerm(match_expressions=[one]))
            )
        elif argument.requested_to_capacity_ratio_arguments is not None:
            ratio = argument.requested_to_capacity_ratio_arguments
            self.weigh("NodeResourcesFit", weight)
            strategy = ScoringStrategy(
                type="RequestedToCapacityRatio",
                resources=ratio.resources,
                requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=ratio.shape),
            )
            self.score_by(strategy, path)

    def weigh(self, plugin: str, weight: int) -> None:
        """Priorities that have become one plugin count together."""
        self.weights[plugin] = self.weights.get(plugin, 0) + weight

    def score_by(self, strategy: ScoringStrategy, path: Path) -> None:
        if self.strategy is not None and self.strategy != strategy:
            detail = f"resources are scored by {self.strategy.type} already, and one plugin scores them all"
            self.errors.append(field.forbidden(path, detail))
        self.strategy = strategy

    def symmetric_weight(self, weight: int | None) -> None:
        if weight is not None and not 0 <= weight <= 100:
            path = Path("hardPodAffinitySymmetricWeight")
            self.errors.append(invalid(path, weight, "not in valid range [0, 100]"))
        self.hard_weight = weight

    def extender(self, old: LegacyExtender, path: Path) -> Extender:
        timeout = DEFAULT_EXTENDER_TIMEOUT
        if old.http_timeout is not None:
            try:
                timeout = _timeout(old.http_timeout)
            except ValueError as error:
                self.errors.append(invalid(path.child("httpTimeout"), old.http_timeout, str(error)))
        return Extender(
            **{name: getattr(old, name) for name in Extender.__struct_fields__ if name != "http_timeout"},
            http_timeout=timeout,
        )

    def profile(self) -> KubeSchedulerProfile:
        """The profile of all that was collected."""
        filters = [Plugin(name=name) for name in _ORDER if name in self.filters]
        scores = [Plugin(name=name, weight=self.weights[name]) for name in _ORDER if name in self.weights]
        used = {"SchedulingGates", "PrioritySort", "DefaultPreemption", "DefaultBinder", *self.filters, *self.weights}
        # A plugin that only filters does not score, and the other way round; everything else of it runs.
        everything = [Plugin(name="*")]
        sets = {
            "filter": PluginSet(enabled=filters, disabled=everything),
            "score": PluginSet(enabled=scores, disabled=everything),
            "pre_filter": PluginSet(disabled=[Plugin(name=name) for name in _ORDER if name not in self.filters]),
            "pre_score": PluginSet(disabled=[Plugin(name=name) for name in _ORDER if name not in self.weights]),
        }
        multi = [name for name in ("SchedulingGates", "PrioritySort", *_ORDER) if name in used]
        args: dict[str, Any] = {}
        if self.required or self.preferred:
            terms = [NodeSelectorTerm(match_expressions=self.required)]
            args["NodeAffinity"] = NodeAffinityArgs(
                added_affinity=NodeAffinity(
                    required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=terms)
                    if self.required
                    else None,
                    preferred_during_scheduling_ignored_during_execution=self.preferred or None,
                )
            )
        if self.strategy is not None:
            args["NodeResourcesFit"] = NodeResourcesFitArgs(scoring_strategy=self.strategy)
        if self.hard_weight is not None:
            args["InterPodAffinity"] = InterPodAffinityArgs(hard_pod_affinity_weight=self.hard_weight)
        args["PodTopologySpread"] = self.spreading()
        return KubeSchedulerProfile(
            plugins=Plugins(
                multi_point=PluginSet(
                    disabled=[Plugin(name="*")],
                    enabled=[Plugin(name=name) for name in (*multi, "DefaultPreemption", "DefaultBinder")],
                ),
                **sets,
            ),
            plugin_config=[PluginConfig(name=name, args=each) for name, each in args.items() if name in used],
        )

    def spreading(self) -> PodTopologySpreadArgs:
        """Pods that say nothing are spread as the priorities say: as today by default, by labels, or not at all."""
        if self.system_spreading and not self.constraints:
            return PodTopologySpreadArgs(defaulting_type="System")
        if self.system_spreading:
            self.warnings.append("pods are spread by the labels of serviceAntiAffinity, and not by host and zone too")
        return PodTopologySpreadArgs(defaulting_type="List", default_constraints=self.constraints or None)


def _timeout(value: Any) -> str:
    """Nanoseconds as the old files have them, or a duration as today's do."""
    if isinstance(value, str):
        try:
            return format_duration(parse_duration(value))
        except TimeError as error:
            raise ValueError(str(error)) from None
    if type(value) is not int or value < 0:
        raise ValueError("must be a number of nanoseconds, or a duration")
    return format_duration(value)
