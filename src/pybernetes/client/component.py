"""What the commands of our components have in common: waiting for the server, ending, serving, one of several."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any

from pybernetes.api import errors

from .client import Client
from .clock import Clock
from .health import serving_tls
from .leaderelection import LeaderElector

SERVER_TIMEOUT = 10.0  # upstream's
log = logging.getLogger(__name__)


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
    """Who works while it holds the Lease."""
    return LeaderElector(
        client.for_component("leader-election"),
        clock,
        name=name,
        namespace=namespace,
        identity=f"{socket.gethostname()}_{secrets.token_hex(8)}",
        lease_duration=lease,
        renew_deadline=renew,
        retry_period=retry,
        on_new_leader=lambda leader: log.info("new leader: %s", leader or "nobody"),
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
