"""Shared by the components' commands: logs, waiting for the server, serving, leader election, the end."""

from __future__ import annotations

import asyncio
import contextlib
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
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pybernetes.api import errors
from pybernetes.component import klog
from pybernetes.component.tasks import Tasks, failures
from pybernetes.component.watchdog import LoopWatchdog

from . import tracing
from .client import Client
from .clock import Clock
from .health import HealthServer, serving_tls
from .leaderelection import LeaderElector, LeadershipLost
from .metrics import CounterFunction, GaugeFunction, Registry

SERVER_TIMEOUT = 10.0  # upstream's
log = logging.getLogger(__name__)


class Worker(Protocol):
    """The work of a component."""

    started: asyncio.Event

    async def run(self) -> None:
        """Work until cancelled."""
        ...


class Serving(Protocol):
    """The flags about a component's own port."""

    bind_address: str
    secure_port: int
    tls_cert_file: str
    tls_private_key_file: str
    client_ca_file: str


def log_to_stderr(verbosity: int) -> None:
    """Log in klog's form; with -v=2 what happens, with -v=4 everything."""
    klog.to_stderr(verbosity)


def run_until_done(main: Coroutine[Any, Any, int]) -> int:
    """Run a component's coroutine on a quick event loop; the exit code."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def is_ready(worker: Worker, elector: LeaderElector | None) -> bool:
    """Whether it works. A replica that waits for the lock is as ready as it can be."""
    return worker.started.is_set() or (elector is not None and not elector.is_leader)


async def serve_and_work(
    worker: Worker,
    client: Client,
    health: HealthServer,
    elector: LeaderElector | None,
    options: Serving,
    *,
    program: str,
    command: str,
) -> int:
    """Serve health and metrics, and work (with an elector: while it leads) until a signal comes; the exit code."""
    await wait_for_server(client)
    if options.secure_port:
        tls = component_tls(program, options.tls_cert_file, options.tls_private_key_file, options.client_ca_file)
        await health.start(options.bind_address, options.secure_port, tls)
    watchdog = LoopWatchdog()
    watchdog.start()
    add_process_metrics(health.metrics, watchdog)
    tasks = Tasks(program)
    sender = tracing.start(program, client, tasks)
    tasks.start("freezing of what is there after the start", partial(freeze_when_started, worker), restart=False)
    work = asyncio.create_task(elector.run(worker.run) if elector else worker.run())
    end_on_signals(work)
    try:
        await work  # its failure is the process's
    except asyncio.CancelledError:
        return 0
    except LeadershipLost as error:
        # As upstream: what was begun may be half done, only a new process is sure to act on nothing old.
        print(f"{command}: {error}", file=sys.stderr)
        return 1
    finally:
        watchdog.stop()
        await tasks.stop()
        if sender is not None:
            await sender.close()
        await health.stop()
    return 0


def add_process_metrics(registry: Registry, watchdog: LoopWatchdog) -> None:
    """How late the event loop is, and which long-lived tasks have failed how often."""
    registry.add(
        GaugeFunction(
            "pybernetes_event_loop_lag_seconds",
            "The event loop's greatest delay since the last scrape.",
            (),
            lambda: [((), watchdog.take_max_lag())],
        )
    )
    registry.add(
        CounterFunction(
            "pybernetes_event_loop_stalls_total",
            "How often the event loop was more than a second late.",
            (),
            lambda: [((), watchdog.stalls)],
        )
    )
    registry.add(
        CounterFunction(
            "pybernetes_task_failures_total",
            "Failures of long-lived tasks, which are started again.",
            ("task",),
            lambda: [((name,), count) for name, count in sorted(failures.items())],
        )
    )


async def freeze_when_started(worker: Worker) -> None:
    """Freeze the objects that are alive after the start: the collector need not look at them again. (Kinds are not
    collected.)"""
    await worker.started.wait()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def wait_for_server(client: Client) -> None:
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


def end_on_signals(work: asyncio.Task[Any]) -> None:
    """SIGTERM and SIGINT cancel the work; a second one ends the process at once."""
    stopping = False

    def stop() -> None:
        nonlocal stopping
        if stopping:
            os._exit(1)
        stopping = True
        work.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)


def elector(
    client: Client, clock: Clock, *, name: str, namespace: str, lease: float, renew: float, retry: float
) -> LeaderElector:
    """The worker that runs while it holds the Lease."""
    return LeaderElector(
        client.for_component("leader-election"),
        clock,
        name=name,
        namespace=namespace,
        identity=f"{socket.gethostname()}_{secrets.token_hex(8)}",
        lease_duration=lease,
        renew_deadline=renew,
        retry_period=retry,
        on_new_leader=lambda leader: klog.info(log, 0, "New leader elected", leader=leader or ""),
    )


def component_tls(program: str, certificate: str, key: str, client_ca: str) -> ssl.SSLContext:
    """TLS with the certificate given, or with one that we sign ourselves."""
    if certificate:
        return serving_tls(certificate, key, client_ca)
    from pybernetes import pki  # costs 10 MB, and who runs a cluster gives us a certificate

    identity = pki.issue_server(pki.create_authority(f"{program}-ca"), program, ["localhost", "127.0.0.1"])
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "tls.crt").write_bytes(identity.certificate_pem)
        (folder / "tls.key").write_bytes(identity.key_pem)
        return serving_tls(str(folder / "tls.crt"), str(folder / "tls.key"), client_ca)
