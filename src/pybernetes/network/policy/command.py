"""`pyb network-policy`: enforces NetworkPolicies on this node until SIGTERM. The rules stay when it ends."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys

from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.network.nftables.client import Nftables

from . import agent
from .cluster_policies import definition
from .kernel import Kernel

PROGRAM = "network-policy"


def main(argv: list[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(
        prog="pyb network-policy", description="Enforces NetworkPolicies on this node.", allow_abbrev=False
    )
    parser.add_argument("--kubeconfig", default="", help="kubeconfig with the server's address and our credentials")
    parser.add_argument("--hostname-override", default="", help="name of this node (default: the host's name)")
    parser.add_argument("--cluster-dns", default="", help="address of cluster DNS where the node itself has it")
    parser.add_argument(
        "--print-crd", action="store_true", help="print the CustomResourceDefinition of ClusterNetworkPolicy and exit"
    )
    parser.add_argument("--cleanup", action="store_true", help="remove the rules and exit")
    parser.add_argument("-v", "--v", type=int, default=0, help="how much to log")
    options = parser.parse_args(argv)
    component.log_to_stderr(options.v)
    try:
        if options.print_crd:
            print(definition(), end="")
            return 0
        if options.cleanup:
            with Nftables() as nftables:
                Kernel(nftables).remove()
            return 0
        return component.run_until_done(_run(options))
    except (clientconfig.ConfigError, OSError, ValueError) as error:
        print(f"pyb network-policy: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


async def _run(options: argparse.Namespace) -> int:
    name = (options.hostname_override or socket.gethostname()).lower()
    async with Client(clientconfig.load(options.kubeconfig or None), program=PROGRAM) as client:
        await component.wait_for_server(client)
        work = asyncio.create_task(agent.serve(client, name, SystemClock(), options.cluster_dns))
        component.end_on_signals(work)
        try:
            await work
        except asyncio.CancelledError:
            return 0
    return 0
