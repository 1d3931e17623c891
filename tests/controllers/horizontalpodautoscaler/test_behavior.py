from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pybernetes.api.autoscaling.v2 import HorizontalPodAutoscalerBehavior
from pybernetes.controllers.horizontalpodautoscaler.behavior import History, limit, stabilize

NOW = 1_700_000_000.0


def behavior(up: Any = None, down: Any = None) -> HorizontalPodAutoscalerBehavior:
    scale_up = {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [pods(4), percent(100)],
        **(up or {}),
    }
    scale_down = {"selectPolicy": "Max", "policies": [percent(100)], **(down or {})}
    return msgspec.convert({"scaleUp": scale_up, "scaleDown": scale_down}, HorizontalPodAutoscalerBehavior)


def pods(value: int, period: int = 15) -> dict[str, Any]:
    return {"type": "Pods", "value": value, "periodSeconds": period}


def percent(value: int, period: int = 15) -> dict[str, Any]:
    return {"type": "Percent", "value": value, "periodSeconds": period}


def past(*recommended: tuple[float, int]) -> History:
    return History(recommendations=[(NOW - ago, number) for ago, number in recommended])


@pytest.mark.parametrize(
    ("recommended", "desired", "expected", "reason"),
    [
        ([], 3, 3, "ReadyForNewScale"),
        ([(200, 8)], 3, 8, "ScaleDownStabilized"),
        ([(301, 8)], 3, 3, "ReadyForNewScale"),
        ([(200, 2)], 3, 3, "ReadyForNewScale"),
    ],
)
def test_scaling_down_waits_five_minutes(
    recommended: list[tuple[float, int]], desired: int, expected: int, reason: str
) -> None:
    outcome = stabilize(past(*recommended), None, current=5, desired=desired, window=300, now=NOW)
    assert (outcome.replicas, outcome.reason) == (expected, reason)


@pytest.mark.parametrize(
    ("recommended", "current", "desired", "expected", "reason"),
    [
        ([(50, 6)], 5, 9, 6, "ScaleUpStabilized"),
        ([(70, 6)], 5, 9, 9, "ReadyForNewScale"),
        ([(100, 4)], 5, 2, 4, "ScaleDownStabilized"),
        ([(130, 4)], 5, 2, 2, "ReadyForNewScale"),
        ([(50, 3), (40, 7)], 5, 6, 5, "ScaleUpStabilized"),
    ],
)
def test_windows_of_both_directions(
    recommended: list[tuple[float, int]], current: int, desired: int, expected: int, reason: str
) -> None:
    rules = behavior({"stabilizationWindowSeconds": 60}, {"stabilizationWindowSeconds": 120})
    outcome = stabilize(past(*recommended), rules, current=current, desired=desired, window=300, now=NOW)
    assert (outcome.replicas, outcome.reason) == (expected, reason)


def test_recommendations_are_remembered_as_long_as_needed() -> None:
    history = past((500, 1), (100, 2))
    stabilize(history, None, current=2, desired=4, window=300, now=NOW)
    assert [number for _, number in history.recommendations] == [2, 4]


@pytest.mark.parametrize(
    ("current", "desired", "expected", "reason"),
    [
        (3, 5, 5, "DesiredWithinRange"),
        (1, 9, 4, "ScaleUpLimit"),
        (6, 30, 12, "ScaleUpLimit"),
        (12, 40, 20, "TooManyReplicas"),
        (5, 1, 2, "TooFewReplicas"),
    ],
)
def test_without_behavior_at_most_the_double_or_four(current: int, desired: int, expected: int, reason: str) -> None:
    outcome = limit(History(), None, current=current, desired=desired, least=2, most=20, now=NOW)
    assert (outcome.replicas, outcome.reason) == (expected, reason)


@pytest.mark.parametrize(
    ("rules", "history", "current", "desired", "expected", "reason"),
    [
        (behavior(), History(), 1, 50, 5, "ScaleUpLimit"),
        (behavior(), History(), 10, 50, 20, "ScaleUpLimit"),
        (behavior({"selectPolicy": "Min"}), History(), 10, 50, 14, "ScaleUpLimit"),
        (behavior({"selectPolicy": "Disabled"}), History(), 10, 50, 10, "ScaleUpLimit"),
        (behavior({"policies": [pods(4, 60)]}), History(ups=[(NOW - 30, 3)]), 10, 50, 11, "ScaleUpLimit"),
        (behavior({"policies": [pods(4, 60)]}), History(ups=[(NOW - 61, 3)]), 10, 50, 14, "ScaleUpLimit"),
        (behavior({"policies": [percent(10)]}), History(), 5, 50, 6, "ScaleUpLimit"),
        (behavior(), History(), 10, 200, 20, "ScaleUpLimit"),
        (behavior(), History(), 80, 200, 100, "TooManyReplicas"),
        (behavior(), History(), 10, 1, 2, "TooFewReplicas"),
        (behavior(down={"policies": [pods(2)]}), History(), 10, 1, 8, "ScaleDownLimit"),
        (behavior(down={"policies": [pods(2)]}), History(downs=[(NOW - 5, 2)]), 8, 1, 8, "ScaleDownLimit"),
        (behavior(down={"policies": [percent(10)]}), History(), 15, 1, 13, "ScaleDownLimit"),
        (behavior(down={"selectPolicy": "Disabled"}), History(), 10, 1, 10, "ScaleDownLimit"),
        (behavior(), History(), 10, 10, 10, "DesiredWithinRange"),
    ],
)
def test_policies_limit_the_change_in_a_period(
    rules: Any, history: History, current: int, desired: int, expected: int, reason: str
) -> None:
    outcome = limit(history, rules, current=current, desired=desired, least=2, most=100, now=NOW)
    assert (outcome.replicas, outcome.reason) == (expected, reason)


def test_changes_are_noted_for_the_policies() -> None:
    history = History()
    rules = behavior({"policies": [pods(4, 60)]})
    history.scaled(rules, 2, 5, NOW - 100)
    history.scaled(rules, 5, 7, NOW)
    history.scaled(rules, 7, 6, NOW)
    history.scaled(None, 6, 9, NOW)
    assert (history.ups, history.downs) == ([(NOW, 2)], [(NOW, 1)])
