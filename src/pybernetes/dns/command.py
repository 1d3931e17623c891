"""`pyb dns`: a resolver for cluster names in the foreground, until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.health import HealthServer
from pybernetes.client.informers import InformerFactory
from pybernetes.client.metrics import GaugeFunction, Registry

from .cluster_dns import ClusterDNS
from .server import DNSServer

PROGRAM = "pyb-dns"


def main(argv: list[str]) -> int:
    """Serve names; the exit code."""
    options = _parser().parse_args(argv)
    component.log_to_stderr(options.v)
    try:
        return component.run_until_done(_run(options))
    except (clientconfig.ConfigError, OSError, ValueError) as error:
        print(f"pyb dns: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pyb dns", description=__doc__)
    parser.add_argument("--kubeconfig", default="", help="how to reach the API server; in a pod: its service account")
    parser.add_argument("--address", action="append", help="where to serve, may be repeated (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=53, help="of UDP and TCP (default 53)")
    parser.add_argument("--cluster-domain", default="cluster.local", help="the zone of the cluster")
    parser.add_argument("--node-name", default="", help="autopath is for the pods of this node; empty: of all nodes")
    parser.add_argument("--resolv-conf", type=Path, default=Path("/etc/resolv.conf"), help="names the upstream servers")
    parser.add_argument("--bind-address", default="127.0.0.1", help="where health and metrics are served")
    parser.add_argument("--secure-port", type=int, default=0, help="the port of health and metrics; 0: none")
    parser.add_argument("--tls-cert-file", default="")
    parser.add_argument("--tls-private-key-file", default="")
    parser.add_argument("--client-ca-file", default="")
    parser.add_argument("-v", type=int, default=0, help="verbosity of the log")
    return parser


class DNSWorker:
    """The resolver as a component: informers, then sockets, until cancelled."""

    def __init__(self, informers: InformerFactory, dns: ClusterDNS, addresses: Sequence[str], port: int) -> None:
        self.started = asyncio.Event()
        self._informers, self._dns = informers, dns
        self._addresses, self._port = addresses, port

    async def run(self) -> None:
        """Serve. The sockets answer from the first moment; names come as the informers bring them."""
        self._informers.start()
        try:
            await self._informers.wait_synced()
            await self._dns.start(list(self._addresses), self._port)
            self.started.set()
            await asyncio.Event().wait()
        finally:
            await self._dns.stop()
            await self._informers.stop()


async def _run(options: argparse.Namespace) -> int:
    clock = SystemClock()
    async with Client(clientconfig.load(options.kubeconfig or None), program=PROGRAM, clock=clock) as client:
        informers = InformerFactory(client.for_component("informers"), clock=clock)
        dns = ClusterDNS(
            informers, zone=options.cluster_domain, node_name=options.node_name, resolv_conf=options.resolv_conf
        )
        worker = DNSWorker(informers, dns, options.address or ["127.0.0.1"], options.port)
        registry = Registry()
        add_metrics(registry, dns.server)
        checks = {"ping": lambda: True, "ready": lambda: worker.started.is_set()}
        health = HealthServer(registry, {"healthz": checks, "livez": {"ping": lambda: True}, "readyz": checks}, client)
        return await component.serve_and_work(worker, client, health, None, options, program=PROGRAM, command="pyb dns")


def add_metrics(registry: Registry, server: DNSServer) -> None:
    """The server's counts, under CoreDNS's names."""
    codes = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED", 16: "BADVERS"}

    def requests() -> list[tuple[tuple[str, ...], float]]:
        return [((protocol,), float(count)) for protocol, count in server.requests.items()]

    def responses() -> list[tuple[tuple[str, ...], float]]:
        counts = {codes.get(code, "other"): float(count) for code, count in server.responses.items()}
        counts["NOERROR"] = counts.get("NOERROR", 0.0) + server.from_packets
        return [((code,), count) for code, count in counts.items()]

    for name, text, labels, read in (
        ("coredns_dns_requests_total", "Queries by transport.", ("proto",), requests),
        ("coredns_dns_responses_total", "Responses by code.", ("rcode",), responses),
    ):
        counter = GaugeFunction(name, text, labels, read)
        counter.kind = "counter"
        registry.add(counter)
    registry.add(
        GaugeFunction("coredns_cache_entries", "Answers that are kept.", (), lambda: [((), float(len(server.cache)))])
    )
