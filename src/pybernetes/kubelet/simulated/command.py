"""`pyb simulated-nodes`: flags in, nodes and pods that only pretend, until SIGTERM.

The pods are in the API server alone, so they outlive this process: the next one takes them up as their statuses say.
"""

from __future__ import annotations

import asyncio
import ipaddress
import sys

import msgspec

from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.events import EventBroadcaster, EventRecorder
from pybernetes.client.health import HealthServer
from pybernetes.client.informers import InformerFactory
from pybernetes.client.metrics import Registry

from .agent import Agent
from .behaviour import Rule, read_rules
from .nodes import Shape, SimulatedNodes
from .options import Options, parse

PROGRAM = "simulated-nodes"
NETWORK = ipaddress.ip_network("198.18.0.0/15")
"""Where the nodes pretend to be: addresses for tests of networks (RFC 2544), which lead nowhere."""
PORT = 10250


def main(argv: list[str]) -> int:
    """Pretend; the exit code."""
    options = parse(argv)
    component.log_to_stderr(options.v)
    try:
        rules = _rules(options)
        return component.run_until_done(_run(options, rules))
    except (clientconfig.ConfigError, OSError, ValueError) as error:
        print(f"pyb simulated-nodes: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _rules(options: Options) -> list[Rule]:
    if options.rules is None:
        return []
    from pybernetes.api.yaml import yaml_to_json

    try:
        return read_rules(msgspec.json.decode(yaml_to_json(options.rules.read_bytes())[0]))
    except ValueError as error:
        raise ValueError(f"{options.rules}: {error}") from error


def names_and_addresses(options: Options) -> dict[str, str]:
    """The nodes, each with its address."""
    width = max(4, len(str(options.nodes)))
    first = int(NETWORK.network_address) + 1
    return {
        f"{options.name_prefix}{number + 1:0{width}}": str(ipaddress.ip_address(first + number))
        for number in range(options.nodes)
    }


class _Worker:
    """Nodes and pods together: what `component` runs."""

    def __init__(self, options: Options, rules: list[Rule], client: Client) -> None:
        clock = SystemClock()
        self._broadcaster = EventBroadcaster(client.for_component("events"), clock)
        recorder = EventRecorder(self._broadcaster, "kubelet")
        self._informers = InformerFactory(client.for_component("informers"), clock=clock)
        addresses = names_and_addresses(options)
        shape = Shape(
            resources={**Shape().resources, **options.node_resources},
            labels=options.node_labels,
            taints=options.register_with_taints,
            zones=options.zones,
        )
        self._nodes = SimulatedNodes(client.for_component("nodes"), clock, recorder, addresses, shape, PORT)
        hosts = {name: (address,) for name, address in addresses.items()}
        self._agent = Agent(client.for_component("statuses"), self._informers, clock, recorder, hosts.get, rules)
        self.started = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._broadcaster.run())
            group.create_task(self._nodes.run())
            await self._nodes.started.wait()
            self._informers.start()
            await self._informers.wait_synced()
            self.started.set()
            try:
                await asyncio.Event().wait()
            finally:
                await self._agent.stop()


async def _run(options: Options, rules: list[Rule]) -> int:
    settings = clientconfig.load(options.kubeconfig or None)
    async with Client(settings, program=PROGRAM) as client:
        worker = _Worker(options, rules, client)
        health = HealthServer(Registry(), {"ping": lambda: True, "nodes": worker.started.is_set}, client)
        return await component.serve_and_work(
            worker, client, health, None, options, program=PROGRAM, command="pyb simulated-nodes"
        )
