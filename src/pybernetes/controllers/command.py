"""`pyb controller-manager`: flags in, controllers until SIGTERM. A second SIGTERM ends it at once."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import logging
import os
import sys

from pybernetes.client import component, config
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.health import HealthServer
from pybernetes.client.informers import InformerFactory
from pybernetes.client.leaderelection import LeadershipLost

from .base import ControllerContext
from .identity import Identities
from .manager import Manager, choose
from .options import Options, parse

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
        elector = (
            component.elector(
                client,
                clock,
                name=options.leader_elect_resource_name,
                namespace=options.leader_elect_resource_namespace,
                lease=options.leader_elect_lease_duration,
                renew=options.leader_elect_renew_deadline,
                retry=options.leader_elect_retry_period,
            )
            if options.leader_elect
            else None
        )
        health = HealthServer(
            context.metrics,
            {
                "ping": lambda: True,
                # A replica that waits for the lock is as ready as it can be.
                "controllers": lambda: manager.started.is_set() or (elector is not None and not elector.is_leader),
            },
            client,
        )
        await component.wait_for_server(client)
        if options.secure_port:
            tls = component.component_tls(
                PROGRAM, options.tls_cert_file, options.tls_private_key_file, options.client_ca_file
            )
            await health.start(options.bind_address, options.secure_port, tls)
        work = asyncio.create_task(elector.run(manager.run) if elector else manager.run())
        freezing = asyncio.create_task(_freeze_when_started(manager))
        component.end_on_signals(work)
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


async def _freeze_when_started(manager: Manager) -> None:
    """What is alive after the start stays alive: the collector need not look at it again. (Kinds are not collected.)"""
    await manager.started.wait()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
