"""`pyb scheduler`: flags in, pods placed until SIGTERM. A second SIGTERM ends it at once."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from pybernetes.api.times import parse_duration
from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.checks import Check
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.health import About, HealthServer
from pybernetes.client.informers import InformerFactory

from .config import load
from .config.spec import build
from .config.v1.types import ClientConnectionConfiguration, KubeSchedulerConfiguration, LeaderElectionConfiguration
from .explain.memory import Memory
from .explain.page import PATH, page
from .failures import BURST, QPS
from .metrics import Metrics
from .options import Options, flag_values, parse
from .profiles import SchedulerSpec
from .scheduler import Scheduler

PROGRAM = "kube-scheduler"
NICE = 1
"""Behind an API server on the same machine, before the controllers: answers come before what follows from them."""
NO_LIMIT = 1e9


def main(argv: list[str]) -> int:
    """Run the scheduler; the exit code."""
    options = parse(argv)
    component.log_to_stderr(options.v)
    try:
        config, check_all_filters = _configuration(options)
        if options.write_config_to:
            _write(config, Path(options.write_config_to))
            return 0
        spec = build(config, check_all_filters=check_all_filters)
        spec.pod_max_in_unschedulable_seconds = options.pod_max_in_unschedulable_pods_duration
        os.nice(NICE)
        return component.run_until_done(_run(options, config, spec))
    except (clientconfig.ConfigError, OSError, ValueError) as error:
        print(f"pyb scheduler: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _configuration(options: Options) -> tuple[KubeSchedulerConfiguration, bool]:
    """The file, and over it what was typed; and what only a policy file can say (alwaysCheckAllPredicates)."""
    check_all_filters = False
    if options.config and options.policy_config_file:
        raise ValueError("--config and --policy-config-file are two ways to say the same; give one")
    if options.config:
        config = load.load(Path(options.config).read_bytes())
    elif options.policy_config_file:
        from .config import policy

        loaded = policy.load(Path(options.policy_config_file).read_bytes())
        for warning in loaded.warnings:
            print(f"pyb scheduler: {options.policy_config_file}: {warning}", file=sys.stderr)
        config = loaded.config
        check_all_filters = loaded.always_check_all_predicates
    else:
        config = load.default()
    election = config.leader_election = config.leader_election or LeaderElectionConfiguration()
    if options.leader_elect is not None:
        election.leader_elect = options.leader_elect
    for field in ("lease_duration", "renew_deadline", "retry_period"):
        seconds = getattr(options, f"leader_elect_{field}")
        if seconds is not None:
            setattr(election, field, f"{seconds}s")
    for field in ("resource_lock", "resource_name", "resource_namespace"):
        text = getattr(options, f"leader_elect_{field}")
        if text is not None:
            setattr(election, field, text)
    connection = config.client_connection = config.client_connection or ClientConnectionConfiguration()
    if options.kubeconfig and not options.config:
        connection.kubeconfig = options.kubeconfig
    if options.kube_api_qps is not None and not options.config:
        connection.qps = options.kube_api_qps
    if options.kube_api_burst is not None and not options.config:
        connection.burst = options.kube_api_burst
    load.check(config)
    return config, check_all_filters


def _write(config: KubeSchedulerConfiguration, path: Path) -> None:
    from .config.dump import dump

    path.write_bytes(dump(config))


async def _run(options: Options, config: KubeSchedulerConfiguration, spec: SchedulerSpec) -> int:
    clock = SystemClock()
    connection, election = config.client_connection, config.leader_election
    assert connection is not None
    assert election is not None
    settings = clientconfig.load(connection.kubeconfig or None)
    if options.master:
        settings = dataclasses.replace(settings, server=options.master)
    # Upstream's default limits the reports of unschedulable pods; other requests need no limit.
    qps = 0.0 if connection.qps in (None, QPS) else connection.qps or 0.0
    burst = connection.burst or BURST
    async with Client(settings, program=PROGRAM, qps=qps, burst=burst, clock=clock) as client:
        metrics = Metrics()
        informers = InformerFactory(client.for_component("informers"), clock=clock)
        memory = Memory()
        limit = connection.qps or 0.0
        telling = (limit if limit > 0 else NO_LIMIT, burst)
        scheduler = Scheduler(
            client.for_component("scheduler"), informers, spec, clock, metrics=metrics, recorder=memory, telling=telling
        )
        elector = None
        if election.leader_elect:
            elector = component.elector(
                client,
                clock,
                name=election.resource_name or PROGRAM,
                namespace=election.resource_namespace or "kube-system",
                lease=_seconds(election.lease_duration),
                renew=_seconds(election.renew_deadline),
                retry=_seconds(election.retry_period),
            )
        election_check: dict[str, Check] = {"leaderElection": elector.problem} if elector else {}
        health = HealthServer(
            metrics.registry,
            {
                "healthz": election_check or {"ping": lambda: True},
                "livez": {"ping": lambda: True},
                "readyz": {
                    **election_check,
                    "shutdown": lambda: True,
                    "sched-handler-sync": lambda: component.is_ready(scheduler, elector),
                },
            },
            client,
            {PATH: page(scheduler, memory)},
            About(PROGRAM, lambda: flag_values(options, config), lambda: _configz(config)),
        )
        return await component.serve_and_work(
            scheduler, client, health, elector, options, program=PROGRAM, command="pyb scheduler"
        )


def _configz(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """As `--write-config-to` writes it."""
    from pybernetes.api.yaml import yaml_to_json

    from .config.dump import dump

    return {"componentconfig": msgspec.Raw(yaml_to_json(dump(config))[0])}


def _seconds(text: str | None) -> float:
    return parse_duration(text or "0s") / 1e9
