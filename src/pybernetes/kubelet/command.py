"""`pyb kubelet`: flags in, pods run until SIGTERM. Pods outlive it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.cri.remote import Runtime

from .config.load import check, load, seconds, set_defaults
from .config.types import KubeletConfiguration
from .options import Options, parse
from .settings import KubeletSettings

PROGRAM = "kubelet"


def main(argv: list[str]) -> int:
    """Run the kubelet; the exit code."""
    options = parse(argv)
    component.log_to_stderr(options.v)
    try:
        config = _configuration(options)
        return component.run_until_done(_run(options, config))
    except (clientconfig.ConfigError, OSError, ValueError) as error:
        print(f"pyb kubelet: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _configuration(options: Options) -> KubeletConfiguration:
    """The file, and over it what was typed."""
    config = load(Path(options.config).read_bytes()) if options.config else KubeletConfiguration()
    options.apply(config)
    set_defaults(config)
    check(config)
    return config


async def _run(options: Options, config: KubeletConfiguration) -> int:
    from .kubelet import Kubelet
    from .serving import serve, serve_health

    clock = SystemClock()
    settings = clientconfig.load(options.kubeconfig or None)
    name = (options.hostname_override or socket.gethostname()).lower()
    kubelet_settings = KubeletSettings(
        config=config,
        node_name=name,
        hostname=name,
        node_ips=options.node_ip or [_address(settings.server)],
        root_dir=options.root_dir,
        cert_dir=options.cert_dir or options.root_dir / "pki",
        node_labels=options.node_labels,
        maximum_dead_containers_per_container=options.maximum_dead_containers_per_container,
        maximum_dead_containers=options.maximum_dead_containers,
        minimum_container_ttl=options.minimum_container_ttl_duration,
    )
    endpoint = config.container_runtime_endpoint or ""
    async with (
        Client(settings, program=PROGRAM, clock=clock) as client,
        Runtime(endpoint, timeout=seconds(config.runtime_request_timeout)) as runtime,
    ):
        await component.wait_for_server(client)
        kubelet = Kubelet(client, runtime, kubelet_settings, clock)
        servers = [await serve(kubelet), await serve_health(kubelet)]
        work = asyncio.create_task(kubelet.run())
        component.end_on_signals(work)
        asyncio.get_running_loop().add_signal_handler(signal.SIGPWR, kubelet.shutdown.begin)
        try:
            await work
        except asyncio.CancelledError:
            return 0
        finally:
            for server in servers:
                if server is not None:
                    with contextlib.suppress(Exception):
                        await server.stop()
    return 0


def _address(server: str) -> str:
    """The address by which the API server is reached from here: that of the interface of the route to it."""
    parts = urlsplit(server)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((parts.hostname or "127.0.0.1", parts.port or 443))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
