from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.policy.v1 import PodDisruptionBudget
from pybernetes.api.times import rfc3339
from pybernetes.controllers.common.selector_text import selector_text
from pybernetes.controllers.disruption.budget import (
    count_healthy,
    disrupted,
    expectations,
    failed_status,
    needs_scale,
    new_status,
    seconds_to_stale_disruption,
)

NOW = 1_700_000_000.0


def budget(status: Any = None, **spec: Any) -> PodDisruptionBudget:
    whole = {"metadata": {"name": "b", "namespace": "ns", "generation": 3}, "spec": spec, "status": status or {}}
    return msgspec.convert(whole, PodDisruptionBudget)


def pod(name: str, ready: bool = True, deleted: bool = False, phase: str = "Running", target: Any = None) -> Pod:
    meta: dict[str, Any] = {"name": name, "namespace": "ns"}
    if deleted:
        meta["deletionTimestamp"] = rfc3339(NOW)
    conditions: list[dict[str, Any]] = [{"type": "Ready", "status": str(ready)}]
    if target is not None:
        conditions.append({"type": "DisruptionTarget", **target})
    return msgspec.convert({"metadata": meta, "status": {"phase": phase, "conditions": conditions}}, Pod)


@pytest.mark.parametrize(
    ("spec", "needs", "expected"),
    [
        ({"minAvailable": 3}, False, (5, 3)),
        ({"minAvailable": "50%"}, True, (7, 4)),
        ({"maxUnavailable": 2}, True, (7, 5)),
        ({"maxUnavailable": "30%"}, True, (7, 4)),
        ({"maxUnavailable": 9}, True, (7, 0)),
        ({}, False, (0, 0)),
    ],
)
def test_healthy_pods_wanted_by_number_and_by_share(
    spec: dict[str, Any], needs: bool, expected: tuple[int, int]
) -> None:
    assert needs_scale(budget(**spec)) is needs
    assert expectations(budget(**spec), 5, 7) == expected


def test_evicted_pods_count_as_gone_for_two_minutes() -> None:
    times = {"a": rfc3339(NOW - 60), "b": rfc3339(NOW - 121), "c": rfc3339(NOW), "gone": rfc3339(NOW)}
    pods = [pod("a"), pod("b"), pod("c", deleted=True), pod("d"), pod("e", ready=False)]
    result = disrupted(budget({"disruptedPods": times}), pods, NOW)
    assert result.pods == {"a": times["a"]}
    assert result.overdue == [pods[1]]
    assert result.again == 60
    assert count_healthy(pods, result.pods) == 2


@pytest.mark.parametrize(
    ("healthy", "desired", "expected", "allowed"),
    [(5, 3, 5, 2), (3, 3, 5, 0), (2, 3, 5, 0), (5, 0, 0, 0), (1, 0, 1, 1)],
)
def test_as_many_disruptions_as_there_are_spare_pods(healthy: int, desired: int, expected: int, allowed: int) -> None:
    status = new_status(budget(), healthy=healthy, desired=desired, expected=expected, disrupted_pods={}, now=NOW)
    assert status is not None
    assert (status.disruptions_allowed, status.observed_generation) == (allowed, 3)
    (condition,) = status.conditions or ()
    assert (condition.status, condition.reason) == (
        ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    )
    known = budget()
    known.status = status
    again = {"healthy": healthy, "desired": desired, "expected": expected, "disrupted_pods": {}, "now": NOW + 60}
    assert new_status(known, **again) is None


def test_time_of_the_condition_is_that_of_the_turn() -> None:
    known = budget()
    known.status = new_status(known, healthy=2, desired=1, expected=2, disrupted_pods={}, now=NOW)
    same = new_status(known, healthy=3, desired=1, expected=3, disrupted_pods={}, now=NOW + 60)
    assert same is not None
    assert (same.conditions or [])[0].last_transition_time == rfc3339(NOW)
    known.status = same
    failed = failed_status(known, "no idea", NOW + 90)
    assert failed.disruptions_allowed == 0
    (condition,) = failed.conditions or ()
    assert (condition.reason, condition.message, condition.last_transition_time) == (
        "SyncFailed",
        "no idea",
        rfc3339(NOW + 90),
    )
    assert failed.expected_pods == 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pod("a"), None),
        (pod("a", target={"status": "True", "lastTransitionTime": rfc3339(NOW - 100)}), 20),
        (pod("a", target={"status": "True", "lastTransitionTime": rfc3339(NOW - 900)}), 0),
        (pod("a", target={"status": "False", "lastTransitionTime": rfc3339(NOW - 900)}), None),
        (pod("a", target={"status": "True", "reason": "TerminationByKubelet"}), None),
        (pod("a", deleted=True, target={"status": "True"}), None),
        (pod("a", phase="Failed", target={"status": "True"}), None),
    ],
)
def test_a_disruption_that_did_not_happen_is_stale_after_two_minutes(given: Pod, expected: float | None) -> None:
    assert seconds_to_stale_disruption(given, NOW) == expected


def test_selectors_are_printed_as_upstream_prints_them() -> None:
    spec = budget(
        selector={"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]}
    ).spec
    assert spec is not None
    assert selector_text(spec.selector) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},"
        "MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:Exists,Values:[],},},}"
    )
