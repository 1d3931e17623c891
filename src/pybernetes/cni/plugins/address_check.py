"""Drops what a pod sends under another address than its own: IP, ARP, neighbour and hardware addresses.

NET_RAW is among the usual capabilities of a container, so without this each pod could answer for the gateway or for
other pods, and read what is sent to them. Nothing goes to the node's loopback either, nor from a link-local address to
one of the node or of a pod. Each pod's port has a chain at
its way in (`ingress`), which the kernel removes together with the port: there is nothing to clean up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables import objects
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.errors import NftablesError
from pybernetes.network.nftables.objects import Chain, Hook, Table

from ..fields import Address

TABLE = Table("netdev", "pybernetes-ports")
_ARP, _IPV4, _IPV6 = b"\x08\x06", b"\x08\x00", b"\x86\xdd"
_ICMPV6 = b"\x3a"
_ROUTER_ADVERTISEMENT, _NEIGHBOUR_ADVERTISEMENT, _REDIRECT = b"\x86", b"\x88", b"\x89"
_LINK_LOCAL, _LINK_LOCAL_MASK = b"\xfe\x80", b"\xff\xc0"
_R = e.REGISTER

log = logging.getLogger(__name__)


def protect(port: str, mac: str, addresses: Iterable[Address]) -> None:
    """Let a port take only what its pod sends under its own addresses.

    On a kernel that cannot do it, pods have their network all the same, and the log says what is missing.
    """
    batch = Batch()
    batch.add_table(TABLE)
    batch.add_chain(TABLE, Chain(port, Hook("filter", objects.INGRESS, 0, e.DROP, port)))
    for rule in rules(bytes.fromhex(mac.replace(":", "")), addresses):
        batch.add_rule(TABLE, port, rule)
    try:
        with Nftables() as nftables:
            nftables.commit(batch)
    except (NftablesError, OSError) as error:
        log.warning("Addresses that pods send under are not checked on port %s: %s", port, error)


def rules(mac: bytes, addresses: Iterable[Address]) -> list[list[bytes]]:
    """The rules of a port's chain, behind which everything is dropped (pure)."""
    drop, accept = e.verdict(e.DROP), e.verdict(e.ACCEPT)
    own = list(addresses)
    arp = [address.packed for address in own if address.version == 4]
    found = [[e.payload(e.LINK, 6, 6, _R), e.compare(_R, mac, e.NOT_EQUAL), drop]]
    for packed in (*arp, bytes(4)):  # none at all: is the address free?
        found.append([*_of(_ARP), e.payload(e.NETWORK, 8, 10, _R), e.compare(_R, mac + packed), accept])
    # hostPorts let the bridge route to the node's loopback, for what the node itself sends (CVE-2020-8558).
    loopback = [e.payload(e.NETWORK, 16, 1, _R), e.compare(_R, b"\x7f")]
    found.append([*_of(_IPV4), *loopback, drop])
    found += [[*_of(_IPV4), e.source_address(e.IPV4, _R), e.compare(_R, packed), accept] for packed in arp]
    found += [[*_icmp(kind), drop] for kind in (_ROUTER_ADVERTISEMENT, _REDIRECT)]
    target = e.payload(e.TRANSPORT, 8, 16, _R)
    ours = [address.packed for address in own if address.version == 6]
    found += [[*_icmp(_NEIGHBOUR_ADVERTISEMENT), target, e.compare(_R, packed), accept] for packed in ours]
    found.append([*_icmp(_NEIGHBOUR_ADVERTISEMENT), *_link_local(e.TRANSPORT), accept])
    found.append([*_icmp(_NEIGHBOUR_ADVERTISEMENT), drop])
    found += [
        [*_of(_IPV6), e.source_address(e.IPV6, _R), e.compare(_R, packed), accept] for packed in (*ours, bytes(16))
    ]
    # Policies know pods by their addresses: nothing but what finds neighbours goes to one under a link-local address.
    neighbours = [e.meta(e.L4PROTO, _R), e.compare(_R, _ICMPV6)]
    multicast = [e.payload(e.NETWORK, 24, 1, _R), e.compare(_R, b"\xff")]
    found += [[*_of(_IPV6), *_link_local(e.NETWORK), *which, accept] for which in (neighbours, multicast)]
    return found


def _of(protocol: bytes) -> list[bytes]:
    return [e.payload(e.LINK, 12, 2, _R), e.compare(_R, protocol)]


def _icmp(kind: bytes) -> list[bytes]:
    transport = [e.meta(e.L4PROTO, _R), e.compare(_R, _ICMPV6)]
    return [*_of(_IPV6), *transport, e.payload(e.TRANSPORT, 0, 1, _R), e.compare(_R, kind)]


def _link_local(base: int) -> list[bytes]:
    """Of the source of an IPv6 header, or of the target of an advertisement: both begin at their eighth byte."""
    return [e.payload(base, 8, 2, _R), e.bitwise(_R, _LINK_LOCAL_MASK), e.compare(_R, _LINK_LOCAL)]
