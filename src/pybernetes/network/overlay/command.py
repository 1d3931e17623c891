"""`pyb network-agent`: routes to the pods of other nodes, until SIGTERM. They stay when it ends."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import sys
from functools import partial
from pathlib import Path

from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.informers import InformerFactory

from .agent import Agent, Settings, annotate
from .kernel import Kernel
from .plan import BACKENDS
from .udp_tunnel import PORT as UDP_PORT

PROGRAM = "network-agent"


def main(argv: list[str]) -> int:
    """Run the agent; the exit code."""
    parser = argparse.ArgumentParser(
        prog="pyb network-agent", description="Routes to the pods of other nodes.", allow_abbrev=False
    )
    parser.add_argument("--kubeconfig", help="kubeconfig with the server's address and our credentials")
    parser.add_argument("--cleanup", action="store_true", help="remove devices and routes of this program, and end")
    parser.add_argument("-v", "--v", type=int, default=0, help="how much to log")
    add_flags(parser)
    options = parser.parse_args(argv)
    component.log_to_stderr(options.v)
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(PROGRAM)
    try:
        if options.cleanup:
            kernel = Kernel()
            kernel.remove()
            kernel.close()
            return 0
        if options.backend == "none":
            parser.error("--network-backend: choose one of " + ", ".join(BACKENDS))
        return component.run_until_done(_run(options))
    except (clientconfig.ConfigError, OSError, ValueError) as error:
        print(f"pyb network-agent: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def add_flags(parser: argparse.ArgumentParser, backend: str = "vxlan") -> None:
    """The flags that `pyb node-network` has as well."""
    parser.add_argument(
        "--network-backend",
        dest="backend",
        choices=[*BACKENDS, "none"],
        default=backend,
        help="how packets get to other nodes (default: %(default)s)",
    )
    parser.add_argument(
        "--direct-routing", action="store_true", help="plain routes, without a tunnel, to nodes on the same link"
    )
    parser.add_argument("--hostname-override", default="", help="name of this node's Node")
    parser.add_argument("--iface", default="", help="link to other nodes (default: that with the Node's address)")
    parser.add_argument("--vxlan-id", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--vxlan-port", type=int, default=8472, help="UDP port (default: %(default)s)")
    parser.add_argument("--udp-port", type=int, default=UDP_PORT, help="of the backend udp (default: %(default)s)")
    parser.add_argument(
        "--cni-conf", default="", metavar="FILE", help="write the pods' network there, with the MTU that fits"
    )


def settings(options: argparse.Namespace) -> Settings:
    """The settings from the flags; raises ValueError."""
    for name, least, most in (("vxlan_id", 0, (1 << 24) - 1), ("vxlan_port", 1, 65535), ("udp_port", 1, 65535)):
        if not least <= getattr(options, name) <= most:
            raise ValueError(f"--{name.replace('_', '-')}: must be from {least} to {most}")
    return Settings(
        (options.hostname_override or socket.gethostname()).lower(),
        options.backend,
        options.direct_routing,
        options.iface,
        options.vxlan_id,
        options.vxlan_port,
        options.udp_port,
        options.cni_conf,
    )


async def _run(options: argparse.Namespace) -> int:
    wanted = settings(options)
    async with Client(clientconfig.load(options.kubeconfig), program=PROGRAM) as client:
        await component.wait_for_server(client)
        informers = InformerFactory(client)
        agent = Agent(informers, wanted, partial(annotate, client, wanted.node_name))
        work = asyncio.create_task(agent.run())
        component.end_on_signals(work)
        try:
            await work
        except asyncio.CancelledError:
            return 0
        finally:
            await informers.stop()
    return 0
