"""Hides a pod's address from everything outside its network (`ipMasq`).

With iptables the pod has a chain in the nat table, as Debian's plugin makes it. With nftables (`ipMasqBackend:
nftables`, and where iptables is not installed) it is an element of a set, and no program is needed.
"""

from __future__ import annotations

import ipaddress

from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables import objects
from pybernetes.network.nftables.datatypes import IPV4, IPV6, concat
from pybernetes.network.nftables.objects import Chain as NftChain
from pybernetes.network.nftables.objects import Element, Hook, Set, Table

from .. import owned_elements
from ..fields import Interface
from ..iptables import Chain, Nat, chain_name, installed

_MULTICAST = {4: "224.0.0.0/4", 6: "ff00::/8"}
PODS, INSIDE = "pods", "inside"


def ensure(network: str, container_id: str, pod: Interface, backend: str = "") -> None:
    """Masquerades what leaves the pod for other networks; multicast stays as it is."""
    if backend == "nftables" or (not backend and not installed()):
        first, last = pod.network.network_address.packed, pod.network.broadcast_address.packed
        inside = Element(pod.ip.packed + first, key_end=pod.ip.packed + last)
        elements = {PODS: [Element(pod.ip.packed)], INSIDE: [inside]}
        owned_elements.put(_layout(pod.version), owned_elements.owner(network, container_id), elements)
        return
    chain = chain_name(network, container_id)
    note = ("-m", "comment", "--comment", f'name: "{network}" id: "{container_id}"')
    rules = [
        ("-d", str(pod), "-j", "ACCEPT", *note),
        ("!", "-d", _MULTICAST[pod.version], "-j", "MASQUERADE", *note),
    ]
    # The table keeps hosts with the length of their prefix.
    host = f"{pod.ip}/{pod.max_prefixlen}"
    Nat(pod.version).ensure([Chain(chain, rules, [("POSTROUTING", ("-s", host, *note))], own=True)])


def remove(network: str, container_id: str, version: int) -> None:
    """Takes the pod's chain and elements away, if they are there."""
    owner = owned_elements.owner(network, container_id)
    owned_elements.remove(_layout(version), lambda comment: comment == owner)
    if installed():
        Nat(version).remove([chain_name(network, container_id)])


def sweep(network: str, valid: set[str]) -> None:
    """Takes away the chains and elements of all other pods of the network."""
    for table in (Nat(4), Nat(6)):
        owned_elements.sweep(_layout(table.version), network, valid)
        if table.usable():
            table.sweep(network, "", valid)


def _layout(version: int) -> owned_elements.Layout:
    """A table with the pods whose packets are masqueraded, and the ranges that each of them reaches as it is."""
    address, number, words = (IPV4, e.IPV4, 1) if version == 4 else (IPV6, e.IPV6, 4)
    source, destination = e.REGISTER, e.REGISTER + words
    multicast = ipaddress.ip_network(_MULTICAST[version])
    from_pod = [e.source_address(number, source), e.lookup(PODS, source), e.jump("leaving")]
    load = [e.source_address(number, source), e.destination_address(number, destination)]
    to_many = [
        e.destination_address(number, destination),
        e.bitwise(destination, multicast.netmask.packed),
        e.compare(destination, multicast.network_address.packed),
    ]
    leaving = [
        [*load, e.lookup(INSIDE, source), e.verdict(e.RETURN)],
        [*to_many, e.verdict(e.RETURN)],
        [e.masquerade()],
    ]
    hook = Hook("nat", objects.POSTROUTING, objects.SRCNAT_PRIORITY)
    return owned_elements.Layout(
        Table("ip" if version == 4 else "ip6", "cni-masquerade"),
        [Set(PODS, address), Set(INSIDE, concat(address, address), interval=True)],
        [(NftChain("leaving"), leaving), (NftChain("postrouting", hook), [from_pod])],
    )
