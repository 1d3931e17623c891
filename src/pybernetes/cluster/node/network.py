"""The addresses of a cluster with nodes: a bridge of the host is the switch, and each node has a cable to it.

    host   pybK     10.245.K.1      the API server listens there; the way of the nodes to other networks
    nodes  eth0     10.245.K.2 ...  one address a node
    Services        10.245.K.128 ...  addresses of type LoadBalancer, announced by a node each
    pods            10.244.0.0/16   (10.128+K-1 for further clusters), a /24 for each node, given by the controllers

With `--ip-family dual` nodes have an address of fd00:10:245:K::/64 too, and pods one of fd00:10:244:K00::/56. These
stay inside the cluster: this machine forwards no IPv6, as that would change how it is configured itself.

Nodes have a route for each other node's pods (`network.overlay`). The host takes the pods' whole range to be on the
switch, and a node answers there (proxy ARP) for the pods it has itself: it needs no route for each node, whichever
component gives the nodes their ranges.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass

NETWORKS = 100
NODES = 100
CABLE_MTU = 1500
CLUSTER6 = "fd00:10::/32"
"""Nodes, pods and Services of dual-stack clusters: where pods have an IPv6 route to."""
SERVICES6 = "fd00:10:96::/112"
"""Of the same clusters: Services that ask for both IP versions."""
KINDS = ("vxlan", "host-gw", "udp", "none", "cni")
"""`up --network`: how nodes reach each other's pods; `none`: pods have no network; `cni`: others bring it."""


@dataclass(frozen=True, slots=True)
class Network:
    """The K-th network of this machine; clusters that run at the same time have different ones."""

    index: int

    @property
    def bridge(self) -> str:
        return f"pyb{self.index}"

    @property
    def fabric(self) -> str:
        return f"10.245.{self.index}.0/24"

    @property
    def pods(self) -> str:
        return f"10.{244 if self.index == 0 else 127 + self.index}.0.0/16"

    @property
    def load_balancers(self) -> str:
        """Where Services of type LoadBalancer get addresses from: behind those of nodes, on the same link."""
        return f"10.245.{self.index}.128-10.245.{self.index}.254"

    @property
    def gateway(self) -> str:
        return f"10.245.{self.index}.1"

    @property
    def pods6(self) -> str:
        """A /64 for each node out of it."""
        return f"fd00:10:244:{self.index:x}00::/56"

    @property
    def load_balancers6(self) -> str:
        return f"fd00:10:245:{self.index:x}::80-fd00:10:245:{self.index:x}::fe"

    @property
    def gateway6(self) -> str:
        return self.address6(0)

    def address6(self, node: int) -> str:
        """The IPv6 address of a node of a dual-stack cluster."""
        return str(ipaddress.IPv6Address(f"fd00:10:245:{self.index:x}::{node + 1:x}"))

    def port(self, node: int) -> str:
        """The name of a node's port on the bridge; nodes count from 1."""
        return f"{self.bridge}n{node}"

    def address(self, node: int) -> str:
        """The address of a node."""
        return f"10.245.{self.index}.{node + 1}"

    def overlaps(self, network: ipaddress.IPv4Network) -> bool:
        """Whether one of its ranges meets this one."""
        return any(network.overlaps(ipaddress.IPv4Network(own)) for own in (self.fabric, self.pods))


def mac(address: str) -> str:
    """A MAC that follows from the address, as CNI's bridge plugin makes them."""
    return "0a:58:" + ":".join(f"{byte:02x}" for byte in ipaddress.IPv4Address(address).packed)


def choose(first: int, taken: Collection[int], routed: Iterable[tuple[str, ipaddress.IPv4Network]]) -> Network | None:
    """The first network, from `first` on, that no other cluster has and this machine does not route elsewhere."""
    elsewhere = list(routed)
    for step in range(NETWORKS):
        network = Network((first + step) % NETWORKS)
        if network.index not in taken and conflict(network, elsewhere) is None:
            return network
    return None


def conflict(network: Network, routed: Iterable[tuple[str, ipaddress.IPv4Network]]) -> str | None:
    """The link over which a part of the network is routed already, other than its own bridge."""
    for link, destination in routed:
        if link != network.bridge and destination.prefixlen and network.overlaps(destination):
            return link
    return None


def routes(table: str) -> list[tuple[str, ipaddress.IPv4Network]]:
    """Links and destinations of /proc/net/route."""
    found = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        destination, mask = (int.from_bytes(bytes.fromhex(fields[column])[::-1], "big") for column in (1, 7))
        found.append((fields[0], ipaddress.IPv4Network((destination, mask.bit_count()))))
    return found
