"""Nodes that cannot be read are left out by name and reason; all others are served."""

from __future__ import annotations

from network.overlay.lab import node

from pybernetes.network.overlay import peers
from pybernetes.network.overlay.plan import Device, plan, vtep_mac


def test_a_bad_node_costs_no_other_its_routes() -> None:
    nodes = [
        node("a"),
        node("b", ranges=["10.244.1.128/25"]),  # inside the range of a
        node("c", address="127.0.0.1"),
        node("d", "10.90.1.4", ["0.0.0.0/1"]),
        node("e", "10.90.1.5", ["10.244.5.0/24"]),
        node("f", "10.90.1.6", []),  # the controllers have not given it one yet
    ]
    found, problems = peers.readable(nodes)
    assert [peer.name for peer in found] == ["a", "e"]
    assert problems == {
        "b": "spec.podCIDRs: overlaps with that of node a",
        "c": "status.addresses: 127.0.0.1 is not the address of a node",
        "d": "spec.podCIDRs[0]: 0.0.0.0/1 is too large a range for one node",
    }
    made = plan("vxlan", found[0], found[1:], {4: Device(7, 4)}, lambda _: None)
    assert {str(route.dst) for route in made.routes} == {"10.244.1.0/24", "fd00:1::/64", "10.244.5.0/24"}
    assert [entry.mac for entry in made.forwarding] == [vtep_mac(found[1].ranges[0])] == ["0a:58:0a:f4:05:00"]
