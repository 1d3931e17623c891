"""`pyb proxy`: flags in, Services served until SIGTERM. The rules stay when it ends, and so do connections."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ipaddress
import logging
import socket
import sys
from pathlib import Path

import msgspec

from pybernetes.api.times import parse_duration
from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.informers import InformerFactory
from pybernetes.net.netlink.conntrack import Conntrack
from pybernetes.network.nftables.client import Nftables

from . import sysctls
from .chains import Network, TableFacts
from .config import PRIMARY, WITHOUT_EFFECT, KubeProxyConfiguration, check, load, set_defaults, split_address
from .frontends import FAMILIES
from .health_checks import HealthChecks
from .kernel import Kernel
from .metrics import Metrics
from .options import Options, parse
from .proxier import Proxier, ProxySettings
from .serving import PlainServer, health_pages, metrics_pages

PROGRAM = "kube-proxy"
log = logging.getLogger(__name__)


def main(argv: list[str]) -> int:
    """Run the proxy; the exit code."""
    options = parse(argv)
    component.log_to_stderr(options.v)
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(PROGRAM)  # tools look for a process of this name
    try:
        config = configuration(options)
        if options.write_config_to:
            Path(options.write_config_to).write_bytes(
                msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n"
            )
            return 0
        if options.cleanup:
            with Nftables() as nftables, Conntrack() as tracked:
                Kernel(nftables, tracked, FAMILIES).remove()
            return 0
        return component.run_until_done(_run(options, config))
    except (clientconfig.ConfigError, OSError, ValueError) as error:
        print(f"pyb proxy: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def configuration(options: Options) -> KubeProxyConfiguration:
    """The file, and over it what was typed; checked."""
    config = load(Path(options.config).read_bytes()) if options.config else KubeProxyConfiguration()
    for name in WITHOUT_EFFECT:
        if getattr(config, name) is not None:
            print(f"pyb proxy: {name} has no effect here", file=sys.stderr)
    options.apply(config)
    set_defaults(config)
    check(config)
    return config


async def _run(options: Options, config: KubeProxyConfiguration) -> int:
    async with connect(config, options.master) as client:
        await component.wait_for_server(client)
        informers = InformerFactory(client)
        work = asyncio.create_task(serve(informers, config))
        component.end_on_signals(work)
        try:
            await work
        except asyncio.CancelledError:
            return 0
        finally:
            await informers.stop()
    return 0


def connect(config: KubeProxyConfiguration, master: str = "") -> Client:
    """A client with the credentials of the proxy."""
    connection = config.client_connection
    assert connection is not None
    settings = clientconfig.load(connection.kubeconfig or None)
    if master:
        settings = dataclasses.replace(settings, server=master)
    return Client(settings, program=PROGRAM, qps=connection.qps or 0.0, burst=connection.burst or 10)


async def serve(informers: InformerFactory, config: KubeProxyConfiguration) -> None:
    """The proxy of this node with its pages, until cancelled."""
    clock, metrics = SystemClock(), Metrics()
    if config.conntrack is not None:
        sysctls.apply(config.conntrack)
    with Nftables() as nftables, Conntrack() as tracked:
        proxier: Proxier
        checks = HealthChecks(lambda: not proxier.problem())
        proxier = Proxier(informers, Kernel(nftables, tracked, FAMILIES), settings(config), clock, metrics, checks)
        pages = [
            (
                config.healthz_bind_address,
                health_pages(metrics, proxier.problem, lambda: proxier.eligible, lambda: proxier.last_synced),
            ),
            (config.metrics_bind_address, metrics_pages(metrics, lambda: config)),
        ]
        servers = []
        freezing = asyncio.create_task(component.freeze_when_started(proxier))
        try:
            for where, answer in pages:
                address, port = split_address(where or "")
                if not address:
                    continue
                server = PlainServer(answer)
                servers.append(server)
                try:
                    await server.start((address,), port)
                except OSError as error:
                    if config.bind_address_hard_fail:
                        raise
                    log.error("cannot listen on %s: %s", where, error)
            await proxier.run()
        finally:
            freezing.cancel()
            for server in servers:
                await server.stop()


def settings(config: KubeProxyConfiguration) -> ProxySettings:
    """The proxier's settings from the configuration."""
    tables, detect, mode = config.nftables, config.detect_local, config.detect_local_mode
    assert tables is not None
    assert detect is not None
    interface = ""
    if mode == "BridgeInterface":
        interface = detect.bridge_interface or ""
    elif mode == "InterfaceNamePrefix":
        interface = f"{detect.interface_name_prefix}*"
    addresses = config.node_port_addresses or []
    facts = TableFacts(
        cluster_cidrs=_networks((config.cluster_cidr or "").split(",")) if mode == "ClusterCIDR" else (),
        local_interface=interface,
        node_port_networks=_networks(addresses) if addresses and addresses != [PRIMARY] else None,
        masquerade_all=bool(tables.masquerade_all),
        mark=1 << (tables.masquerade_bit or 0),
    )
    return ProxySettings(
        (config.hostname_override or socket.gethostname()).lower(),
        facts,
        detect_node_cidrs=mode == "NodeCIDR",
        primary_node_ports=addresses == [PRIMARY],
        min_sync_period=parse_duration(tables.min_sync_period or "0s") / 1e9,
    )


def _networks(texts: list[str]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text.strip(), strict=False) for text in texts if text.strip() and text != PRIMARY)
