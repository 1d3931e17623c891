"""Taints and labels that follow from a node."""

from __future__ import annotations

import pytest
from controllers.cluster_nodes import node, taint

from pybernetes.api.core.v1 import Node, Taint
from pybernetes.controllers.common.nodes import with_taints, zone_of
from pybernetes.controllers.nodelifecycle.marks import label_changes, no_execute_taints, no_schedule_changes

PREFIX = "node.kubernetes.io/"


def ours(name: str, effect: str = "NoSchedule") -> Taint:
    return taint(PREFIX + name, effect)


@pytest.mark.parametrize(
    ("seen", "add", "remove"),
    [
        (node(), [], []),
        (node(ready=None), [], []),
        (node(ready="False"), ["not-ready"], []),
        (node(ready="Unknown"), ["unreachable"], []),
        (node(ready="Unknown", taints=[ours("not-ready")]), ["unreachable"], ["not-ready"]),
        (node(ready="False", taints=[ours("not-ready")]), [], []),
        (node(MemoryPressure="True", DiskPressure="True"), ["memory-pressure", "disk-pressure"], []),
        (node(PIDPressure="True", NetworkUnavailable="True"), ["pid-pressure", "network-unavailable"], []),
        (node(MemoryPressure="Unknown", NetworkUnavailable="False"), [], []),
        (node(unschedulable=True), ["unschedulable"], []),
        (node(taints=[ours("unschedulable"), ours("memory-pressure")]), [], ["unschedulable", "memory-pressure"]),
        (node(taints=[ours("not-ready", "NoExecute"), taint("mine", "NoSchedule")]), [], []),
    ],
)
def test_no_schedule_taints_say_what_the_conditions_say(seen: Node, add: list[str], remove: list[str]) -> None:
    added, removed = no_schedule_changes(seen, "2023-11-14T22:13:20Z")
    assert [each.key for each in added] == [PREFIX + name for name in add]
    assert [each.key for each in removed] == [PREFIX + name for name in remove]
    assert {each.effect for each in added + removed} <= {"NoSchedule"}
    assert all(each.time_added for each in added)


def test_not_ready_and_unreachable_exclude_each_other() -> None:
    assert no_execute_taints("True") is None
    assert no_execute_taints("") is None
    lost, late = no_execute_taints("Unknown"), no_execute_taints("False")
    assert lost == (ours("unreachable", "NoExecute"), ours("not-ready", "NoExecute"))
    assert late == (ours("not-ready", "NoExecute"), ours("unreachable", "NoExecute"))


@pytest.mark.parametrize(
    ("labels", "changes"),
    [
        ({}, {}),
        ({"beta.kubernetes.io/os": "linux"}, {}),
        ({"kubernetes.io/os": "linux"}, {"beta.kubernetes.io/os": "linux"}),
        ({"kubernetes.io/arch": "arm64", "beta.kubernetes.io/arch": "amd64"}, {"beta.kubernetes.io/arch": "arm64"}),
        ({"kubernetes.io/arch": "arm64", "beta.kubernetes.io/arch": "arm64"}, {}),
    ],
)
def test_older_labels_follow_the_newer(labels: dict[str, str], changes: dict[str, str]) -> None:
    assert label_changes(node(labels=labels)) == changes


def test_taints_keep_their_places() -> None:
    a, b, c = taint("a"), taint("b"), taint("c")
    renewed = Taint(key="a", effect="NoExecute", value="new")
    assert with_taints([a, b], [c], []) == [a, b, c]
    assert with_taints([a, b], [renewed], []) == [renewed, b]
    assert with_taints([a, b], [c], [a]) == [b, c]
    assert with_taints([a], [], [taint("a", "NoSchedule")]) == [a]


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ""),
        ({"topology.kubernetes.io/zone": "z"}, ":\x00:z"),
        ({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}, "r:\x00:z"),
        ({"failure-domain.beta.kubernetes.io/zone": "old", "topology.kubernetes.io/zone": "z"}, ":\x00:old"),
    ],
)
def test_a_zone_is_region_and_zone(labels: dict[str, str], zone: str) -> None:
    assert zone_of(node(labels=labels)) == zone
