"""The address of cluster DNS on this node: every node has it on its loopback device and answers there itself.

So a lookup never leaves the node. No connection is tracked for it (`notrack`): nothing is translated, and many short
lookups do not fill the kernel's table. What a pod asks above `RATE` is dropped before the server reads it: a flood
takes neither a processor of the node nor the answers of others. `keep` puts the address and the rules back when
other programs remove them.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket

from pybernetes.cni.netlink.rtnl import Netlink
from pybernetes.network import keeping
from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables import objects
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.datatypes import IPV4, IPV6
from pybernetes.network.nftables.objects import Chain, Hook, Set, Table

log = logging.getLogger(__name__)
NAME = "node-dns"
RAW_PRIORITY = -300
_PORT = (53).to_bytes(2, "big")
RATE, BURST = 10_000, 5_000
"""Queries of one address in a second over UDP, and how many at once."""
CLIENTS = 16_384
"""Addresses that are counted; others are not limited."""
_FORGOTTEN_AFTER = 10_000
_RULES = (4, 5)
"""How many there are without and with the limit, which some kernels do not know."""


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
        return len(nftables.rules(table(address))) in _RULES
    except OSError:
        return False


def _hold(nftables: Nftables, address: str) -> None:
    with Netlink() as links, contextlib.suppress(FileExistsError):
        links.add_address(links.link("lo").index, ipaddress.ip_interface(address))
    try:
        nftables.commit(rules(address))
    except OSError as error:
        log.warning("cannot limit what one client asks of cluster DNS: %s", error)
        nftables.commit(rules(address, limited=False))


def table(address: str) -> Table:
    """The table of the address's IP version."""
    return Table("ip" if ":" not in address else "ip6", NAME)


def rules(address: str, *, limited: bool = True) -> Batch:
    """A table that keeps lookups and their answers out of connection tracking, and limits how many a client makes."""
    ip = ipaddress.ip_address(address)
    number = e.IPV4 if ip.version == 4 else e.IPV6
    made = table(address)
    batch = Batch()
    batch.replace_table(made)
    asked = [e.destination_address(number, e.REGISTER), e.compare(e.REGISTER, ip.packed)]
    if limited:
        batch.add_set(made, Set("clients", IPV4 if ip.version == 4 else IPV6, dynamic=True, expires=True, size=CLIENTS))
    answered = [e.source_address(number, e.REGISTER), e.compare(e.REGISTER, ip.packed)]
    for name, hook in (("prerouting", objects.PREROUTING), ("output", objects.OUTPUT)):
        batch.add_chain(made, Chain(name, Hook("filter", hook, RAW_PRIORITY)))
        if limited and hook == objects.PREROUTING:
            batch.add_rule(made, name, _above_limit(number, asked))
        for address_matches, offset in ((asked, 2), (answered, 0)):
            port = [e.payload(e.TRANSPORT, offset, 2, e.REGISTER), e.compare(e.REGISTER, _PORT)]
            batch.add_rule(made, name, [*address_matches, *port, e.notrack()])
    return batch


def _above_limit(family: int, asked: list[bytes]) -> list[bytes]:
    """Drops what a pod asks above the limit. What comes from the node itself is of many programs, and not limited."""
    loopback = b"lo".ljust(16, b"\0")
    return [
        *(e.meta(e.IIFNAME, e.REGISTER), e.compare(e.REGISTER, loopback, e.NOT_EQUAL)),
        *asked,
        *(e.meta(e.L4PROTO, e.REGISTER), e.compare(e.REGISTER, bytes((socket.IPPROTO_UDP,)))),
        *(e.destination_port(e.REGISTER), e.compare(e.REGISTER, _PORT)),
        e.source_address(family, e.REGISTER),
        e.update_set("clients", e.REGISTER, timeout_ms=_FORGOTTEN_AFTER, over=(RATE, BURST)),
        e.verdict(e.DROP),
    ]
