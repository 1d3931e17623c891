"""Ports of the node that lead to a pod, as elements of nftables' maps: for machines without iptables.

table ip cni-hostport
  host-ports            protocol, port -> pod's address and port
  host-address-ports    address, protocol, port -> the same, for mappings with a host IP
  masquerade            source range, pod: the pod's own network, and 127.0.0.0/8
  prerouting, output    to an address of this machine: look up, mark, translate
  postrouting           marked, and in `masquerade`: answers come back this way
"""

from __future__ import annotations

import ipaddress
import socket
import struct

from pybernetes.network.nftables import datatypes, objects
from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables.datatypes import IPV4, IPV6, PORT, PROTOCOL, concat
from pybernetes.network.nftables.objects import Chain, Element, Hook, Set, Table

from .. import owned_elements
from ..fields import Interface

NAME = "cni-hostport"
PORTS, ADDRESS_PORTS, MASQUERADE = "host-ports", "host-address-ports", "masquerade"
PROTOCOLS = {"tcp": socket.IPPROTO_TCP, "udp": socket.IPPROTO_UDP, "sctp": socket.IPPROTO_SCTP}
_LOOPBACK = ipaddress.ip_network("127.0.0.0/8")
Mapping = tuple[str, int, int, str]
"""Protocol, host port, container port, host IP."""


def layout(version: int, mark_bit: int = 13) -> owned_elements.Layout:
    """The table for an IP version."""
    address, number, words = (IPV4, e.IPV4, 1) if version == 4 else (IPV6, e.IPV6, 4)
    protocol = e.REGISTER + words
    port, target = protocol + 1, protocol + 2
    mark = struct.pack("=I", 1 << mark_bit)
    set_mark = [
        e.meta(e.MARK, e.REGISTER + 15),
        e.bitwise(e.REGISTER + 15, struct.pack("=I", ~(1 << mark_bit) & 0xFFFFFFFF), mark),
        e.set_meta(e.MARK, e.REGISTER + 15),
    ]
    load = [e.destination_address(number, e.REGISTER), e.meta(e.L4PROTO, protocol), e.destination_port(port)]
    translate = [*set_mark, e.dnat(number, target, target + words)]
    local = [e.address_type(e.REGISTER), e.compare(e.REGISTER, struct.pack("=I", e.LOCAL_TYPE)), e.jump("host-port")]
    marked = [e.meta(e.MARK, e.REGISTER), e.bitwise(e.REGISTER, mark), e.compare(e.REGISTER, bytes(4), e.NOT_EQUAL)]
    both = [e.source_address(number, e.REGISTER), e.destination_address(number, e.REGISTER + words)]
    table = Table("ip" if version == 4 else "ip6", NAME)
    target_type = concat(address, PORT)
    return owned_elements.Layout(
        table,
        [
            Set(PORTS, concat(PROTOCOL, PORT), target_type),
            Set(ADDRESS_PORTS, concat(address, PROTOCOL, PORT), target_type),
            Set(MASQUERADE, concat(address, address), interval=True),
        ],
        [
            (
                Chain("host-port"),
                [
                    [*load, e.lookup(ADDRESS_PORTS, e.REGISTER, target), *translate],
                    [*load[1:], e.lookup(PORTS, protocol, target), *translate],
                ],
            ),
            (Chain("prerouting", Hook("nat", objects.PREROUTING, objects.DSTNAT_PRIORITY)), [local]),
            (Chain("output", Hook("nat", objects.OUTPUT, objects.DSTNAT_PRIORITY)), [local]),
            (
                Chain("postrouting", Hook("nat", objects.POSTROUTING, objects.SRCNAT_PRIORITY)),
                [[*marked, *both, e.lookup(MASQUERADE, e.REGISTER), e.masquerade()]],
            ),
        ],
    )


def elements(mappings: list[Mapping], pod: Interface, snat: bool) -> dict[str, list[Element]]:
    """The elements of a pod."""
    found: dict[str, list[Element]] = {PORTS: [], ADDRESS_PORTS: [], MASQUERADE: []}
    for protocol, host_port, container_port, host_ip in mappings:
        host = ipaddress.ip_address(host_ip) if host_ip else None
        if host is not None and host.version != pod.version:
            continue
        key = datatypes.protocol(PROTOCOLS[protocol]) + datatypes.port(host_port)
        target = pod.ip.packed + datatypes.port(container_port)
        if host is not None and not host.is_unspecified:
            found[ADDRESS_PORTS].append(Element(host.packed + key, target))
        else:
            found[PORTS].append(Element(key, target))
    for network in (pod.network, *((_LOOPBACK,) if pod.version == 4 else ())) if snat else ():
        low, high = network.network_address.packed, network.broadcast_address.packed
        found[MASQUERADE].append(Element(low + pod.ip.packed, key_end=high + pod.ip.packed))
    return found
