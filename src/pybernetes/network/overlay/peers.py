"""Nodes as the overlay sees them: pod ranges, addresses, and what other nodes' agents recorded in annotations.

A Node whose fields cannot be read is left out with a reason, so that it does not stop the routes to all others.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pybernetes.api.core.v1 import Node
from pybernetes.cni.fields import Address, Network

PREFIX = "network.pybernetes.io/"
BACKEND = f"{PREFIX}backend"
PUBLIC_ADDRESSES = f"{PREFIX}public-ips"
"""Under which addresses other nodes reach this one; what the agent found."""
OVERWRITE = f"{PREFIX}public-ips-overwrite"
"""Set by administrators: addresses to use instead, comma separated."""
MTU = f"{PREFIX}mtu"

_SHORTEST = {4: 8, 6: 16}
"""Pod ranges that are larger than this are mistakes: such a route would take most of the Internet."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A node: its pod ranges, and its addresses in the order of preference."""

    name: str
    ranges: tuple[Network, ...]
    addresses: tuple[Address, ...]

    def address(self, version: int) -> Address | None:
        """Its first address of an IP version."""
        return next((each for each in self.addresses if each.version == version), None)


def name_of(node: Node) -> str:
    """The name of a Node."""
    return (node.metadata.name if node.metadata else "") or ""


def annotations_of(node: Node) -> Mapping[str, str]:
    """The annotations of a Node."""
    return (node.metadata.annotations if node.metadata else None) or {}


def read(node: Node) -> Peer:
    """The node as a peer; raises ValueError with the field that is wrong."""
    return Peer(name_of(node), _ranges(node), _addresses(node))


def readable(nodes: Iterable[Node]) -> tuple[list[Peer], dict[str, str]]:
    """All nodes that can be reached, by name, and why others cannot: name -> reason.

    Of two nodes with overlapping ranges the first by name is kept, so that two never take turns.
    """
    found: list[Peer] = []
    problems: dict[str, str] = {}
    for node in sorted(nodes, key=name_of):
        name = name_of(node)
        try:
            peer = read(node)
        except ValueError as error:
            problems[name] = str(error)
            continue
        if not peer.ranges or not peer.addresses:
            continue  # not yet known; its next change brings them
        other = _overlapping(peer, found)
        if other is None:
            found.append(peer)
        else:
            problems[name] = f"spec.podCIDRs: overlaps with that of node {other}"
    return found, problems


def _overlapping(peer: Peer, others: Iterable[Peer]) -> str | None:
    for other in others:
        for mine in peer.ranges:
            if any(overlap(mine, theirs) for theirs in other.ranges):
                return other.name
    return None


def overlap(first: Network, second: Network) -> bool:
    """Whether two ranges have an address in common."""
    if isinstance(first, ipaddress.IPv4Network) and isinstance(second, ipaddress.IPv4Network):
        return first.overlaps(second)
    if isinstance(first, ipaddress.IPv6Network) and isinstance(second, ipaddress.IPv6Network):
        return first.overlaps(second)
    return False


def _ranges(node: Node) -> tuple[Network, ...]:
    spec = node.spec
    texts = (spec.pod_cidrs or ([spec.pod_cidr] if spec.pod_cidr else [])) if spec else []
    found = []
    for index, text in enumerate(texts):
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            raise ValueError(f"spec.podCIDRs[{index}]: {error}") from None
        if network.prefixlen < _SHORTEST[network.version]:
            raise ValueError(f"spec.podCIDRs[{index}]: {text} is too large a range for one node")
        found.append(network)
    return tuple(found)


def _addresses(node: Node) -> tuple[Address, ...]:
    annotations = annotations_of(node)
    for key in (OVERWRITE, PUBLIC_ADDRESSES):
        if annotations.get(key):
            texts = [each.strip() for each in annotations[key].split(",")]
            return tuple(_address(each, f"metadata.annotations[{key}]") for each in texts)
    status = node.status
    listed = (status.addresses or []) if status else []
    internal = [each.address or "" for each in listed if each.type == "InternalIP"]
    return tuple(_address(each, "status.addresses") for each in internal)


def _address(text: str, field: str) -> Address:
    try:
        found = ipaddress.ip_address(text)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None
    if found.is_loopback or found.is_multicast or found.is_unspecified:
        raise ValueError(f"{field}: {text} is not the address of a node")
    return found
