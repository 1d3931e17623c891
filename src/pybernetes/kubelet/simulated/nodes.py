"""Simulated Nodes: each registered, with a status and a Lease that is renewed, as its kubelet would do it.

What a node does is said by rules and its annotations, which may change at any time: it falls silent and comes back,
is not ready, or is short of something.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pybernetes.api.core.podresources import Quantities, parsed
from pybernetes.api.core.v1 import ContainerImage, Node, Taint
from pybernetes.client.clock import Clock, Timer
from pybernetes.client.events import WARNING
from pybernetes.client.informer import Informer
from pybernetes.client.keys import Key
from pybernetes.version import GIT_VERSION

from ..node.allocatable import Machine
from ..node.reporter import NodeReporter
from ..node.status import NodeFindings, new_node
from .behaviour import Rule, node_behaviour
from .identities import Identities
from .settings import NodeBehaviour

LABEL: Final = "simulated.pybernetes.io/node"
AT_ONCE: Final = 32
"""Nodes that are registered side by side."""
REPORT_EVERY: Final = 300.0
IMAGES_AFTER: Final = 30.0
"""Seconds until new images are reported, at least; at most twice that. A kubelet does it sooner, but a thousand of them
that get the same image at once would cost more than the pods that use it."""
MOST_IMAGES: Final = 50
"""Images in a node's status; upstream's `nodeStatusMaxImages`."""
IMAGE_SIZE: Final = 100 << 20
GI: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Shape:
    """The resources and facts that each simulated node reports."""

    resources: Mapping[str, str] = field(
        default_factory=lambda: {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}
    )
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Taint] = ()
    zones: Sequence[str] = ()
    """Nodes are put into them in turn."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node is: its address, and where its kubelet is reached; nowhere, if the port is 0."""

    address: str
    reached: str = ""
    port: int = 0


class _One:
    """A node that is pretended."""

    def __init__(self, node: Node, reporter: NodeReporter, findings: NodeFindings, behaviour: NodeBehaviour) -> None:
        self.node = node
        """As it was seen last: one whose Node is deleted does as it did."""
        self.reporter = reporter
        self.findings = findings
        self.behaviour = behaviour
        self.problems: Sequence[str] = ()
        self.task: asyncio.Task[None] | None = None
        self.images: dict[str, None] = {}
        """The last one used is the last."""
        self.images_due: Timer | None = None


class SimulatedNodes:
    """All of them. `changed` is called with the name of a node that behaves in another way from now on."""

    def __init__(
        self,
        identities: Identities,
        clock: Clock,
        informer: Informer[Node],
        places: Mapping[str, Place],
        shape: Shape,
        rules: Sequence[Rule] = (),
    ) -> None:
        self.started = asyncio.Event()
        self.changed: list[Callable[[str], None]] = []
        self.places = places
        self._identities = identities
        self._clock = clock
        self._informer = informer
        self._rules = rules
        self._group: asyncio.TaskGroup | None = None
        self.quantities = parsed(shape.resources)
        self._ones = {
            name: self._one(name, place, number, shape, self.quantities)
            for number, (name, place) in enumerate(places.items())
        }
        informer.add_handler(self._seen, lambda _, new: self._seen(new), self._deleted)

    async def run(self) -> None:
        """Keep them alive until cancelled; `started` is set when all are registered."""
        turn = asyncio.Semaphore(AT_ONCE)

        async def register(one: _One) -> None:
            async with turn:
                self._wake_up(one)
                registered = asyncio.create_task(one.reporter.registered.wait())
                assert one.task is not None
                await asyncio.wait([one.task, registered], return_when=asyncio.FIRST_COMPLETED)

        async with asyncio.TaskGroup() as self._group:
            for each in [self._group.create_task(register(each)) for each in self._ones.values()]:
                await each
            self.started.set()
            for one in self._ones.values():
                self._apply(one)
            await asyncio.Event().wait()  # also while all of them are silent: they come back

    def set_rules(self, rules: Sequence[Rule]) -> None:
        """From now on these are in force."""
        self._rules = rules
        for name, one in self._ones.items():
            self._consider(name, one)

    # -- what others ask

    def __contains__(self, name: str) -> bool:
        return name in self._ones

    def host_ips(self, name: str) -> Sequence[str]:
        """Addresses of a node."""
        return (self.places[name].address,)

    def node(self, name: str) -> Node | None:
        """The Node as the API server has it."""
        return self._informer.get(Key("", name))

    def behaviour(self, name: str) -> NodeBehaviour:
        """The node's behaviour."""
        return self._ones[name].behaviour

    def silent(self, name: str) -> bool:
        """Whether nothing is to be heard of it."""
        return self._ones[name].behaviour.silent

    def pressures(self, name: str) -> Sequence[str]:
        """The node's pressure conditions."""
        return list(self._ones[name].findings.pressures)

    def set_pressures(self, name: str, conditions: Sequence[str]) -> None:
        """It is short of something, or no more."""
        one = self._ones[name]
        one.findings.pressures = dict.fromkeys(conditions, True)
        one.reporter.wake()

    def image_used(self, name: str, image: str) -> None:
        """A container was started from the image, which the node has from now on."""
        one = self._ones[name]
        known = image in one.images
        one.images.pop(image, None)
        one.images[image] = None
        if known:
            return
        if len(one.images) > MOST_IMAGES:
            del one.images[next(iter(one.images))]
        if one.images_due is None:
            one.images_due = self._clock.call_later(IMAGES_AFTER * (1 + random.random()), self._report_images, one)

    # -- what they do

    def _report_images(self, one: _One) -> None:
        one.images_due = None
        one.findings.images = [
            ContainerImage(names=[image], size_bytes=IMAGE_SIZE) for image in reversed(list(one.images))
        ]
        one.reporter.wake()

    def _seen(self, node: Node) -> None:
        name = _name(node)
        if one := self._ones.get(name):
            one.node = node
            one.reporter.seen(node)
            self._consider(name, one)

    def _deleted(self, node: Node) -> None:
        if one := self._ones.get(_name(node)):
            one.reporter.gone()

    def _consider(self, name: str, one: _One) -> None:
        found, problems = node_behaviour(one.node, self._rules)
        if problems != one.problems:
            one.problems = problems
            for problem in problems:
                self._identities.recorder(name).event(one.reporter.reference, WARNING, "BadSimulation", problem)
        if found != one.behaviour:
            one.behaviour = found
            if self.started.is_set():
                self._apply(one)

    def _apply(self, one: _One) -> None:
        """Let a node do what it shall."""
        one.findings.problems = [one.behaviour.not_ready] if one.behaviour.not_ready else []
        if one.behaviour.silent:
            if one.task is not None:
                one.task.cancel()
                one.task = None
        elif one.task is None:
            self._wake_up(one)
        else:
            one.reporter.wake()
        for tell in self.changed:
            tell(one.reporter.name)

    def _wake_up(self, one: _One) -> None:
        assert self._group is not None
        one.task = self._group.create_task(one.reporter.run(), name=f"node {one.reporter.name}")

    def _one(self, name: str, place: Place, number: int, shape: Shape, quantities: Quantities) -> _One:
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
        version = f"simulated://{GIT_VERSION.lstrip('v')}"
        findings = NodeFindings(name, machine, quantities, quantities, [place.address], name, place.port, version)
        findings.external_addresses = [place.reached] if place.port else []

        async def found() -> NodeFindings:
            return findings

        labels = {LABEL: "true", **shape.labels}
        if shape.zones:
            labels["topology.kubernetes.io/zone"] = shape.zones[number % len(shape.zones)]
        node = new_node(name, name, labels, shape.taints)
        reporter = NodeReporter(
            self._identities.client(name),
            self._clock,
            self._identities.recorder(name),
            node,
            found,
            update_every=REPORT_EVERY,
            report_every=REPORT_EVERY,
        )
        return _One(node, reporter, findings, node_behaviour(node, self._rules)[0])


def _name(node: Node) -> str:
    return (node.metadata.name if node.metadata else None) or ""
