"""What the kernel of a node needs for its peers."""

from __future__ import annotations

import ipaddress

from pybernetes.network.overlay.peers import Peer
from pybernetes.network.overlay.plan import plan


def peer(number: int, *addresses: str) -> Peer:
    ranges = (ipaddress.ip_network(f"10.244.{number}.0/24"), ipaddress.ip_network(f"fd00:{number}::/64"))
    return Peer(f"node-{number}", ranges, tuple(map(ipaddress.ip_address, addresses)))


def test_plain_routes_lead_through_an_address_of_their_own_ip_version() -> None:
    own, dual, single = peer(1, "192.0.2.1", "fd00::1"), peer(2, "192.0.2.2", "fd00::2"), peer(3, "192.0.2.3")
    made = plan("host-gw", own, [dual, single], {}, lambda _: 7)
    found = {(str(each.dst), str(each.gateway), each.link) for each in made.routes if each.gateway}
    assert found == {
        ("10.244.2.0/24", "192.0.2.2", 7),
        ("fd00:2::/64", "fd00::2", 7),
        ("10.244.3.0/24", "192.0.2.3", 7),
    }
    assert made.unrouted == {"node-3": "fd00:3::/64: nodes have no addresses of IPv6"}


def test_a_node_behind_a_router_is_left_to_the_routing_daemon() -> None:
    made = plan("host-gw", peer(1, "192.0.2.1"), [peer(2, "192.0.2.2")], {}, lambda _: None)
    assert not [each for each in made.routes if each.gateway]
    assert made.unrouted.keys() == {"node-2"}
