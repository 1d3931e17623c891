"""`pyb node-network`: what a node needs of the network, in one process.

First the node's loopback is closed to others (`loopback`). The rest is the proxy of Services (`pyb proxy` alone), the
resolver of names (`pyb dns` alone), the policies of its pods (`pyb network-policy` alone), the routes to pods of other
nodes (`pyb network-agent` alone) and load balancers' addresses, announced on the node's link. They share one client;
all but policies also share informers. Each is a supervised task, so that one that fails is started again while the
others go on. Pods, whose search paths the resolver knows, are read as the node's kubelet, which may see those of its
node and annotate its Node. When the client certificate has been renewed the process ends, and the node's init starts it
again: rules and connections stay.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.informers import InformerFactory
from pybernetes.component.tasks import Tasks
from pybernetes.network import loopback
from pybernetes.network.lean import Lean
from pybernetes.network.overlay import command as overlay
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
        prog="pyb node-network", description="The network of a node: Services and names.", allow_abbrev=False
    )
    parser.add_argument("--kubeconfig", required=True, help="kubeconfig with the server's address and our credentials")
    parser.add_argument("--proxy-config", required=True, help="file with a KubeProxyConfiguration")
    parser.add_argument("--cluster-dns", default="", help="address at which names are served; empty = no DNS")
    parser.add_argument("--cluster-domain", default="cluster.local", help="the zone of the cluster")
    parser.add_argument("--pod-kubeconfig", default="", help="kubeconfig of the node's kubelet, to read its pods")
    parser.add_argument(
        "--enforce-network-policy", action="store_true", help="enforce NetworkPolicies, as `pyb network-policy` does"
    )
    parser.add_argument(
        "--announce-load-balancers", action="store_true", help="answer ARP and NDP for addresses of load balancers"
    )
    overlay.add_flags(parser, "none")
    parser.add_argument("-v", "--v", type=int, default=0, help="how much to log")
    return parser.parse_args(argv)


async def _run(options: argparse.Namespace) -> int:
    proxy_config = proxy.configuration(ProxyOptions(config=options.proxy_config))
    tasks = Tasks(PROGRAM)
    loopback.protect()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(clientconfig.load(options.kubeconfig), program=PROGRAM))
        await component.wait_for_server(client)
        informers = InformerFactory(client, transform=Lean())
        stack.push_async_callback(informers.stop)
        pod_informers, kubelet = None, None
        if options.pod_kubeconfig:
            settings = clientconfig.load(options.pod_kubeconfig)
            kubelet = await stack.enter_async_context(Client(settings, program=PROGRAM))
            pod_informers = InformerFactory(kubelet)
            stack.push_async_callback(pod_informers.stop)
        stack.push_async_callback(tasks.stop)
        tasks.start("loopback", loopback.keep)
        tasks.start("proxy", lambda: proxy.serve(informers, proxy_config))
        node = proxy.settings(proxy_config).node_name
        if options.enforce_network_policy:
            tasks.start("network policy", lambda: _enforce_policies(client, node, options.cluster_dns))
        if options.cluster_dns:
            tasks.start("dns", lambda: _serve_names(options, node, informers, pod_informers))
        if options.backend != "none":
            tasks.start("overlay", lambda: _keep_routes(options, informers, kubelet))
        if options.announce_load_balancers:
            tasks.start("load balancer addresses", lambda: _announce(informers, node))
        work = asyncio.create_task(_until_renewed(options.kubeconfig))
        component.end_on_signals(work)
        try:
            await work
        except asyncio.CancelledError:
            return 0
    return 0


async def _enforce_policies(client: Client, node: str, cluster_dns: str) -> None:
    """The policies of this node, until cancelled."""
    from pybernetes.client.clock import SystemClock

    from .policy import agent

    await agent.serve(client, node, SystemClock(), cluster_dns)


async def _keep_routes(options: argparse.Namespace, informers: InformerFactory, kubelet: Client | None) -> None:
    """The routes to other nodes' pods, until cancelled."""
    from .overlay.agent import Agent, annotate

    wanted = overlay.settings(options)
    record = partial(annotate, kubelet, wanted.node_name) if kubelet else None
    await Agent(informers, wanted, record).run()


async def _announce(informers: InformerFactory, node: str) -> None:
    """The load balancer addresses of this node, until cancelled."""
    from pybernetes.client.clock import SystemClock

    from .loadbalancer.speaker import Speaker

    await Speaker(informers, node, SystemClock()).run()


async def _serve_names(
    options: argparse.Namespace, node: str, informers: InformerFactory, pod_informers: InformerFactory | None
) -> None:
    """The resolver of this node, until cancelled. It does not wait for what only helps: pods and the configuration."""
    from pybernetes.api.core.v1 import Service
    from pybernetes.api.discovery.v1 import EndpointSlice
    from pybernetes.dns.cluster_dns import ClusterDNS

    from . import node_dns

    node_dns.hold(options.cluster_dns)
    tasks = Tasks("node-dns")
    names = ClusterDNS(informers, zone=options.cluster_domain, node_name=node, pod_informers=pod_informers)
    try:
        for factory in (informers, pod_informers):
            if factory is not None:
                factory.start()
        for kind in (Service, EndpointSlice):
            await informers.informer(kind).wait_synced()
        await names.start([options.cluster_dns])
        tasks.start("address", lambda: node_dns.keep(options.cluster_dns))
        await asyncio.Event().wait()
    finally:
        await tasks.stop()
        await names.stop()


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
