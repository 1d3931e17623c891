"""Computes the kernel state of a node for its peers: routes, neighbours, forwarding entries. Pure.

The layout of VXLAN is flannel's: a device of a pinned MAC has the first address of the node's range; a peer's range is
routed to the first address of that range over the device (`onlink`), a permanent neighbour entry turns that address
into the peer's MAC, and a forwarding entry turns the MAC into the peer's address. So nothing is ever learned, asked for
or flooded. Peers on the same link get a plain route where that was asked for (`direct`) or is the backend (`host-gw`);
with `host-gw`, those behind a router are left to the routing daemon of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pybernetes.cni.fields import Address, Network
from pybernetes.cni.netlink.rtnl import UNREACHABLE, Route

from .peers import Peer

BACKENDS = ("vxlan", "host-gw", "udp")
PROTOCOL = 80
"""The origin (`proto`) of our routes in the kernel's table: no other program has this number."""
OWN_RANGE_PRIORITY = 65535
"""Behind the route of the pods' bridge, which has none."""
VXLAN_OVERHEAD = {4: 50, 6: 70}
"""Bytes of Ethernet, VXLAN, UDP and IP headers around a packet, by IP version."""
UDP_OVERHEAD = {4: 38, 6: 58}
"""The same of UDP and IP headers, and ten bytes that say which work the kernel has left for later."""


@dataclass(frozen=True, slots=True)
class Device:
    """A tunnel device of this node; `version` is the IP version of the packets between nodes."""

    index: int
    version: int


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A permanent neighbour entry."""

    link: int
    address: Address
    mac: str


@dataclass(frozen=True, slots=True)
class Forwarding:
    """An entry of a VXLAN device: frames to the MAC are sent to the address of a node."""

    link: int
    mac: str
    address: Address


@dataclass(slots=True)
class Plan:
    """The desired kernel state. `tunnels`: range -> address of the node to send to, for the backend `udp`."""

    routes: set[Route] = field(default_factory=set)
    neighbours: set[Neighbour] = field(default_factory=set)
    forwarding: set[Forwarding] = field(default_factory=set)
    tunnels: dict[Network, Address] = field(default_factory=dict)
    unrouted: dict[str, str] = field(default_factory=dict)
    """Peers that no route leads to, and why."""


def pod_mtu(backend: str, link_mtu: int, version: int = 4) -> int:
    """The size of pods' packets that fit over a link of this size; 0 for the link's own."""
    overhead = {"vxlan": VXLAN_OVERHEAD, "udp": UDP_OVERHEAD}.get(backend)
    return link_mtu - overhead[version] if overhead else link_mtu


def vtep_mac(network: Network) -> str:
    """The MAC of a node's VXLAN device: it follows from the node's range, so it stays over restarts."""
    packed = network.network_address.packed
    tail = packed if len(packed) == 4 else packed[:8][-4:]
    return "0a:58:" + tail.hex(":")


def underlay(own: Peer, peer: Peer) -> int | None:
    """The IP version in which two nodes send each other packets: IPv4 if both have it; None if none is common."""
    return next((each for each in (4, 6) if own.address(each) and peer.address(each)), None)


def versions(own: Peer, peers: Iterable[Peer]) -> set[int]:
    """The IP versions in which this node sends packets to any of the peers."""
    found = {underlay(own, peer) for peer in peers}
    return {version for version in found if version}


def plan(
    backend: str,
    own: Peer,
    peers: Iterable[Peer],
    devices: dict[int, Device],
    on_link: Callable[[Address], int | None],
    *,
    direct: bool = False,
) -> Plan:
    """The plan for a node. `devices` by IP version; `on_link` is the number of the link an address is on without a
    router, None if there is one between."""
    made = Plan()
    for network in own.ranges:
        # Packets to addresses that no pod has must not leave by the default route and come back.
        lost = Route(network, priority=OWN_RANGE_PRIORITY, protocol=PROTOCOL, kind=UNREACHABLE)
        made.routes.add(lost)
    for peer in peers:
        version = underlay(own, peer)
        if version is None:
            made.unrouted[peer.name] = "it has no address of an IP version that this node has"
            continue
        address = peer.address(version)
        assert address is not None
        for network in peer.ranges:
            # A plain route is by an address of the range's own IP version.
            near = peer.address(network.version) if own.address(network.version) else None
            link = on_link(near) if near and (direct or backend == "host-gw") else None
            if link is not None:
                made.routes.add(Route(network, near, link, protocol=PROTOCOL))
            elif backend == "host-gw":
                made.unrouted[peer.name] = (
                    "it is behind a router; its routes are left to the routing daemon of this machine"
                    if near
                    else f"{network}: nodes have no addresses of IPv{network.version}"
                )
            elif version in devices:
                _tunnel(made, backend, devices[version], peer, network, address)
    return made


def _tunnel(made: Plan, backend: str, device: Device, peer: Peer, network: Network, address: Address) -> None:
    if backend == "udp":
        made.routes.add(Route(network, None, device.index, scope=253, protocol=PROTOCOL))
        made.tunnels[network] = address
        return
    gateway, mac = network.network_address, vtep_mac(peer.ranges[0])
    made.routes.add(Route(network, gateway, device.index, protocol=PROTOCOL, onlink=True))
    made.neighbours.add(Neighbour(device.index, gateway, mac))
    made.forwarding.add(Forwarding(device.index, mac, address))
