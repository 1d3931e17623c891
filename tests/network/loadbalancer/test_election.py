"""Which node answers for an address."""

from __future__ import annotations

from typing import Any

import msgspec

from pybernetes.api.core.v1 import Node, Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.network.loadbalancer import election
from pybernetes.network.loadbalancer.election import SILENT_AFTER, Heartbeats, announcer, candidates, with_endpoints

NODES = frozenset(f"node-{number}" for number in range(1, 6))


def node(name: str, ready: str = "True", labels: dict[str, str] | None = None) -> Node:
    content = {
        "metadata": {"name": name, "labels": labels or {}},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    return msgspec.convert(content, Node)


def endpoints(*rows: tuple[str, bool, bool]) -> EndpointSlice:
    """Each row: node, ready, terminating (and still serving)."""
    made: list[dict[str, Any]] = [
        {
            "addresses": ["10.0.0.1"],
            "nodeName": name,
            "conditions": {"ready": ready, "serving": True, "terminating": terminating},
        }
        for name, ready, terminating in rows
    ]
    return msgspec.convert({"addressType": "IPv4", "endpoints": made}, EndpointSlice)


def service(policy: str) -> Service:
    return msgspec.convert({"spec": {"type": "LoadBalancer", "externalTrafficPolicy": policy}}, Service)


def test_every_node_agrees_and_addresses_are_spread() -> None:
    chosen = [announcer(f"192.0.2.{number}", NODES) for number in range(100)]
    assert chosen == [announcer(f"192.0.2.{number}", sorted(NODES)) for number in range(100)]
    assert all(chosen.count(name) >= 8 for name in NODES)


def test_a_node_that_goes_moves_only_its_own_addresses() -> None:
    left = NODES - {"node-3"}
    for number in range(100):
        before, after = (announcer(f"192.0.2.{number}", nodes) for nodes in (NODES, left))
        assert after == before or before == "node-3"


def test_no_candidate_is_no_announcer() -> None:
    assert announcer("192.0.2.1", frozenset()) == ""


def test_nodes_that_are_not_ready_silent_or_excluded_do_not_answer() -> None:
    nodes = [
        node("good"),
        node("bad", "False"),
        node("lost", "Unknown"),
        node("silent"),
        node("not", labels={election.EXCLUDED_LABEL: ""}),
    ]
    assert candidates(nodes, frozenset({"silent"})) == {"good"}
    assert candidates(nodes[1:], frozenset({"silent"})) == {"bad", "lost", "silent"}


def test_with_local_policy_only_nodes_with_endpoints_answer() -> None:
    slices = [endpoints(("node-1", True, False), ("node-2", False, True), ("gone", True, False))]
    assert with_endpoints(service("Cluster"), slices, NODES) == NODES
    assert with_endpoints(service("Local"), slices, NODES) == {"node-1"}
    assert with_endpoints(service("Local"), [endpoints(("node-2", False, True))], NODES) == {"node-2"}
    assert with_endpoints(service("Local"), [endpoints(("node-2", False, False))], NODES) == frozenset()


def test_an_address_that_two_services_have_in_their_status_is_the_first_ones() -> None:
    claims = {"192.0.2.1": [(("b", "x"), frozenset({"node-2"})), (("a", "y"), frozenset({"node-1"}))]}
    assert election.shares(claims) == {"192.0.2.1": frozenset({"node-1"})}


def test_a_node_is_silent_when_its_lease_stands_still_and_ours_does_not() -> None:
    beats = Heartbeats("me")
    beats.note("me", "1", 0.0)
    beats.note("other", "1", 0.0)
    beats.note("other", "1", 20.0)  # the same Lease once more is no sign of life
    beats.note("me", "2", SILENT_AFTER)
    assert beats.silent(SILENT_AFTER) == frozenset()
    assert beats.silent(SILENT_AFTER + 1) == {"other"}
    beats.note("other", "2", SILENT_AFTER + 2)
    assert beats.silent(SILENT_AFTER + 2) == frozenset()


def test_without_the_api_server_no_node_counts_as_silent() -> None:
    beats = Heartbeats("me")
    for name in ("me", "other"):
        beats.note(name, "1", 0.0)
    assert beats.silent(1000.0) == frozenset()


def test_the_next_look_is_when_a_node_could_become_silent() -> None:
    beats = Heartbeats("me")
    beats.note("me", "1", 0.0)
    assert beats.next_change(5.0) == SILENT_AFTER
    beats.note("other", "1", 3.0)
    assert beats.next_change(5.0) == SILENT_AFTER - 2.0
