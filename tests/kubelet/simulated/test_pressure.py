"""Simulated nodes that are short of something, in simulated time."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pybernetes.api.core.v1 import Pod, PodStatus
from pybernetes.client.clock import FakeClock
from pybernetes.client.codec import decode
from pybernetes.kubelet.backoff import BackOff
from pybernetes.kubelet.simulated.behaviour import PREFIX
from pybernetes.kubelet.simulated.pod import SimulatedPod
from pybernetes.kubelet.simulated.pressure import Pressures
from pybernetes.kubelet.simulated.settings import NodeBehaviour

GI = 1 << 30


class Node:
    """A node with 10Gi of memory, and who was evicted from it."""

    def __init__(self, **memory: str) -> None:
        self.clock = FakeClock(1_700_000_000.0)
        self.behaviour = NodeBehaviour()
        self.reports: list[list[str]] = []
        self.evicted: list[tuple[str, str]] = []
        self.pods = [self.pod(name, text) for name, text in memory.items()]
        self.pressures = Pressures(
            self.clock, 10 * GI, lambda _: self.behaviour, lambda _: self.pods, self.evict, self.change
        )

    def pod(self, name: str, memory: str) -> tuple[Pod, SimulatedPod]:
        metadata = {"name": name, "namespace": "d", "uid": name, "annotations": {PREFIX + "memory": memory}}
        body = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        pod = decode(Pod, json.dumps(body).encode())
        simulated = SimulatedPod(pod, [], BackOff(self.clock, 10, 300), ["10.0.0.5"], ["192.0.2.1"])
        simulated.sync(pod, PodStatus(), self.clock.now())
        return pod, simulated

    def evict(self, pod: Pod, message: str, condition: Any, annotations: Any) -> None:
        name = (pod.metadata and pod.metadata.name) or ""
        self.evicted.append((name, message))
        self.pods = [each for each in self.pods if each[0] is not pod]

    def change(self, node: str, conditions: list[str]) -> None:
        self.reports.append(conditions)

    async def after(self, seconds: float) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        self.clock.advance(seconds)
        for _ in range(20):
            await asyncio.sleep(0)


async def test_who_uses_most_goes_when_there_is_no_memory_left() -> None:
    node = Node(modest="3Gi", greedy="0s=1Gi, 5s=9Gi")
    node.pressures.watch("n")
    await node.after(4)
    assert (node.reports, node.evicted) == ([], [])
    await node.after(10)
    assert node.reports == [["MemoryPressure"]]
    assert [name for name, _ in node.evicted] == ["greedy"]
    assert node.evicted[0][1].startswith(
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 0"
    )
    await node.after(10)
    assert node.reports == [["MemoryPressure"], []]
    await node.pressures.stop()


async def test_a_rule_makes_a_node_short_of_something_until_it_is_taken_back() -> None:
    node = Node(a="1Gi", b="1Gi", c="1Gi")
    node.behaviour = NodeBehaviour(pressure=("DiskPressure", "PIDPressure"))
    node.pressures.watch("n")
    await node.after(0)
    assert node.reports == [["DiskPressure", "PIDPressure"]]
    await node.after(10)
    assert len(node.evicted) == 2
    node.behaviour = NodeBehaviour()
    node.pressures.watch("n")
    await node.after(10)
    assert (node.reports[-1], len(node.evicted)) == ([], 2)
    await node.pressures.stop()


async def test_of_a_silent_node_nothing_is_heard() -> None:
    node = Node(a="1Gi")
    node.behaviour = NodeBehaviour(pressure=("MemoryPressure",), silent=True)
    node.pressures.watch("n")
    await node.after(30)
    assert (node.reports, node.evicted) == ([], [])
    await node.pressures.stop()
