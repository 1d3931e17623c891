"""`pyb kubelet`: flags in, pods run until SIGTERM. Pods outlive it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import resource
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pybernetes.client import component, tracing
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.cri.remote import Runtime

from .config.load import check, load, seconds, set_defaults, without_effect
from .config.types import KubeletConfiguration
from .options import Options, flag_values, parse
from .settings import KubeletSettings

if TYPE_CHECKING:
    from .kubelet import Kubelet

PROGRAM = "kubelet"
MAX_OPEN_FILES = 1_000_000  # upstream's default of maxOpenFiles
LATER = 60.0
"""Seconds after the start when it is looked whether the client certificate is due."""


def main(argv: list[str]) -> int:
    """Run the kubelet; the exit code."""
    options = parse(argv)
    component.log_to_stderr(options.v)
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(PROGRAM)  # tools look for a process of this name: pidof, top
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
    if options.config_dir and not options.config:
        raise ValueError("--config-dir needs --config: its files are put over that one")
    found = sorted(Path(options.config_dir).glob("*.conf")) if options.config_dir else []
    drop_ins = [(str(each), each.read_bytes()) for each in found]
    config = load(Path(options.config).read_bytes(), drop_ins) if options.config else KubeletConfiguration()
    for name in without_effect(config):
        print(f"pyb kubelet: {name} has no effect here", file=sys.stderr)
    options.apply(config)
    set_defaults(config)
    check(config)
    return config


def raise_open_files(wanted: int) -> None:
    """Let this process open so many files, or as many as it may. Before: a shell's limit, often 1024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard)))
    except (OSError, ValueError):  # only an administrator raises the hard limit, and not everywhere
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


async def _run(options: Options, config: KubeletConfiguration) -> int:
    from .kubelet import Kubelet
    from .servers import serve, serve_health, serve_read_only

    raise_open_files(config.max_open_files or MAX_OPEN_FILES)
    clock = SystemClock()
    name = (options.hostname_override or socket.gethostname()).lower()
    cert_dir = options.cert_dir or options.root_dir / "pki"
    if options.bootstrap_kubeconfig:
        await _bootstrap(options, name, cert_dir, clock)
    settings = clientconfig.load(options.kubeconfig or None)
    if config.rotate_certificates:
        settings = _newest(settings, cert_dir)
    kubelet_settings = KubeletSettings(
        config=config,
        node_name=name,
        hostname=name,
        node_ips=options.node_ip or [_address(settings.server)],
        root_dir=options.root_dir,
        cert_dir=cert_dir,
        node_labels=options.node_labels,
        maximum_dead_containers_per_container=options.maximum_dead_containers_per_container,
        maximum_dead_containers=options.maximum_dead_containers,
        minimum_container_ttl=options.minimum_container_ttl_duration,
        local_volumes_kubeconfig=options.local_volumes_kubeconfig,
        flags=lambda: flag_values(options, config),
    )
    endpoint = config.container_runtime_endpoint or ""
    async with (
        Client(settings, program=PROGRAM, clock=clock) as client,
        Runtime(endpoint, timeout=seconds(config.runtime_request_timeout)) as runtime,
    ):
        await component.wait_for_server(client)
        kubelet = Kubelet(client, runtime, kubelet_settings, clock)
        sender = tracing.start(PROGRAM, client, kubelet.tasks, config.tracing)
        servers = [await serve(kubelet), await serve_health(kubelet), await serve_read_only(kubelet)]
        work = asyncio.create_task(_work(kubelet, settings, options.kubeconfig))
        component.end_on_signals(work)
        try:
            await work
        except asyncio.CancelledError:
            return 0
        finally:
            if sender is not None:
                await sender.close()
            for server in servers:
                if server is not None:
                    with contextlib.suppress(Exception):
                        await server.stop()
    return 0


async def _work(kubelet: Kubelet, settings: clientconfig.Config, kubeconfig: str) -> None:
    """The kubelet, the renewal of its certificates, and the machine's own end."""
    config = kubelet.settings.config
    freezing = asyncio.create_task(component.freeze_when_started(kubelet))
    asyncio.get_running_loop().add_signal_handler(signal.SIGPWR, kubelet.shutdown.begin)
    try:
        if config.rotate_certificates and settings.client_certificate_data:
            rotation = partial(_rotate_client, kubelet, settings, kubeconfig)
            kubelet.tasks.start("rotation of the client certificate", rotation)
        if config.server_tls_bootstrap:
            kubelet.tasks.start("rotation of the serving certificate", partial(_rotate_serving, kubelet))
        await kubelet.run()
    finally:
        freezing.cancel()


def _newest(settings: clientconfig.Config, cert_dir: Path) -> clientconfig.Config:
    """With the certificate that was got last, if it is good for longer than the kubeconfig's."""
    if not settings.client_certificate_data or not (cert_dir / "kubelet-client-current.pem").exists():
        return settings
    from .node.certificates import CertificateStore, Pair

    pair = CertificateStore(cert_dir, "kubelet-client").load()
    if pair is None or pair.life[1] <= Pair(settings.client_certificate_data, settings.client_key_data).life[1]:
        return settings
    return dataclasses.replace(settings, client_certificate_data=pair.certificate, client_key_data=pair.key)


async def _rotate_client(kubelet: Kubelet, settings: clientconfig.Config, kubeconfig: str) -> None:
    await asyncio.sleep(LATER)  # what is needed for it takes 10 MB and is not needed at the start
    from .node.certificates import CLIENT_SIGNER, CertificateStore, Pair, Rotation

    transport = kubelet.client.transport

    def reread() -> Pair | None:
        try:
            found = clientconfig.load(kubeconfig or None)
        except (clientconfig.ConfigError, OSError):
            return None  # it is being written, perhaps
        return Pair(found.client_certificate_data, found.client_key_data) if found.client_certificate_data else None

    rotation = Rotation(
        kubelet.client.for_component("certificates"),
        kubelet.clock,
        kubelet.settings.node_name,
        CertificateStore(kubelet.settings.cert_dir, "kubelet-client"),
        lambda pair: transport.use_certificate(pair.certificate, pair.key),
        signer=CLIENT_SIGNER,
        usages=("digital signature", "client auth"),
        initial=Pair(settings.client_certificate_data, settings.client_key_data),
        reread=reread,
    )
    kubelet.manager_metrics.certificate("client", rotation.expires, lambda: rotation.failures)
    await rotation.run()


async def _rotate_serving(kubelet: Kubelet) -> None:
    from .node.certificates import SERVING_SIGNER, CertificateStore, Rotation

    await kubelet.reporter.registered.wait()
    settings = kubelet.settings
    rotation = Rotation(
        kubelet.client.for_component("certificates"),
        kubelet.clock,
        settings.node_name,
        CertificateStore(settings.cert_dir, "kubelet-server"),
        lambda pair: None,  # the server reads the file again by itself
        signer=SERVING_SIGNER,
        usages=("digital signature", "server auth"),
        names=[settings.hostname, *settings.node_ips],
    )
    kubelet.manager_metrics.certificate("server", rotation.expires, lambda: rotation.failures)
    await rotation.run()


async def _bootstrap(options: Options, name: str, cert_dir: Path, clock: SystemClock) -> None:
    from .node.bootstrap import bootstrap
    from .node.certificates import CertificateStore

    if not options.kubeconfig:
        raise ValueError("--bootstrap-kubeconfig needs --kubeconfig: where to write what it brings")
    store = CertificateStore(cert_dir, "kubelet-client")
    await bootstrap(Path(options.kubeconfig), Path(options.bootstrap_kubeconfig), name, store, clock)


def _address(server: str) -> str:
    """The address by which the API server is reached from here: that of the interface of the route to it."""
    parts = urlsplit(server)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((parts.hostname or "127.0.0.1", parts.port or 443))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
