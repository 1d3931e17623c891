"""`pyb node-network`: what a node needs of the network, in one process.

Today that is the proxy of Services (`pyb proxy` alone). All parts share one client and one set of informers; each runs
as a supervised task, so that one that fails is started again while the others go on. When the client certificate has
been renewed the process ends, and whoever keeps it running starts it again: rules and connections stay.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from pathlib import Path

from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.informers import InformerFactory
from pybernetes.component.tasks import Tasks
from pybernetes.proxy import command as proxy
from pybernetes.proxy.options import Options as ProxyOptions

PROGRAM = "node-network"
CERTIFICATE_CHECK = 3600.0
"""Seconds between two looks at the client certificate, which is renewed a month before it ends."""


def main(argv: list[str]) -> int:
    """Run the parts; the exit code."""
    options = _parse(argv)
    component.log_to_stderr(options.v)
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(PROGRAM)
    try:
        return component.run_until_done(_run(options))
    except (clientconfig.ConfigError, OSError, ValueError) as error:
        print(f"pyb node-network: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="pyb node-network", description="The network of a node: the proxy of Services.", allow_abbrev=False
    )
    parser.add_argument("--kubeconfig", required=True, help="kubeconfig with the server's address and our credentials")
    parser.add_argument("--proxy-config", required=True, help="file with a KubeProxyConfiguration")
    parser.add_argument("-v", "--v", type=int, default=0, help="how much to log")
    return parser.parse_args(argv)


async def _run(options: argparse.Namespace) -> int:
    proxy_config = proxy.configuration(ProxyOptions(config=options.proxy_config))
    settings = clientconfig.load(options.kubeconfig)
    tasks = Tasks(PROGRAM)
    async with Client(settings, program=PROGRAM) as client:
        await component.wait_for_server(client)
        informers = InformerFactory(client)
        tasks.start("proxy", lambda: proxy.serve(informers, proxy_config))
        work = asyncio.create_task(_until_renewed(options.kubeconfig))
        component.end_on_signals(work)
        try:
            await work
        except asyncio.CancelledError:
            return 0
        finally:
            await tasks.stop()
            await informers.stop()
    return 0


async def _until_renewed(kubeconfig: str) -> None:
    """Returns when the client certificate that the kubeconfig names was written again."""
    first = now = _written(kubeconfig)
    while now in (first, 0):
        await asyncio.sleep(CERTIFICATE_CHECK)
        now = _written(kubeconfig)


def _written(kubeconfig: str) -> int:
    """When the client certificate was written; 0 if that cannot be said."""
    import msgspec

    try:
        users = msgspec.json.decode(Path(kubeconfig).read_bytes()).get("users")
        return os.stat(users[0]["user"]["client-certificate"]).st_mtime_ns
    except (OSError, LookupError, TypeError, ValueError):
        return 0
