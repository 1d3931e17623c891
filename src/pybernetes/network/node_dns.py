"""The address of cluster DNS on this node: every node has it on its loopback device and answers there itself.

So a lookup never leaves the node. No connection is tracked for it (`notrack`): nothing is translated, and many short
lookups do not fill the kernel's table. `keep` puts the address and the rules back when somebody else takes them away.
"""

from __future__ import annotations

import contextlib
import ipaddress

from pybernetes.cni.netlink.rtnl import Netlink
from pybernetes.network import keeping
from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables import objects
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.objects import Chain, Hook, Table

NAME = "node-dns"
RAW_PRIORITY = -300
_PORT = (53).to_bytes(2, "big")
_RULES = 4


def hold(address: str) -> None:
    """Gives the node the address of cluster DNS, and the rules for it."""
    with Nftables() as nftables:
        _hold(nftables, address)


async def keep(address: str) -> None:
    """Hold the address until cancelled, whatever others do. OSError if the kernel refuses it at the start."""
    await keeping.keep(
        "the address of cluster DNS or its rules",
        lambda nftables: held(nftables, address),
        lambda nftables: _hold(nftables, address),
        groups=keeping.ADDRESSES,
    )


def held(nftables: Nftables, address: str) -> bool:
    """Whether the node has the address and the rules."""
    with Netlink() as links:
        own = {each.interface.ip for each in links.addresses(links.link("lo").index)}
    if ipaddress.ip_address(address) not in own:
        return False
    try:
        return len(nftables.rules(table(address))) == _RULES
    except OSError:
        return False


def _hold(nftables: Nftables, address: str) -> None:
    with Netlink() as links, contextlib.suppress(FileExistsError):
        links.add_address(links.link("lo").index, ipaddress.ip_interface(address))
    nftables.commit(rules(address))


def table(address: str) -> Table:
    """The table of the address's IP version."""
    return Table("ip" if ":" not in address else "ip6", NAME)


def rules(address: str) -> Batch:
    """A table that keeps lookups and their answers out of connection tracking."""
    ip = ipaddress.ip_address(address)
    number = e.IPV4 if ip.version == 4 else e.IPV6
    made = table(address)
    batch = Batch()
    batch.replace_table(made)
    asked = [e.destination_address(number, e.REGISTER), e.compare(e.REGISTER, ip.packed)]
    answered = [e.source_address(number, e.REGISTER), e.compare(e.REGISTER, ip.packed)]
    for name, hook in (("prerouting", objects.PREROUTING), ("output", objects.OUTPUT)):
        batch.add_chain(made, Chain(name, Hook("filter", hook, RAW_PRIORITY)))
        for address_matches, offset in ((asked, 2), (answered, 0)):
            port = [e.payload(e.TRANSPORT, offset, 2, e.REGISTER), e.compare(e.REGISTER, _PORT)]
            batch.add_rule(made, name, [*address_matches, *port, e.notrack()])
    return batch
