"""`pyb ingress`: serves the Ingresses of the class `pybernetes` until SIGTERM; requests in flight are finished."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.health import HealthServer
from pybernetes.client.informers import InformerFactory
from pybernetes.net import inherited_sockets

from .controller import IngressController
from .metrics import Metrics

PROGRAM = "pyb-ingress"


def main(argv: list[str]) -> int:
    """Serve; the exit code."""
    options = _parse(argv)
    component.log_to_stderr(options.v)
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(PROGRAM)
    _many_descriptors()
    try:
        return component.run_until_done(_run(options))
    except (clientconfig.ConfigError, OSError, ValueError) as error:
        print(f"pyb ingress: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pyb ingress", description=__doc__, allow_abbrev=False)
    parser.add_argument("--kubeconfig", default="", help="how to reach the API server; in a pod: its service account")
    parser.add_argument("--address", action="append", help="where to serve, may be repeated (default: 0.0.0.0)")
    parser.add_argument("--http-port", type=int, default=80, help="0 = none (default: 80)")
    parser.add_argument("--https-port", type=int, default=443, help="0 = none (default: 443)")
    parser.add_argument(
        "--publish-address",
        action="append",
        default=[],
        help="for the status of Ingresses, may be repeated (default: those served that are not loopback)",
    )
    parser.add_argument("--bind-address", default="127.0.0.1", help="where health and metrics are served")
    parser.add_argument("--secure-port", type=int, default=0, help="the port of health and metrics; 0 = none")
    parser.add_argument("--tls-cert-file", default="", help="certificate of that port; empty = a self-signed one")
    parser.add_argument("--tls-private-key-file", default="", help="its key")
    parser.add_argument("--client-ca-file", default="", help="who may ask for metrics by certificate")
    parser.add_argument("-v", "--v", type=int, default=0, help="how much to log; 3 = each request")
    options = parser.parse_args(argv)
    for name in ("http_port", "https_port"):
        if not 0 <= getattr(options, name) <= 65535:
            parser.error(f"--{name.replace('_', '-')} {getattr(options, name)}: not a port")
    return options


def _many_descriptors() -> None:
    """Each request may need two: as many as the machine allows."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _run(options: argparse.Namespace) -> int:
    clock = SystemClock()
    async with Client(clientconfig.load(options.kubeconfig or None), program=PROGRAM, clock=clock) as client:
        metrics = Metrics()
        informers = InformerFactory(client.for_component("informers"), clock=clock)
        controller = IngressController(
            client,
            informers,
            EventBroadcaster(client.for_component("events"), clock),
            clock,
            metrics,
            addresses=options.address or ["0.0.0.0"],
            http_port=options.http_port,
            https_port=options.https_port,
            sockets=inherited_sockets.listeners(),
            publish=options.publish_address,
            verbosity=options.v,
        )
        checks = {"ping": lambda: True, "ready": controller.started.is_set}
        health = HealthServer(
            metrics.registry, {"healthz": checks, "livez": {"ping": lambda: True}, "readyz": checks}, client
        )
        try:
            return await component.serve_and_work(
                controller, client, health, None, options, program=PROGRAM, command="pyb ingress"
            )
        finally:
            await informers.stop()
