"""`pyb controller-manager`: flags in, controllers until SIGTERM. A second SIGTERM ends it at once."""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from types import ModuleType

from pybernetes.client import component, config
from pybernetes.client.checks import Check
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.health import About, HealthServer
from pybernetes.client.informers import InformerFactory
from pybernetes.client.leaderelection import LeaderElector

from .base import ControllerContext
from .identity import Identities
from .manager import Manager, choose
from .options import Options, parse

log = logging.getLogger(__name__)

PROGRAM = "kube-controller-manager"
NICE = 5
"""Behind an API server on the same machine: when processors are short, answers come before what follows from them."""


def main(argv: list[str]) -> int:
    """Run the controllers; the exit code."""
    options = parse(argv)
    component.log_to_stderr(options.v)
    os.nice(NICE)
    if options.cluster_name != Options().cluster_name:
        log.warning("--cluster-name has no effect: only cloud providers use it, and there are none")
    try:
        names = choose(options.controllers)
        return component.run_until_done(_run(options, names))
    except (config.ConfigError, OSError, ValueError) as error:
        print(f"pyb controller-manager: {error}", file=sys.stderr)
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
            _checks(names, manager, elector),
            client,
            about=About(PROGRAM, lambda: _configz().flag_values(options), lambda: _configz().configuration(options)),
        )
        try:
            return await component.serve_and_work(
                manager, client, health, elector, options, program=PROGRAM, command="pyb controller-manager"
            )
        finally:
            if context.identities:
                await context.identities.close()


def _checks(names: Sequence[str], manager: Manager, elector: LeaderElector | None) -> Mapping[str, Mapping[str, Check]]:
    """By path. /healthz has a check for each controller, as upstream: one that keeps failing is not well."""
    election: dict[str, Check] = {"leaderElection": elector.problem} if elector else {}
    return {
        "healthz": {**election, **{name: partial(manager.problem, name) for name in sorted(names)}},
        "livez": {"ping": _well},
        "readyz": {**election, "controllers": lambda: component.is_ready(manager, elector)},
    }


def _well() -> bool:
    return True


def _configz() -> ModuleType:
    """Imported at the first request."""
    from . import configz

    return configz
