"""A controller does not act twice on what its cache has not seen yet."""

from __future__ import annotations

from pybernetes.client.clock import FakeClock
from pybernetes.client.expectations import Expectations


def test_without_expectations_all_is_well() -> None:
    assert Expectations[str](FakeClock()).satisfied("a")


def test_creations_are_expected_until_all_are_seen() -> None:
    expectations: Expectations[str] = Expectations(FakeClock())
    expectations.expect_creations("a", 2)
    expectations.creation_observed("a")
    expectations.creation_observed("b")
    assert not expectations.satisfied("a")
    assert expectations.pending("a") == (1, frozenset())
    expectations.creation_observed("a")
    assert expectations.satisfied("a")


def test_a_deletion_seen_twice_counts_once() -> None:
    expectations: Expectations[str] = Expectations(FakeClock())
    expectations.expect_deletions("a", ["u1", "u2"])
    expectations.deletion_observed("a", "u1")
    expectations.deletion_observed("a", "u1")
    expectations.deletion_observed("a", "stranger")
    assert not expectations.satisfied("a")
    expectations.deletion_observed("a", "u2")
    assert expectations.satisfied("a")


def test_an_event_seen_before_its_answer_is_not_lost() -> None:
    expectations: Expectations[str] = Expectations(FakeClock())
    expectations.expect("a", 1, ["u"])
    expectations.creation_observed("a", 2)
    assert not expectations.satisfied("a")
    expectations.deletion_observed("a", "u")
    assert expectations.satisfied("a")


def test_a_lost_event_stops_a_controller_for_five_minutes_at_most() -> None:
    clock = FakeClock()
    expectations: Expectations[str] = Expectations(clock)
    expectations.expect_creations("a", 1)
    clock.advance(300)
    assert not expectations.satisfied("a")
    clock.advance(0.1)
    assert expectations.satisfied("a")


def test_what_is_gone_is_forgotten() -> None:
    expectations: Expectations[str] = Expectations(FakeClock())
    expectations.expect_creations("a", 1)
    expectations.forget("a")
    assert expectations.satisfied("a")
