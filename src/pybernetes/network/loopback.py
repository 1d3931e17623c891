"""Keeps the loopback of a node for the node: nothing that arrives by another link goes to 127.0.0.0/8.

hostPorts switch `route_localnet` on, so that a packet from the node's own 127.0.0.1 may leave to a pod; with it the
kernel also takes packets of pods and neighbours to services that listen on the loopback alone (CVE-2020-8558).
"""

from __future__ import annotations

from pybernetes.network import keeping
from pybernetes.network.nftables import expressions as e
from pybernetes.network.nftables import objects
from pybernetes.network.nftables.batch import Batch
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.objects import Chain, Hook, Table

TABLE = Table("ip", "pybernetes-loopback")
_RAW_PRIORITY = -300  # before addresses are translated back in answers to the node's own packets
_LO = b"lo".ljust(16, b"\0")


def protect() -> None:
    """Make the table anew. Raises OSError."""
    with Nftables() as nftables:
        _protect(nftables)


async def keep() -> None:
    """Restore the table whenever it is removed, until cancelled."""
    await keeping.keep("the rule that protects the node's loopback", held, _protect)


def held(nftables: Nftables) -> bool:
    """Whether the rule is there."""
    try:
        return len(nftables.rules(TABLE)) == 1
    except OSError:
        return False


def _protect(nftables: Nftables) -> None:
    batch = Batch()
    batch.replace_table(TABLE)
    batch.add_chain(TABLE, Chain("prerouting", Hook("filter", objects.PREROUTING, _RAW_PRIORITY)))
    other_link = [e.meta(e.IIFNAME, e.REGISTER), e.compare(e.REGISTER, _LO, e.NOT_EQUAL)]
    loopback = [e.payload(e.NETWORK, 16, 1, e.REGISTER), e.compare(e.REGISTER, b"\x7f")]
    batch.add_rule(TABLE, "prerouting", [*other_link, *loopback, e.verdict(e.DROP)])
    nftables.commit(batch)
