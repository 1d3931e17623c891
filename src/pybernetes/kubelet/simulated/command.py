"""`pyb simulated-nodes`: flags in, nodes and pods that only pretend, until SIGTERM.

The pods are in the API server alone, so they outlive this process: the next one takes them up as their statuses say.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pybernetes.api import errors
from pybernetes.api.core.v1 import Node
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.api.rbac.v1 import ClusterRoleBinding, RoleRef, Subject
from pybernetes.client import component
from pybernetes.client import config as clientconfig
from pybernetes.client.checks import Check
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.health import HealthServer
from pybernetes.client.informers import InformerFactory
from pybernetes.client.metrics import Registry

from .addresses import node_address
from .agent import Agent
from .behaviour import Rules
from .identities import Identities
from .nodes import Place, Shape, SimulatedNodes
from .options import Options, parse
from .rules_file import RulesFile
from .server import Kubelets

PROGRAM = "simulated-nodes"
RBAC = "rbac.authorization.k8s.io"
BINDING = "pybernetes:kubelet-api-admin"


def main(argv: list[str]) -> int:
    """Pretend; the exit code."""
    options = parse(argv)
    component.log_to_stderr(options.v)
    try:
        file = RulesFile(options.rules) if options.rules is not None else None
        return component.run_until_done(_run(options, file, file.read() if file is not None else Rules()))
    except (clientconfig.ConfigError, OSError, ValueError) as error:
        print(f"pyb simulated-nodes: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def names(options: Options) -> list[str]:
    """Of the nodes."""
    width = max(4, len(str(options.nodes)))
    return [f"{options.name_prefix}{number + 1:0{width}}" for number in range(options.nodes)]


class Worker:
    """Nodes and pods together: what `component` runs."""

    def __init__(self, options: Options, file: RulesFile | None, rules: Rules, client: Client) -> None:
        self.started = asyncio.Event()
        self._options = options
        self._clock = SystemClock()
        self._file = file
        self._rules = rules
        self._client = client
        self._identities = Identities(client, self._clock)
        self._informers = InformerFactory(client.for_component("informers"), clock=self._clock)

    async def run(self) -> None:
        kubelets, ports = await self._serve() if self._options.kubelet_port is not None else (None, {})
        nodes = self._nodes(ports)
        agent = Agent(self._identities, self._informers, self._clock, nodes, self._rules.pods)
        if kubelets is not None:
            kubelets.attach(agent, nodes)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(nodes.run())
                await nodes.started.wait()
                self._informers.start()
                await self._informers.wait_synced()
                await agent.start()
                self.started.set()
                if self._file is not None:
                    group.create_task(self._file.follow(self._clock, partial(_change_rules, nodes, agent)))
        finally:
            if kubelets is not None:
                await kubelets.stop()
            await agent.stop()
            await self._identities.stop()

    def _nodes(self, ports: Mapping[str, int]) -> SimulatedNodes:
        options = self._options
        shape = Shape(
            resources={**Shape().resources, **options.node_resources},
            labels=options.node_labels,
            taints=options.register_with_taints,
            zones=options.zones,
        )
        informer = self._informers.informer(Node)
        places = {
            name: Place(node_address(number), options.kubelet_address, ports.get(name, 0))
            for number, name in enumerate(names(options))
        }
        return SimulatedNodes(self._identities, self._clock, informer, places, shape, self._rules.nodes)

    async def _serve(self) -> tuple[Kubelets, dict[str, int]]:
        """Listen before nodes report the port."""
        options = self._options
        assert options.kubelet_port is not None
        trust = None
        if options.client_ca_file:
            from pybernetes.net.client_certificates import Trust

            trust = Trust(Path(options.client_ca_file))
        client = self._client.for_component("kubelets")
        if options.kubelet_client_user:
            await _allow(client, options.kubelet_client_user)
        kubelets = Kubelets(client, self._clock, trust)
        certificate, key = _certificate(options)
        ports = await kubelets.start(options.kubelet_address, options.kubelet_port, names(options), certificate, key)
        return kubelets, ports


def _change_rules(nodes: SimulatedNodes, agent: Agent, rules: Rules) -> None:
    nodes.set_rules(rules.nodes)
    agent.set_rules(rules.pods)


async def _allow(client: Client, user: str) -> None:
    """Let a user ask kubelets for anything; who has changed or deleted the binding has his way until the next start."""
    binding = ClusterRoleBinding(
        metadata=ObjectMeta(name=BINDING),
        role_ref=RoleRef(api_group=RBAC, kind="ClusterRole", name="system:kubelet-api-admin"),
        subjects=[Subject(api_group=RBAC, kind="User", name=user)],
    )
    with contextlib.suppress(errors.AlreadyExists):
        await client.create(binding)


def _certificate(options: Options) -> tuple[Path, Path]:
    if not (options.kubelet_tls_cert_file and options.kubelet_tls_private_key_file):
        raise ValueError("--kubelet-port needs --kubelet-tls-cert-file and --kubelet-tls-private-key-file")
    return Path(options.kubelet_tls_cert_file), Path(options.kubelet_tls_private_key_file)


async def _run(options: Options, file: RulesFile | None, rules: Rules) -> int:
    settings = clientconfig.load(options.kubeconfig or None)
    async with Client(settings, program=PROGRAM) as client:
        worker = Worker(options, file, rules, client)
        checks: dict[str, Check] = {"ping": lambda: True, "nodes": worker.started.is_set}
        health = HealthServer(Registry(), dict.fromkeys(("healthz", "livez", "readyz"), checks), client)
        return await component.serve_and_work(
            worker, client, health, None, options, program=PROGRAM, command="pyb simulated-nodes"
        )
