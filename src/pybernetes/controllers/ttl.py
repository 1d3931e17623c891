"""Tells kubelets how long they may keep Secrets and ConfigMaps before asking again.

Woken by: nodes. Writes: the nodes' annotation `node.alpha.kubernetes.io/ttl`. The more nodes, the longer; the steps
overlap, so that a cluster whose size varies a little does not rewrite all its nodes each time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pybernetes.api.core.v1 import Node
from pybernetes.client.keys import Key

from .base import Controller
from .common.meta import annotations_of

ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"


class Step(NamedTuple):
    """A size of the cluster: left downwards below `least` nodes, upwards above `most`."""

    least: int
    most: float
    seconds: int


STEPS: Final = (
    Step(0, 100, 0),
    Step(90, 500, 15),
    Step(450, 1000, 30),
    Step(900, 2000, 60),
    Step(1800, float("inf"), 300),
)


def next_step(step: int, nodes: int) -> int:
    """The step (an index of STEPS) of a cluster that was at another step and has so many nodes now."""
    while nodes > STEPS[step].most:
        step += 1
    while nodes < STEPS[step].least:
        step -= 1
    return step


class TTLController(Controller[Node]):
    """Keeps the annotation on nodes."""

    name = "ttl-controller"
    kind = Node
    workers = 5

    def setup(self) -> None:
        """Begin as a small cluster."""
        self.step = 0

    def queue_name(self) -> str:
        """The name of the queue in metrics, as upstream names it."""
        return "ttlcontroller"

    async def reconcile(self, key: Key) -> float | None:
        """Write the annotation if it says something else."""
        self.step = next_step(self.step, len(self.own))
        node = self.own.get(key)
        if node is None:
            return None
        wanted = STEPS[self.step].seconds
        if _number(annotations_of(node).get(ANNOTATION)) != wanted:
            await self.client.patch(Node, key.name, {"metadata": {"annotations": {ANNOTATION: str(wanted)}}})
        return None


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
