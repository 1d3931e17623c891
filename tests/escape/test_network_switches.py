"""Parameters of the node's network and of a pod's own, which only users with permission for sysctls may set.

Vectors: forwarding, reverse path filters and `route_localnet` by /proc/sys/net, packet filters, interfaces of the node.
"""

from __future__ import annotations

import pytest
from escape.conftest import Inside
from escape.writing import refused

WRITES = {
    "ip_forward": "echo 0 > /proc/sys/net/ipv4/ip_forward",
    "route_localnet": "echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet",
    "accept_redirects": "echo 1 > /proc/sys/net/ipv4/conf/eth0/accept_redirects",
    "address": "ip addr add 10.200.0.1/24 dev eth0",
    "mac": "ip link set eth0 address 0a:58:0a:c8:00:01",
    "route": "ip route add 10.99.0.0/16 via 10.200.0.1",
    "neighbour": "ip neigh add 10.200.0.99 lladdr 0a:58:0a:c8:00:63 dev eth0",
    "promiscuous": "ip link set eth0 promisc on",
}


@pytest.mark.parametrize("vector", WRITES)
def test_it_cannot_be_written(inside: Inside, vector: str) -> None:
    refused(inside, WRITES[vector])
