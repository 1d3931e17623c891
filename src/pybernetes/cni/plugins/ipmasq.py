"""Hides a pod's address from everything outside its network (`ipMasq`): a chain for the pod in the nat table."""

from __future__ import annotations

from ..fields import Interface
from ..iptables import Chain, Nat, chain_name

_MULTICAST = {4: "224.0.0.0/4", 6: "ff00::/8"}


def ensure(network: str, container_id: str, pod: Interface) -> None:
    """Masquerades what leaves the pod for other networks; multicast stays as it is."""
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
    """Takes the pod's chain away, if it is there."""
    Nat(version).remove([chain_name(network, container_id)])


def sweep(network: str, valid: set[str]) -> None:
    """Takes away the chains of all other pods of the network."""
    for table in (Nat(4), Nat(6)):
        if table.usable():
            table.sweep(network, "", valid)
