"""Policy files of old, in today's words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pybernetes.api.configfile import ConfigError
from pybernetes.scheduler.config import policy
from pybernetes.scheduler.config.plugins import plugin_set
from pybernetes.scheduler.config.v1.types import Plugins


def load(**fields: Any) -> policy.Loaded:
    return policy.load(msgspec.json.encode({"kind": "Policy", "apiVersion": "v1", **fields}))


def enabled(loaded: policy.Loaded, point: str) -> dict[str, int | None]:
    (profile,) = loaded.config.profiles or ()
    return {each.name or "": each.weight for each in plugin_set(profile.plugins or Plugins(), point).enabled or ()}


def args(loaded: policy.Loaded, plugin: str) -> Any:
    (profile,) = loaded.config.profiles or ()
    return {each.name: each.args for each in profile.plugin_config or ()}[plugin]


def refusal(**fields: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load(**fields)
    return str(caught.value)


def test_absent_lists_are_the_defaults() -> None:
    loaded = load()
    assert list(enabled(loaded, "filter")) == [
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
    ]
    assert enabled(loaded, "score") == {
        "TaintToleration": 1,
        "NodeAffinity": 1,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 3,
        "InterPodAffinity": 1,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert args(loaded, "PodTopologySpread").defaulting_type == "System"


def test_empty_lists_leave_what_is_mandatory() -> None:
    loaded = load(predicates=[], priorities=[])
    assert list(enabled(loaded, "filter")) == ["NodeUnschedulable", "TaintToleration"]
    assert enabled(loaded, "score") == {}
    always = {"SchedulingGates", "PrioritySort", "DefaultPreemption", "DefaultBinder"}
    assert set(enabled(loaded, "multiPoint")) == always | {"NodeUnschedulable", "TaintToleration"}


@pytest.mark.parametrize(("name", "plugins"), policy.PREDICATES.items())
def test_every_predicate_has_its_plugins(name: str, plugins: tuple[str, ...]) -> None:
    found = set(enabled(load(predicates=[{"name": name}], priorities=[]), "filter"))
    assert found == {*plugins, "NodeUnschedulable", "TaintToleration"}


@pytest.mark.parametrize(("name", "plugin"), policy.PRIORITIES.items())
def test_every_priority_has_its_plugin_and_weight(name: str, plugin: str) -> None:
    assert enabled(load(predicates=[], priorities=[{"name": name, "weight": 5}]), "score") == {plugin: 5}


def test_a_plugin_that_only_scores_does_not_reject_before_filtering() -> None:
    loaded = load(predicates=[], priorities=[{"name": "InterPodAffinityPriority", "weight": 1}])
    (profile,) = loaded.config.profiles or ()
    disabled = plugin_set(profile.plugins or Plugins(), "preFilter").disabled or ()
    assert "InterPodAffinity" in {each.name for each in disabled}


def test_how_resources_are_scored() -> None:
    most = load(priorities=[{"name": "MostRequestedPriority", "weight": 1}])
    assert args(most, "NodeResourcesFit").scoring_strategy.type == "MostAllocated"
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    ratio = load(
        priorities=[
            {
                "name": "Mine",
                "weight": 2,
                "argument": {
                    "requestedToCapacityRatioArguments": {"shape": shape, "resources": [{"name": "x.io/gpu"}]}
                },
            }
        ]
    )
    strategy = args(ratio, "NodeResourcesFit").scoring_strategy
    assert (strategy.type, strategy.resources[0].name) == ("RequestedToCapacityRatio", "x.io/gpu")
    assert enabled(ratio, "score") == {"NodeResourcesFit": 2}
    both = [{"name": "LeastRequestedPriority", "weight": 1}, {"name": "MostRequestedPriority", "weight": 1}]
    assert "resources are scored by LeastAllocated already" in refusal(priorities=both)


def test_label_presence_and_preference_become_affinity_that_every_pod_has() -> None:
    presence = {"labelsPresence": {"labels": ["zone", "rack"], "presence": False}}
    preference = {"labelPreference": {"label": "ssd", "presence": True}}
    loaded = load(
        predicates=[{"name": "P", "argument": presence}],
        priorities=[{"name": "Q", "weight": 4, "argument": preference}],
    )
    affinity = args(loaded, "NodeAffinity").added_affinity
    (term,) = affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert [(each.key, each.operator) for each in term.match_expressions] == [
        ("zone", "DoesNotExist"),
        ("rack", "DoesNotExist"),
    ]
    (preferred,) = affinity.preferred_during_scheduling_ignored_during_execution
    assert preferred.preference.match_expressions[0].operator == "Exists"
    assert enabled(loaded, "score") == {"NodeAffinity": 4}
    assert "NodeAffinity" in enabled(loaded, "filter")


def test_spreading_of_a_service_by_a_label_becomes_a_default_constraint() -> None:
    argument = {"serviceAntiAffinity": {"label": "rack"}}
    loaded = load(priorities=[{"name": "Spread", "weight": 2, "argument": argument}])
    (constraint,) = args(loaded, "PodTopologySpread").default_constraints
    assert (constraint.topology_key, constraint.when_unsatisfiable) == ("rack", "ScheduleAnyway")


def test_extenders_and_the_rest() -> None:
    loaded = load(
        extenders=[
            {"urlPrefix": "http://x", "filterVerb": "f", "httpTimeout": 3_000_000_000, "enableHttps": True},
            {"urlPrefix": "http://y", "prioritizeVerb": "p", "weight": 2, "httpTimeout": "1m"},
        ],
        hardPodAffinitySymmetricWeight=10,
        alwaysCheckAllPredicates=True,
    )
    first, second = loaded.config.extenders or ()
    assert (first.http_timeout, first.enable_https, second.http_timeout) == ("3s", True, "1m0s")
    assert args(loaded, "InterPodAffinity").hard_pod_affinity_weight == 10
    assert loaded.always_check_all_predicates


def test_what_only_scored_and_is_no_more_is_left_out_with_a_warning() -> None:
    loaded = load(priorities=[{"name": "NodePreferAvoidPodsPriority", "weight": 10000}])
    assert loaded.warnings == [
        "priorities[0]: NodePreferAvoidPodsPriority is left out: the annotation that it reads is no more"
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"predicates": [{"name": "Nope"}]},
            'predicates[0].name: Invalid value: "Nope": unknown predicate, and no argument defines it',
        ),
        (
            {"priorities": [{"name": "Nope", "weight": 1}]},
            'priorities[0].name: Invalid value: "Nope": unknown priority, and no argument defines it',
        ),
        (
            {"priorities": [{"name": "ImageLocalityPriority"}]},
            "priorities[0].weight: Invalid value: 0: Priority ImageLocalityPriority should have a positive weight "
            "applied to it or it has overflown",
        ),
        (
            {"predicates": [{"name": "X", "argument": {"serviceAffinity": {"labels": ["a"]}}}]},
            "predicates[0].argument.serviceAffinity: Forbidden: has no counterpart: no plugin keeps the pods of a "
            "Service on nodes alike in a label; use podAffinity in the pods",
        ),
        (
            {"predicates": [{"name": "X", "argument": {}}]},
            "predicates[0].argument: Required value: exactly 1 predicate argument is required",
        ),
        (
            {"hardPodAffinitySymmetricWeight": 101},
            "hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0, 100]",
        ),
        ({"nope": 1}, 'strict decoding error: unknown field "nope"'),
        (
            {"extenders": [{"urlPrefix": "x", "prioritizeVerb": "p"}]},
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        (
            {"extenders": [{"urlPrefix": "x", "httpTimeout": "soon"}]},
            'extenders[0].httpTimeout: Invalid value: "soon": time: invalid duration "soon"',
        ),
    ],
)
def test_what_is_refused(fields: dict[str, Any], message: str) -> None:
    assert refusal(**fields) == message
