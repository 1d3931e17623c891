"""`pyb controller-manager`: flags in, controllers until SIGTERM. A second SIGTERM ends it at once."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import logging
import os
import secrets
import signal
import socket
import ssl
import sys
import tempfile
import time
from pathlib import Path

from pybernetes.api import errors
from pybernetes.client import config
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.informers import InformerFactory
from pybernetes.client.leaderelection import LeaderElector, LeadershipLost

from .base import ControllerContext
from .health import HealthServer, serving_tls
from .identity import Identities
from .manager import Manager, choose
from .options import Options, parse

SERVER_TIMEOUT = 10.0  # upstream's
PROGRAM = "kube-controller-manager"
log = logging.getLogger(__name__)


NICE = 5
"""Behind an API server on the same machine: when processors are short, answers come before what follows from them."""


def main(argv: list[str]) -> int:
    """Run the controllers; the exit code."""
    options = parse(argv)
    level = logging.DEBUG if options.v >= 4 else logging.INFO if options.v >= 2 else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname).1s %(name)s: %(message)s", stream=sys.stderr)
    os.nice(NICE)
    try:
        names = choose(options.controllers)
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_run(options, names))
    except (config.ConfigError, OSError, ValueError) as error:
        print(f"pyb controller-manager: {error}", file=sys.stderr)
        return 1
    except ExceptionGroup as group:  # of the controllers, which are started together
        refused, rest = group.split((config.ConfigError, OSError, ValueError))
        if refused is None or rest is not None:
            raise
        for each in refused.exceptions:
            print(f"pyb controller-manager: {each}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


async def _run(options: Options, names: list[str]) -> int:
    clock = SystemClock()
    settings = config.load(options.kubeconfig or None)
    if options.master:
        settings = dataclasses.replace(settings, server=options.master)
    async with Client(
        settings, program=PROGRAM, qps=options.kube_api_qps, burst=options.kube_api_burst, clock=clock
    ) as client:
        context = ControllerContext(
            client=client,
            informers=InformerFactory(client.for_component("shared-informers"), clock=clock),
            events=EventBroadcaster(client.for_component("events"), clock),
            clock=clock,
            options=options,
            identities=Identities(client) if options.use_service_account_credentials else None,
        )
        manager = Manager(context, names)
        elector = _elector(options, client, clock) if options.leader_elect else None
        health = HealthServer(
            context.metrics,
            {
                "ping": lambda: True,
                # A replica that waits for the lock is as ready as it can be.
                "controllers": lambda: manager.started.is_set() or (elector is not None and not elector.is_leader),
            },
            client,
        )
        await _wait_for_server(client)
        if options.secure_port:
            await health.start(options.bind_address, options.secure_port, _tls(options))
        work = asyncio.create_task(elector.run(manager.run) if elector else manager.run())
        freezing = asyncio.create_task(_freeze_when_started(manager))
        _end_on_signals(work)
        try:
            await work
        except asyncio.CancelledError:
            return 0
        except LeadershipLost as error:
            # As upstream: what was begun may be half done, only a new process is sure to act on nothing old.
            print(f"pyb controller-manager: {error}", file=sys.stderr)
            return 1
        finally:
            freezing.cancel()
            await health.stop()
            if context.identities:
                await context.identities.close()
    return 0


async def _wait_for_server(client: Client) -> None:
    """When all start at once the server is not there yet: look often, instead of failing and backing off."""
    deadline = time.monotonic() + SERVER_TIMEOUT
    while True:
        try:
            await client.transport.request("GET", "/healthz")
            return
        except (errors.APIError, OSError, TimeoutError) as error:
            if time.monotonic() > deadline:
                log.warning("the API server does not answer, going on: %s", error)
                return
            await asyncio.sleep(0.02)


def _elector(options: Options, client: Client, clock: SystemClock) -> LeaderElector:
    return LeaderElector(
        client.for_component("leader-election"),
        clock,
        name=options.leader_elect_resource_name,
        namespace=options.leader_elect_resource_namespace,
        identity=f"{socket.gethostname()}_{secrets.token_hex(8)}",
        lease_duration=options.leader_elect_lease_duration,
        renew_deadline=options.leader_elect_renew_deadline,
        retry_period=options.leader_elect_retry_period,
        on_new_leader=lambda leader: log.info("new leader: %s", leader or "nobody"),
    )


async def _freeze_when_started(manager: Manager) -> None:
    """What is alive after the start stays alive: the collector need not look at it again. (Kinds are not collected.)"""
    await manager.started.wait()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _end_on_signals(work: asyncio.Task[None]) -> None:
    stopping = False

    def stop() -> None:
        nonlocal stopping
        if stopping:
            os._exit(1)
        stopping = True
        work.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)


def _tls(options: Options) -> ssl.SSLContext:
    if options.tls_cert_file:
        return serving_tls(options.tls_cert_file, options.tls_private_key_file, options.client_ca_file)
    from pybernetes import pki  # costs 10 MB, and who runs a cluster gives us a certificate

    identity = pki.issue_server(pki.create_authority(f"{PROGRAM}-ca"), PROGRAM, ["localhost", "127.0.0.1"])
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "tls.crt").write_bytes(identity.certificate_pem)
        (folder / "tls.key").write_bytes(identity.key_pem)
        return serving_tls(str(folder / "tls.crt"), str(folder / "tls.key"), options.client_ca_file)
