"""Thresholds as configured, and when they are crossed."""

from __future__ import annotations

import pytest

from pybernetes.kubelet.eviction.thresholds import (
    DEFAULT_HARD,
    Level,
    conditions,
    met,
    parse_thresholds,
    reserved,
    with_containerfs,
)

GI = 1 << 30


def test_the_defaults_watch_memory_of_the_machine_and_of_all_pods() -> None:
    found = {each.signal: each.amount.of(100 * GI).value() for each in parse_thresholds(DEFAULT_HARD)}
    assert set(found) == {*DEFAULT_HARD, "allocatableMemory.available"}
    assert found["memory.available"] == found["allocatableMemory.available"] == 100 << 20
    assert round(found["imagefs.available"] / GI, 3) == 15


@pytest.mark.parametrize(
    ("hard", "soft", "grace", "reclaim", "message"),
    [
        ({"disk.free": "1Gi"}, {}, {}, {}, "unsupported eviction signal disk.free"),
        ({"memory.available": "-1Gi"}, {}, {}, {}, "eviction threshold memory.available must be positive: -1Gi"),
        ({"memory.available": "0"}, {}, {}, {}, "eviction threshold memory.available must be positive: 0"),
        ({"memory.available": "-3%"}, {}, {}, {}, "eviction percentage threshold memory.available must be >= 0%: -3%"),
        ({"memory.available": "103%"}, {}, {}, {}, "eviction percentage threshold memory.available must be <= 100%"),
        ({"memory.available": "x%"}, {}, {}, {}, "invalid syntax"),
        ({"memory.available": "lots"}, {}, {}, {}, "quantities must match"),
        ({}, {"memory.available": "1Gi"}, {}, {}, "grace period must be specified for the soft eviction threshold"),
        ({}, {"memory.available": "1Gi"}, {"memory.available": "-1m"}, {}, "invalid eviction grace period"),
        ({}, {"memory.available": "1Gi"}, {"memory.available": "soon"}, {}, "invalid duration"),
        ({"memory.available": "1Gi"}, {}, {}, {"memory.available": "-1Gi"}, "negative eviction minimum reclaim"),
        ({"memory.available": "1Gi"}, {}, {}, {"memory.available": "0%"}, "minimum reclaim memory.available must be"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    hard: dict[str, str], soft: dict[str, str], grace: dict[str, str], reclaim: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        parse_thresholds(hard, soft, grace, reclaim)


def test_none_and_all_percent_switch_a_threshold_off() -> None:
    assert parse_thresholds({"memory.available": "0%", "nodefs.available": "100%"}) == []


def test_a_threshold_is_crossed_below_it_and_not_at_it() -> None:
    thresholds = parse_thresholds({"memory.available": "1Gi"}, enforce_allocatable=False)
    assert met(thresholds, {"memory.available": Level(GI - 1, 10 * GI)}) == thresholds
    assert met(thresholds, {"memory.available": Level(GI, 10 * GI)}) == []
    assert met(thresholds, {}) == []


def test_once_crossed_more_must_be_won_back() -> None:
    thresholds = parse_thresholds(
        {"nodefs.available": "10%"}, minimum_reclaim={"nodefs.available": "2Gi"}, enforce_allocatable=False
    )
    level = {"nodefs.available": Level(11 * GI, 100 * GI)}
    assert met(thresholds, level) == []
    assert met(thresholds, level, with_reclaim=True) == thresholds


def test_conditions_are_named_once() -> None:
    thresholds = parse_thresholds({"memory.available": "1Gi", "nodefs.available": "1Gi", "pid.available": "10"})
    assert conditions(thresholds) == ["MemoryPressure", "DiskPressure", "PIDPressure"]


def test_writable_layers_have_the_thresholds_of_the_file_system_they_are_on() -> None:
    thresholds = parse_thresholds(
        {"nodefs.available": "10%", "imagefs.available": "20%", "containerfs.available": "1Gi"},
        enforce_allocatable=False,
    )
    for dedicated, percent in ((False, 10), (True, 20)):
        (found,) = [
            each
            for each in with_containerfs(thresholds, dedicated_imagefs=dedicated)
            if each.signal == "containerfs.available"
        ]
        assert found.amount.of(100).value() == percent


def test_hard_thresholds_are_taken_from_what_may_be_allocated() -> None:
    found = reserved(DEFAULT_HARD, 8 * GI, 100 * GI)
    assert {name: str(value) for name, value in found.items()} == {
        "memory": "100Mi",
        "ephemeral-storage": str(found["ephemeral-storage"]),
    }
    assert abs(found["ephemeral-storage"].value() - 10 * GI) < 1024  # a tenth, in single precision as upstream's
