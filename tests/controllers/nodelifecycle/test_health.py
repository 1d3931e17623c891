"""When a node was last heard of."""

from __future__ import annotations

import pytest
from controllers.cluster_nodes import node

from pybernetes.api.coordination.v1 import Lease, LeaseSpec
from pybernetes.api.core.v1 import Node
from pybernetes.api.times import rfc3339_micro
from pybernetes.controllers.common.nodes import node_condition
from pybernetes.controllers.nodelifecycle.health import Health, is_silent, observe, silent

BORN = 1_700_000_000.0


def lease(at: float) -> Lease:
    return Lease(spec=LeaseSpec(renew_time=rfc3339_micro(at)))


def heard(*looks: tuple[float, Node, Lease | None]) -> float:
    known: Health | None = None
    for now, seen, renewed in looks:
        known = observe(known, seen, renewed, now, now)
    assert known
    return known.heard_at - BORN


def test_a_node_that_never_reported_is_as_old_as_its_object() -> None:
    assert heard((BORN + 30, node(ready=None), None)) == 0
    assert heard((BORN + 30, node(ready=None), None), (BORN + 40, node(ready=None), None)) == 0


def test_a_node_that_is_there_when_we_start_is_heard_of_now() -> None:
    assert heard((BORN + 30, node(), None)) == 30
    assert heard((BORN + 30, node(), lease(BORN)), (BORN + 40, node(), lease(BORN))) == 30


def test_a_new_heartbeat_in_the_status_counts() -> None:
    assert heard((BORN + 30, node(), None), (BORN + 40, node(at=BORN + 5), None)) == 40
    assert heard((BORN + 30, node(ready=None), None), (BORN + 40, node(), None)) == 40


def test_a_renewed_lease_counts_even_without_a_status() -> None:
    assert heard((BORN + 30, node(), lease(BORN)), (BORN + 40, node(), lease(BORN + 1))) == 40
    assert heard((BORN + 30, node(ready=None), lease(BORN)), (BORN + 40, node(ready=None), lease(BORN + 1))) == 40


def test_a_lease_that_goes_back_or_away_says_nothing() -> None:
    looks = (BORN + 30, node(), lease(BORN)), (BORN + 40, node(), None), (BORN + 50, node(), lease(BORN))
    assert heard(*looks) == 30


def test_a_node_whose_clock_was_set_back_is_heard_of_by_its_lease() -> None:
    assert heard((BORN + 30, node(), lease(BORN)), (BORN + 40, node(), lease(BORN - 3600))) == 40


def test_the_age_of_a_silent_node_is_by_the_time_of_day_and_its_silence_is_not() -> None:
    known = observe(None, node(ready=None), None, 100.0, BORN + 30)
    assert known.heard_at == 70.0
    assert observe(known, node(ready=None), None, 110.0, BORN + 3600).heard_at == 70.0


@pytest.mark.parametrize(
    ("seen", "after", "expected"),
    [(node(), 50, False), (node(), 50.1, True), (node(ready=None), 60, False), (node(ready=None), 60.1, True)],
)
def test_silence_begins_after_the_grace_period(seen: Node, after: float, expected: bool) -> None:
    health = Health(BORN, node_condition(seen, "Ready"), "")
    assert is_silent(health, BORN + after, 50, 60) is expected


def test_conditions_of_a_silent_node_are_unknown_but_for_the_network() -> None:
    before = node(MemoryPressure="False", DiskPressure="Unknown", NetworkUnavailable="False")
    after = silent(before, BORN + 100)
    assert after.status
    told = {each.type: (each.status, each.reason, each.last_transition_time) for each in after.status.conditions or ()}
    now, then = "2023-11-14T22:15:00Z", "2023-11-14T22:13:20Z"
    assert told == {
        "Ready": ("Unknown", "NodeStatusUnknown", now),
        "MemoryPressure": ("Unknown", "NodeStatusUnknown", now),
        "DiskPressure": ("Unknown", None, then),  # it was unknown before
        "NetworkUnavailable": ("False", None, then),
        "PIDPressure": ("Unknown", "NodeStatusNeverUpdated", now),
    }
    assert node_condition(after, "Ready").message == "Kubelet stopped posting node status."  # type: ignore[union-attr]
    assert node_condition(after, "PIDPressure").last_heartbeat_time == then  # type: ignore[union-attr]
    assert node_condition(before, "Ready").status == "True"  # type: ignore[union-attr]
