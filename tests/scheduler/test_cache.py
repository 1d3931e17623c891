"""Assumed pods: counted at once, confirmed, forgotten or expired."""

from __future__ import annotations

import pytest
from scheduler.pods import info, node, pod

from pybernetes.client.clock import FakeClock
from pybernetes.scheduler.cache import Cache
from pybernetes.scheduler.snapshot.snapshot import Snapshot


def setting(expire_after: float = 0.0) -> tuple[Cache, Snapshot, FakeClock]:
    clock = FakeClock()
    snapshot = Snapshot()
    cache = Cache(snapshot, clock, expire_after)
    for name in ("n", "m"):
        cache.set_node(node(name))
    return cache, snapshot, clock


def used(snapshot: Snapshot, name: str) -> int:
    return int(snapshot.requested("cpu")[snapshot.row_of[name]])


def test_an_assumed_pod_counts_and_a_forgotten_one_does_not() -> None:
    cache, snapshot, _ = setting()
    assumed = cache.assume(info("p", requests={"cpu": "1"}), "n")
    assert (assumed.spec.node_name, used(snapshot, "n"), cache.is_assumed("uid-p")) == ("n", 1000, True)
    assert cache.forget("uid-p")
    assert (used(snapshot, "n"), cache.is_assumed("uid-p")) == (0, False)
    assert not cache.forget("uid-p")


def test_a_pod_is_assumed_once() -> None:
    cache, _, _ = setting()
    cache.assume(info("p"), "n")
    with pytest.raises(ValueError, match="is in the cache, so can't be assumed"):
        cache.assume(info("p"), "m")


def test_a_confirmed_pod_is_counted_once_and_cannot_be_forgotten() -> None:
    cache, snapshot, _ = setting()
    cache.assume(info("p", requests={"cpu": "1"}), "n")
    position = snapshot.pod_changes.position
    cache.add_pod(pod("p", requests={"cpu": "1"}, node_name="n"))
    assert (used(snapshot, "n"), cache.is_assumed("uid-p")) == (1000, False)
    assert snapshot.pod_changes.position == position, "what was expected is no news"
    assert not cache.forget("uid-p")


def test_a_pod_that_is_bound_elsewhere_is_moved_there() -> None:
    cache, snapshot, _ = setting()
    cache.assume(info("p", requests={"cpu": "1"}), "n")
    cache.add_pod(pod("p", requests={"cpu": "1"}, node_name="m"))
    assert (used(snapshot, "n"), used(snapshot, "m")) == (0, 1000)


def test_a_pod_that_changes_is_counted_as_it_is() -> None:
    cache, snapshot, _ = setting()
    cache.add_pod(pod("p", requests={"cpu": "1"}, node_name="n"))
    cache.add_pod(pod("p", requests={"cpu": "2"}, node_name="n"))
    assert used(snapshot, "n") == 2000
    cache.remove_pod("uid-p")
    assert used(snapshot, "n") == 0


def test_an_unconfirmed_binding_expires_if_configured() -> None:
    cache, snapshot, clock = setting(expire_after=30)
    cache.assume(info("p", requests={"cpu": "1"}), "n")
    clock.advance(100)
    assert used(snapshot, "n") == 1000, "not before the binding has finished"
    cache.binding_finished("uid-p")
    clock.advance(29)
    assert used(snapshot, "n") == 1000
    clock.advance(1)
    assert (used(snapshot, "n"), clock.timers) == (0, 0)


def test_a_confirmed_pod_does_not_expire() -> None:
    cache, snapshot, clock = setting(expire_after=30)
    cache.assume(info("p", requests={"cpu": "1"}), "n")
    cache.binding_finished("uid-p")
    cache.add_pod(pod("p", requests={"cpu": "1"}, node_name="n"))
    clock.advance(100)
    assert used(snapshot, "n") == 1000


def test_by_default_an_assumed_pod_stays() -> None:
    cache, snapshot, clock = setting()
    cache.assume(info("p", requests={"cpu": "1"}), "n")
    cache.binding_finished("uid-p")
    clock.advance(10_000)
    assert (used(snapshot, "n"), clock.timers) == (1000, 0)


def test_pods_on_a_node_that_is_gone_are_counted_when_it_comes_back() -> None:
    cache, snapshot, _ = setting()
    cache.add_pod(pod("p", requests={"cpu": "1"}, node_name="n"))
    cache.remove_node("n")
    assert snapshot.num_nodes == 1
    cache.set_node(node("n"))
    assert (used(snapshot, "n"), snapshot.num_nodes) == (1000, 2)
    assert cache.sizes() == {"nodes": 2, "pods": 1, "assumed_pods": 0}


def test_labels_that_the_server_copies_from_the_node_are_expected_once_that_is_known() -> None:
    zone = {"topology.kubernetes.io/zone": "z1"}
    cache, snapshot, _ = setting()
    cache.set_node(node("n", labels=zone))
    cache.assume(info("first", labels={"a": "b"}), "n")
    cache.add_pod(pod("first", labels={"a": "b", **zone}, node_name="n"))
    assert cache.assume(info("second", labels={"a": "b"}), "n").labels == {"a": "b", **zone}
    position = snapshot.pod_changes.position
    cache.add_pod(pod("second", labels={"a": "b", **zone}, node_name="n"))
    assert snapshot.pod_changes.position == position
    assert cache.assume(info("third"), "n").labels == zone
    cache.add_pod(pod("third", node_name="n"))  # a server that does not
    assert snapshot.info(snapshot.row_of["n"]).pods["uid-third"].labels == {}
    assert cache.assume(info("fourth"), "n").labels == {}
