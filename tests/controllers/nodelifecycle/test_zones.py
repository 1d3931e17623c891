"""How fast nodes are evicted, by what the others of their zone do."""

from __future__ import annotations

import pytest

from pybernetes.client.clock import FakeClock
from pybernetes.controllers.nodelifecycle.evictor import Evictor
from pybernetes.controllers.nodelifecycle.zones import Rates, ZoneState, judge, zone_state

INITIAL, NORMAL = ZoneState.INITIAL, ZoneState.NORMAL
PARTIAL, FULL = ZoneState.PARTIAL_DISRUPTION, ZoneState.FULL_DISRUPTION
RATES = Rates()


def nodes(ready: int, lost: int) -> list[bool]:
    return [True] * ready + [False] * lost


@pytest.mark.parametrize(
    ("ready", "lost", "state"),
    [
        (0, 0, NORMAL),
        (3, 0, NORMAL),
        (0, 1, FULL),
        (0, 100, FULL),
        (1, 1, NORMAL),
        (1, 2, NORMAL),  # two are never a disruption
        (1, 3, PARTIAL),
        (9, 11, PARTIAL),  # exactly 0.55
        (10, 11, NORMAL),
        (100, 2, NORMAL),
    ],
)
def test_the_state_of_a_zone(ready: int, lost: int, state: ZoneState) -> None:
    assert zone_state(nodes(ready, lost), 0.55) is state


@pytest.mark.parametrize(
    ("state", "size", "rate"), [(NORMAL, 9, 0.1), (FULL, 9, 0.1), (PARTIAL, 50, 0.0), (PARTIAL, 51, 0.01)]
)
def test_the_rate_of_a_zone(state: ZoneState, size: int, rate: float) -> None:
    assert RATES.of(state, size) == rate


def test_a_zone_that_is_lost_while_others_are_well_is_evicted_as_usual() -> None:
    verdict = judge({"a": NORMAL, "b": NORMAL}, {"a": nodes(3, 0), "b": nodes(0, 3)}, RATES)
    assert verdict.states == {"a": NORMAL, "b": FULL}
    assert verdict.rates == {"b": 0.1}
    assert not verdict.stopped
    assert not verdict.resumed


def test_a_partial_disruption_slows_down_and_ends() -> None:
    verdict = judge({"a": NORMAL, "b": NORMAL}, {"a": nodes(3, 0), "b": nodes(20, 60)}, RATES)
    assert verdict.rates == {"b": 0.01}
    assert judge(verdict.states, {"a": nodes(3, 0), "b": nodes(20, 60)}, RATES).rates == {}
    assert judge(verdict.states, {"a": nodes(3, 0), "b": nodes(60, 20)}, RATES).rates == {"b": 0.1}


def test_nothing_is_evicted_when_all_nodes_are_lost() -> None:
    for before in ({"a": NORMAL, "b": PARTIAL}, {"a": FULL, "b": INITIAL}, {}):
        verdict = judge(before, {"a": nodes(0, 3), "b": nodes(0, 1)}, RATES)
        assert verdict.stopped
        assert verdict.rates == {"a": 0.0, "b": 0.0}
        again = judge(verdict.states, {"a": nodes(0, 3), "b": nodes(0, 1)}, RATES)
        assert not again.stopped
        assert again.rates == {}


def test_when_one_is_heard_of_again_all_rates_are_set_and_all_get_their_grace_period() -> None:
    verdict = judge({"a": FULL, "b": FULL}, {"a": nodes(1, 3), "b": nodes(0, 1)}, RATES)
    assert verdict.resumed
    assert verdict.rates == {"a": 0.0, "b": 0.1}
    assert verdict.states == {"a": PARTIAL, "b": FULL}


def test_zones_without_nodes_are_forgotten_and_an_empty_cluster_is_no_disruption() -> None:
    verdict = judge({"a": NORMAL}, {}, RATES)
    assert verdict.states == {}
    assert not verdict.stopped
    assert not verdict.resumed
    assert judge({}, {"a": nodes(1, 0)}, RATES).rates == {"a": 0.1}


def test_nodes_come_in_order_one_in_ten_seconds() -> None:
    clock = FakeClock()
    evictor = Evictor(0.1, clock)
    assert all(evictor.add(name) for name in "abc")
    assert not evictor.add("a")
    assert [evictor.take(), evictor.take()] == ["a", None]
    clock.advance(9)
    assert evictor.take() is None
    clock.advance(2)
    assert evictor.take() == "b"
    assert len(evictor) == 1


def test_a_node_comes_again_only_after_it_was_removed() -> None:
    clock = FakeClock()
    evictor = Evictor(100, clock)
    evictor.add("a")
    assert evictor.take() == "a"
    assert not evictor.add("a")
    assert evictor.remove("a")
    assert not evictor.remove("a")
    assert evictor.add("a")
    clock.advance(1)
    assert evictor.take() == "a"
    evictor.retry("a")
    clock.advance(1)
    assert evictor.take() == "a"


def test_changing_the_rate_grants_no_extra_eviction() -> None:
    clock = FakeClock()
    evictor = Evictor(0.1, clock)
    for name in "abc":
        evictor.add(name)
    assert evictor.take() == "a"
    evictor.rate = 0.0
    clock.advance(1000)
    assert evictor.take() is None
    evictor.rate = 0.01
    assert evictor.take() is None
    clock.advance(101)
    assert evictor.take() == "b"
