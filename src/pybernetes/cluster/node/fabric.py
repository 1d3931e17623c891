"""The part of a cluster's network that is on the host: the bridge, its routes, and the way out for nodes and pods."""

from __future__ import annotations

import contextlib
import subprocess

from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.node import firewall
from pybernetes.cluster.node.netlink import Netlink
from pybernetes.cluster.node.network import NODES, Network, mac
from pybernetes.cluster.node.programs import find


def make(network: Network) -> None:
    """Makes the bridge; one that an earlier start of the same cluster left behind is replaced."""
    bridge = network.bridge
    with Netlink() as host:
        host.delete(bridge)
        host.add_bridge(bridge, mac(network.gateway))
        # A sender that is told of a shorter way by the host would forget it again and again.
        sysctl(f"net/ipv4/conf/{bridge}/send_redirects", "0")
        host.up(bridge)
        host.add_address(bridge, f"{network.gateway}/24")
        host.add_route(network.pods, bridge, source=network.gateway)


def open_way_out(network: Network) -> str | None:
    """Lets nodes and pods reach other networks under the host's address; says why not if that cannot be."""
    nft = find("nft")
    if nft is None:
        return "nft is not installed (Debian: nftables): nodes and pods reach nothing outside the cluster"
    result = subprocess.run([nft, "-f", "-"], input=_rules(network), capture_output=True, text=True)
    if result.returncode != 0:
        return f"nft refuses the rules for the way out: {result.stderr.strip().splitlines()[0]}"
    firewall.open_for(network)
    return None


def _rules(network: Network) -> str:
    inside = f"{{ {network.fabric}, {network.pods} }}"
    return f"""
table ip {network.bridge}
delete table ip {network.bridge}
table ip {network.bridge} {{
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {inside} ip daddr != {inside} oifname != "{network.bridge}" masquerade
  }}
}}
"""


def remove(network: Network) -> None:
    """Takes away all of it; the cables go with the bridge. What is gone already does not matter."""
    with Netlink() as host:
        host.delete(network.bridge)
        for node in range(1, NODES + 1):
            host.delete(network.port(node))
    firewall.close_for(network)
    nft = find("nft")
    if nft is not None:
        rules = f"table ip {network.bridge}\ndelete table ip {network.bridge}\n"
        subprocess.run([nft, "-f", "-"], input=rules, capture_output=True, text=True)


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


def read_sysctl(name: str) -> str | None:
    """A kernel parameter, None if there is none."""
    with contextlib.suppress(OSError), open(f"/proc/sys/{name}") as file:
        return file.read().strip()
    return None
