"""Simulated Nodes: each registered, with a status and a Lease that is renewed, as its kubelet would do it."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pybernetes.api.core.podresources import Quantities, parsed
from pybernetes.api.core.v1 import Taint
from pybernetes.client.client import Client
from pybernetes.client.clock import Clock
from pybernetes.client.events import EventRecorder
from pybernetes.version import GIT_VERSION

from ..allocatable import Machine
from ..node_reporter import NodeReporter
from ..nodestatus import NodeFindings, new_node

LABEL: Final = "simulated.pybernetes.io/node"
AT_ONCE: Final = 32
"""Nodes that are registered side by side."""
REPORT_EVERY: Final = 300.0
GI: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Shape:
    """What each node pretends to have."""

    resources: Mapping[str, str] = field(
        default_factory=lambda: {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}
    )
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Taint] = ()
    zones: Sequence[str] = ()
    """Nodes are put into them in turn."""


class SimulatedNodes:
    """All of them. `address(name)` is where the server of a node's kubelet is."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        recorder: EventRecorder,
        addresses: Mapping[str, str],
        shape: Shape,
        port: int,
    ) -> None:
        self.started = asyncio.Event()
        self._clock = clock
        quantities = parsed(shape.resources)
        self._reporters = [
            self._reporter(client, clock, recorder, name, address, number, shape, quantities, port)
            for number, (name, address) in enumerate(addresses.items())
        ]

    async def run(self) -> None:
        """Keep them alive until cancelled; `started` is set when all are registered."""
        turn = asyncio.Semaphore(AT_ONCE)

        async def register(reporter: NodeReporter) -> None:
            async with turn:
                task = group.create_task(reporter.run())
                registered = asyncio.create_task(reporter.registered.wait())
                await asyncio.wait([task, registered], return_when=asyncio.FIRST_COMPLETED)

        async with asyncio.TaskGroup() as group:
            for each in [group.create_task(register(each)) for each in self._reporters]:
                await each
            self.started.set()

    def _reporter(
        self,
        client: Client,
        clock: Clock,
        recorder: EventRecorder,
        name: str,
        address: str,
        number: int,
        shape: Shape,
        quantities: Quantities,
        port: int,
    ) -> NodeReporter:
        identity = uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16])
        machine = Machine(
            cpus=quantities["cpu"].value(),
            memory=quantities["memory"].value(),
            swap=0,
            pids=1 << 22,
            hugepages={},
            storage=1024 * GI,
            machine_id=identity.hex,
            system_uuid=str(identity),
            boot_id=str(identity),
        )
        findings = NodeFindings(
            name, machine, quantities, quantities, [address], name, port, f"simulated://{GIT_VERSION.lstrip('v')}"
        )

        async def found() -> NodeFindings:
            return findings

        labels = {LABEL: "true", **shape.labels}
        if shape.zones:
            labels["topology.kubernetes.io/zone"] = shape.zones[number % len(shape.zones)]
        node = new_node(name, name, labels, shape.taints)
        return NodeReporter(client, clock, recorder, node, found, update_every=REPORT_EVERY, report_every=REPORT_EVERY)
