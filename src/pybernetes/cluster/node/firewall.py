"""Makes a host that drops what it should forward (as Docker and ufw tell it to) forward for nodes and pods.

A rule of our own table could not: a packet that one chain drops is dropped, whatever others say. So the rules go into
the chain that drops, or into the one Docker keeps for others, by `iptables`, whose chains these are. Where nothing is
dropped nothing is changed.
"""

from __future__ import annotations

import subprocess

from pybernetes.cluster.node.network import Network
from pybernetes.cluster.node.programs import find
from pybernetes.network.nftables.client import Nftables
from pybernetes.network.nftables.objects import Table

CHAINS = ("DOCKER-USER", "FORWARD")


def open_for(network: Network) -> None:
    """Lets packets from and to the network pass, in the first chain that drops them."""
    for chain in CHAINS:
        if _drops(chain):
            for rule in _rules(network):
                if _iptables("-C", chain, *rule) is None:
                    _iptables("-I", chain, *rule)
            return


def close_for(network: Network) -> None:
    """Takes the rules away, wherever they are."""
    for chain in CHAINS:
        if _has_table():
            for rule in _rules(network):
                while _iptables("-D", chain, *rule) is not None:
                    pass


def _rules(network: Network) -> list[list[str]]:
    answers = ["-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED"]
    return [["-i", network.bridge, "-j", "ACCEPT"], ["-o", network.bridge, *answers, "-j", "ACCEPT"]]


def _drops(chain: str) -> bool:
    """Whether a chain is there and decides: Docker's always does, FORWARD if it drops by default."""
    shown = _iptables("-S", chain) if _has_table() else None
    return shown is not None and (chain != "FORWARD" or "-P FORWARD DROP" in shown)


def _has_table() -> bool:
    """Whether iptables is in use here; running iptables itself could create its tables."""
    try:
        with Nftables() as kernel:
            return Table("ip", "filter") in kernel.tables()
    except OSError:
        return False


def _iptables(*words: str) -> str | None:
    program = find("iptables")
    if program is None:
        return None
    done = subprocess.run([program, "-w", *words], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None
