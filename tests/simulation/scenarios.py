"""Scenarios that the tests of the simulation play, good ones and ones with a planted defect."""

from __future__ import annotations

from typing import Any

from pybernetes.api.core.v1 import ConfigMap, Pod
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.client import Client
from pybernetes.client.informers import InformerFactory
from pybernetes.simulation.world import Simulation


def deployment(replicas: int) -> dict[str, Any]:
    """A Deployment of pods that get ready."""
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


async def rollout(sim: Simulation) -> None:
    """A Deployment gets its pods, is scaled and goes, whatever happens meanwhile."""
    await sim.create(deployment(3))

    async def three_are_ready() -> bool:
        return (await sim.get("deployments", "web")).get("status", {}).get("readyReplicas") == 3

    await sim.until(three_are_ready, within=900)
    await sim.patch("deployments", "web", {"spec": {"replicas": 1}})

    async def one_is_left() -> bool:
        return len(await sim.list("pods")) == 1

    await sim.until(one_is_left, within=900)
    await sim.delete("deployments", "web")

    async def all_are_gone() -> bool:
        return not await sim.list("pods")

    await sim.until(all_are_gone, within=900)


async def failing(sim: Simulation) -> None:
    """Always fails."""
    await sim.create(deployment(1))
    await sim.sleep(30)
    raise AssertionError("as planted")


async def violating(sim: Simulation) -> None:
    """Breaks a rule of its own."""

    def no_pod_on_node_one(before: Any, after: Any) -> str | None:
        if after and after.get("kind") == "Pod" and after["spec"].get("nodeName") == "node-0001":
            return f"pod {after['metadata']['name']} is on node-0001"
        return None

    sim.always(no_pod_on_node_one)
    await sim.create(deployment(6))
    await sim.sleep(120)


async def counting_controller(client: Client) -> None:
    """Counts pods in a ConfigMap, and forgets that it may start in the middle: it only counts what it sees come."""
    seen: set[str] = set()
    factory = InformerFactory(client)
    informer = factory.informer(Pod)

    def came(pod: Pod) -> None:
        assert pod.metadata is not None
        if pod.spec is not None and pod.spec.node_name is None:  # the defect: who starts later never sees it so
            seen.add(pod.metadata.name or "")

    informer.add_handler(came, lambda old, new: None, lambda pod: None)
    factory.start()
    await factory.wait_synced()
    import asyncio

    while True:
        await asyncio.sleep(1)  # not a wait: it is virtual time
        made = ConfigMap(metadata=ObjectMeta(name="count", namespace="default"), data={"pods": str(len(seen))})
        try:
            await client.apply(made, field_manager="counter", force=True)
        except OSError:
            continue


async def counted(sim: Simulation) -> None:
    """The user's controller counts all pods, also if it crashes."""
    sim.start(counting_controller)
    await sim.create(deployment(4))

    async def four() -> bool:
        return (await sim.get("configmaps", "count"))["data"]["pods"] == "4"

    await sim.until(four, within=300)
    await sim.sleep(120)
    await sim.until(four, within=60)
