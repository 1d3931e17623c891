"""The address of cluster DNS on this node: every node has it on its loopback device and answers there itself.

So a lookup never leaves the node. No connection is tracked for it (`notrack`): nothing is translated, and many short
lookups do not fill the kernel's table.
"""

from __future__ import annotations

import contextlib
import ipaddress

from pybernetes.cni.netlink.rtnl import Netlink
from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables import objects
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.objects import Chain, Hook, Table

NAME = "node-dns"
RAW_PRIORITY = -300
_PORT = (53).to_bytes(2, "big")


def hold(address: str) -> None:
    """Gives the node the address of cluster DNS, and the rules for it."""
    with Netlink() as links, contextlib.suppress(FileExistsError):
        links.add_address(links.link("lo").index, ipaddress.ip_interface(address))
    with Nftables() as kernel:
        kernel.commit(rules(address))


def rules(address: str) -> Batch:
    """A table that keeps lookups and their answers out of connection tracking."""
    ip = ipaddress.ip_address(address)
    number = e.IPV4 if ip.version == 4 else e.IPV6
    table = Table("ip" if ip.version == 4 else "ip6", NAME)
    batch = Batch()
    batch.replace_table(table)
    asked = [e.destination_address(number, e.REGISTER), e.compare(e.REGISTER, ip.packed)]
    answered = [e.source_address(number, e.REGISTER), e.compare(e.REGISTER, ip.packed)]
    for name, hook in (("prerouting", objects.PREROUTING), ("output", objects.OUTPUT)):
        batch.add_chain(table, Chain(name, Hook("filter", hook, RAW_PRIORITY)))
        for address_matches, offset in ((asked, 2), (answered, 0)):
            port = [e.payload(e.TRANSPORT, offset, 2, e.REGISTER), e.compare(e.REGISTER, _PORT)]
            batch.add_rule(table, name, [*address_matches, *port, e.notrack()])
    return batch
