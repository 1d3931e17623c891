from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pybernetes.api.core.v1.pod import Pod
from pybernetes.api.times import rfc3339
from pybernetes.controllers.horizontalpodautoscaler.replicas import (
    Groups,
    Initialization,
    MetricError,
    PodMetric,
    Tolerances,
    average_replicas,
    group_pods,
    requests_of,
    utilization_replicas,
    value_per_pod_replicas,
    value_replicas,
)

NOW = 1_700_000_000.0
YOUNG = Initialization(300, 30)


def pod(
    name: str,
    phase: str = "Running",
    ready: str | None = "True",
    started: float | None = 1000,
    turned: float = 900,
    deleted: bool = False,
    requests: Any = None,
    whole: Any = None,
) -> Pod:
    meta: dict[str, Any] = {"name": name, "deletionTimestamp": rfc3339(NOW) if deleted else None}
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": rfc3339(NOW - turned)}] if ready else []
    containers = [
        {"name": f"c{n}", "resources": {"requests": each}} for n, each in enumerate(requests or [{"cpu": "1"}])
    ]
    spec: dict[str, Any] = {"containers": containers}
    if whole:
        spec["resources"] = {"requests": whole}
    status = {"phase": phase, "conditions": conditions, "startTime": rfc3339(NOW - started) if started else None}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Pod)


def used(*amounts: int, at: float = NOW) -> dict[str, PodMetric]:
    return {f"p{number}": PodMetric(amount, at, 60) for number, amount in enumerate(amounts)}


def test_pods_are_sorted_by_what_their_metrics_are_worth() -> None:
    pods = [
        pod("fine"),
        pod("deleted", deleted=True),
        pod("failed", "Failed"),
        pod("pending", "Pending"),
        pod("silent"),
        pod("starting", started=10, turned=5),
        pod("started", started=200, turned=190),
        pod("never-ready", ready="False", started=1000, turned=990),
        pod("not-ready-now", ready="False", started=1000, turned=500),
        pod("unknown", ready=None),
    ]
    metrics = {
        each.metadata.name: PodMetric(1, NOW, 60) for each in pods if each.metadata and each.metadata.name != "silent"
    }
    groups = group_pods(pods, metrics, "cpu", YOUNG, NOW)
    assert groups == Groups(3, {"pending", "starting", "never-ready", "unknown"}, {"silent"}, {"deleted", "failed"})
    assert group_pods(pods, metrics, "memory", YOUNG, NOW).unready == {"pending"}


def all_ready(number: int) -> Groups:
    return Groups(number, set(), set(), set())


@pytest.mark.parametrize(
    ("amounts", "groups", "current", "expected"),
    [
        ((300, 500, 700), all_ready(3), 3, 5),  # 50 % of 30 %
        ((300, 310, 320), all_ready(3), 3, 3),  # within tolerance
        ((100, 100, 100), all_ready(3), 3, 1),
        ((500, 700), Groups(2, set(), {"p2"}, set()), 3, 4),  # the silent one counts as idle
        ((100, 100), Groups(2, set(), {"p2"}, set()), 3, 3),  # or as fully used: no change of direction
        ((600, 600, 900), Groups(2, {"p2"}, set(), set()), 3, 4),  # the unready one counts as idle
        ((600, 900, 900), Groups(1, {"p1", "p2"}, set(), set()), 3, 3),
        ((100, 900), Groups(1, {"p1"}, set(), set()), 2, 1),
    ],
)
def test_utilization(amounts: tuple[int, ...], groups: Groups, current: int, expected: int) -> None:
    requests = {f"p{number}": 1000 for number in range(3)}
    proposal = utilization_replicas(
        used(*amounts), groups, requests, current=current, target=30, tolerances=Tolerances()
    )
    assert proposal.replicas == expected


def test_utilization_is_reported_in_percent_and_as_average() -> None:
    proposal = utilization_replicas(
        used(300, 500), all_ready(2), {"p0": 1000, "p1": 1000}, current=2, target=30, tolerances=Tolerances()
    )
    assert (proposal.usage.utilization, proposal.usage.average) == (40, 400)


@pytest.mark.parametrize(
    ("amounts", "groups", "expected"),
    [
        ((20000, 10000), all_ready(2), 2),
        ((30000, 30000), all_ready(2), 4),
        ((5000, 5000), all_ready(2), 1),
        ((5000, 5000), Groups(2, set(), {"p2", "p3"}, set()), 3),
        ((60000,), Groups(1, set(), {"p2"}, set()), 4),
    ],
)
def test_average_value(amounts: tuple[int, ...], groups: Groups, expected: int) -> None:
    current = len(amounts) + len(groups.missing)
    proposal = average_replicas(used(*amounts), groups, current=current, target=15000, tolerances=Tolerances())
    assert proposal.replicas == expected


def test_without_any_usable_metric_nothing_is_proposed() -> None:
    with pytest.raises(MetricError, match="did not receive metrics for targeted pods"):
        average_replicas(used(1), Groups(0, {"p0"}, set(), set()), current=1, target=1, tolerances=Tolerances())
    with pytest.raises(MetricError, match="no metrics returned matched known pods"):
        utilization_replicas(used(1), all_ready(1), {}, current=1, target=1, tolerances=Tolerances())


@pytest.mark.parametrize(
    ("value", "current", "expected"),
    [(20000, 2, 4), (10500, 2, 2), (5000, 2, 1), (25000, 0, 3), (1 << 62, 2, (1 << 31) - 1)],
)
def test_value_of_an_object(value: int, current: int, expected: int) -> None:
    pods = [pod("a"), pod("b"), pod("c", ready="False"), pod("d", "Pending")]
    proposal = value_replicas(value, pods, current=current, target=10000, tolerances=Tolerances())
    assert proposal.replicas == expected


@pytest.mark.parametrize(
    ("value", "current", "expected", "share"),
    [(40000, 3, 4, 13334), (31000, 3, 3, 10334), (9000, 3, 1, 3000), (9000, 0, 1, 9000)],
)
def test_value_for_each_pod(value: int, current: int, expected: int, share: int) -> None:
    proposal = value_per_pod_replicas(value, current=current, target=10000, tolerances=Tolerances())
    assert (proposal.replicas, proposal.usage.average) == (expected, share)


def test_tolerances_differ_by_direction() -> None:
    careful = Tolerances(down=0.5, up=0.01)
    assert careful.within(0.6)
    assert not careful.within(1.02)


def test_requests_of_pods_containers_and_the_whole_pod() -> None:
    two = pod("two", requests=[{"cpu": "1"}, {"cpu": "250m"}])
    assert requests_of([two], "", "cpu") == {"two": 1250}
    assert requests_of([two], "c1", "cpu") == {"two": 250}
    assert requests_of([pod("whole", whole={"cpu": "3"})], "", "cpu") == {"whole": 3000}
    with pytest.raises(MetricError, match="missing request for memory in container c0 of Pod two"):
        requests_of([two], "", "memory")
    with pytest.raises(MetricError, match="container other not found in Pod two"):
        requests_of([two], "other", "cpu")
