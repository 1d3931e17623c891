"""The part of a cluster's network that is on the host: the bridge, its routes, and the way out for nodes and pods."""

from __future__ import annotations

import contextlib
import ipaddress

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.node import firewall
from pybernetes.cluster.node.netlink import Netlink
from pybernetes.cluster.node.network import NODES, Network, mac
from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables import objects
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.objects import Chain, Hook, Table


def make(network: Network, *, dual: bool = False) -> None:
    """Makes the bridge; one that an earlier start of the same cluster left behind is replaced."""
    bridge = network.bridge
    with Netlink() as host:
        host.delete(bridge)
        host.add_bridge(bridge, mac(network.gateway))
        # Redirects would only add routes that senders forget again and again.
        sysctl(f"net/ipv4/conf/{bridge}/send_redirects", "0")
        host.up(bridge)
        host.add_address(bridge, f"{network.gateway}/24")
        host.add_route(network.pods, bridge, source=network.gateway)
        if dual:
            sysctl(f"net/ipv6/conf/{bridge}/accept_dad", "0")
            sysctl(f"net/ipv6/conf/{bridge}/accept_ra", "0")
            host.add_address(bridge, f"{network.gateway6}/64")


def open_way_out(network: Network) -> str | None:
    """Masquerades what nodes and pods send to other networks; returns why that cannot be done, if it cannot."""
    try:
        with Nftables() as kernel:
            kernel.commit(_masquerade(network))
    except OSError as error:
        return f"{error}: nodes and pods reach nothing outside the cluster"
    firewall.open_for(network)
    return None


def _masquerade(network: Network) -> Batch:
    """Replaces the network's table: packets from nodes and pods to elsewhere leave with the host's address."""
    table = Table("ip", network.bridge)
    inside = [ipaddress.IPv4Network(each) for each in (network.fabric, network.pods)]
    batch = Batch()
    batch.replace_table(table)
    batch.add_chain(table, Chain("postrouting", Hook("nat", objects.POSTROUTING, objects.SRCNAT_PRIORITY)))
    batch.add_chain(table, Chain("leaving"))
    register = e.REGISTER
    for each in inside:
        rule = [e.source_address(e.IPV4, register), *_in_network(each), e.jump("leaving")]
        batch.add_rule(table, "postrouting", rule)
    for each in inside:
        rule = [e.destination_address(e.IPV4, register), *_in_network(each), e.verdict(e.RETURN)]
        batch.add_rule(table, "leaving", rule)
    bridge = network.bridge.encode().ljust(16, b"\0")
    batch.add_rule(
        table, "leaving", [e.meta(e.OIFNAME, register), e.compare(register, bridge, e.NOT_EQUAL), e.masquerade()]
    )
    return batch


def _in_network(network: ipaddress.IPv4Network) -> list[bytes]:
    """Goes on if the address in the first register is of the network."""
    mask = e.bitwise(e.REGISTER, network.netmask.packed)
    return [mask, e.compare(e.REGISTER, network.network_address.packed)]


def remove(network: Network) -> None:
    """Takes away all of it; the cables go with the bridge. What is gone already does not matter."""
    with Netlink() as host:
        host.delete(network.bridge)
        for node in range(1, NODES + 1):
            host.delete(network.port(node))
    firewall.close_for(network)
    table = Table("ip", network.bridge)
    batch = Batch()
    batch.add_table(table)
    batch.delete_table(table)
    with contextlib.suppress(OSError), Nftables() as kernel:
        kernel.commit(batch)


def sysctl(name: str, value: str) -> None:
    """Sets a kernel parameter of this network namespace, unless it is so already."""
    path = f"/proc/sys/{name}"
    with open(path) as file:
        if file.read().strip() == value:
            return
    try:
        with open(path, "w") as file:
            file.write(value)
    except OSError as error:
        raise ClusterError(f"cannot set {path} to {value}: {error.strerror}") from error


def has_ipv6() -> bool:
    """Whether links of this machine can have IPv6 addresses."""
    return read_sysctl("net/ipv6/conf/default/disable_ipv6") == "0"


def read_sysctl(name: str) -> str | None:
    """A kernel parameter, None if there is none."""
    with contextlib.suppress(OSError), open(f"/proc/sys/{name}") as file:
        return file.read().strip()
    return None
