"""The address of cluster DNS on this node: every node has it on its loopback device and answers there itself.

So a lookup never leaves the node. No connection is tracked for it (`notrack`): nothing is translated, and many short
lookups do not fill the kernel's table. `keep` is woken by the kernel when somebody else takes the address or a rule
away, and puts both back.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket

from pybernetes.cni.netlink.rtnl import Netlink
from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables import objects
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.objects import Chain, Hook, Table

NAME = "node-dns"
RAW_PRIORITY = -300
_PORT = (53).to_bytes(2, "big")
_ADDRESS_GROUPS = 0x10 | 0x100  # notifications about addresses of both IP versions
_RULES = 4
REPAIR_INTERVAL = 1.0
"""Seconds between two repairs: a program that changes the rules all the time must not make us do the same."""
log = logging.getLogger(__name__)


def hold(address: str) -> None:
    """Gives the node the address of cluster DNS, and the rules for it."""
    with Nftables() as nftables:
        _hold(nftables, address)


async def keep(address: str) -> None:
    """Hold the address until cancelled, whatever others do. OSError if the kernel refuses it at the start."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    with contextlib.ExitStack() as stack:
        nftables = stack.enter_context(Nftables())
        addresses = stack.enter_context(
            socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
            )
        )
        addresses.bind((0, _ADDRESS_GROUPS))
        for watched in (nftables.watch(), addresses.fileno()):
            loop.add_reader(watched, changed.set)
            stack.callback(loop.remove_reader, watched)
        _hold(nftables, address)
        while True:
            await changed.wait()
            changed.clear()
            _drain(addresses)
            nftables.changes()
            if not held(nftables, address):
                log.warning("somebody took away the address of cluster DNS or its rules, they are put back")
                _hold(nftables, address)
                await asyncio.sleep(REPAIR_INTERVAL)


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


def _drain(notifications: socket.socket) -> None:
    while True:
        try:
            notifications.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:  # the kernel had no room for all of them: what matters is that there were some
            continue


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
