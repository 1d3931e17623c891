"""Our own components with a bug each, planted when the scenario begins, and a rule or an end that it breaks.

All of them work while nothing goes wrong at a bad moment: that is what the seeds look for.
"""

from __future__ import annotations

from typing import Any

from pybernetes.simulation.world import Simulation

LABELS = {"app": "web"}
Object = dict[str, Any]


def template(cpu: str = "", **spec: Any) -> Object:
    container: Object = {"name": "main", "image": "nginx"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container], **spec}}


def deployment(replicas: int, cpu: str = "") -> Object:
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(cpu)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


class Live:
    """Counts the pods that are there, by uid; more than `most` break the rule."""

    __name__ = "no_more_pods_than_wanted"

    def __init__(self, most: int) -> None:
        self._most = most
        self._there: set[str] = set()

    def __call__(self, before: Object | None, after: Object | None) -> str | None:
        content = after or before or {}
        if content.get("kind") != "Pod":
            return None
        uid = content["metadata"]["uid"]
        if after is None or after["metadata"].get("deletionTimestamp"):
            self._there.discard(uid)
        else:
            self._there.add(uid)
        return f"{len(self._there)} pods of {self._most}" if len(self._there) > self._most else None


async def deployment_forgets_what_it_has_asked_for(sim: Simulation) -> None:
    """The ReplicaSets of a Deployment do not wait until they see the pods that they have made."""
    from pybernetes.client.expectations import Expectations

    Expectations.satisfied = lambda self, key: True  # type: ignore[method-assign,assignment]
    sim.always(Live(3))
    await sim.create(deployment(3))
    await sim.sleep(30)


async def job_forgets_what_it_has_asked_for(sim: Simulation) -> None:
    """A Job does not wait until it sees the pod that it has made."""
    from pybernetes.client.expectations import Expectations

    Expectations.satisfied = lambda self, key: True  # type: ignore[method-assign,assignment]
    sim.always(Live(1))
    for number in range(5):
        pod = template(restartPolicy="Never")
        spec = {"parallelism": 1, "completions": 1, "template": pod}
        await sim.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"j{number}"}, "spec": spec})
        await sim.sleep(20)
        await sim.delete("jobs", f"j{number}", propagation="Background")
        await sim.sleep(20)


async def collector_believes_its_cache(sim: Simulation) -> None:
    """The garbage collector takes an owner that it has not seen yet for one that is gone."""
    from pybernetes.controllers.garbagecollector.controller import GarbageCollectorController

    look = GarbageCollectorController._attempt_to_delete

    async def by_cache(self: Any, node: Any) -> None:
        if node.virtual:
            self._act(self.graph.absent(node.identity))
        else:
            await look(self, node)

    GarbageCollectorController._attempt_to_delete = by_cache  # type: ignore[method-assign]
    alive: set[str] = set()

    def nothing_with_a_live_owner_goes(before: Object | None, after: Object | None) -> str | None:
        content = after or before or {}
        if after is not None:
            alive.add(content["metadata"]["uid"])
            return None
        alive.discard(content["metadata"]["uid"])
        owners = content["metadata"].get("ownerReferences") or ()
        lives = [each["name"] for each in owners if each["uid"] in alive]
        return f"{content['kind']} {content['metadata']['name']} went, its owner {lives[0]} lives" if lives else None

    sim.always(nothing_with_a_live_owner_goes)
    for number in range(8):
        owner = await sim.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"owner-{number}"}})
        reference = {"apiVersion": "v1", "kind": "Secret", "name": f"owner-{number}", "uid": owner["metadata"]["uid"]}
        metadata = {"name": f"owned-{number}", "ownerReferences": [reference]}
        await sim.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        await sim.sleep(5)


async def scheduler_forgets_what_it_has_placed(sim: Simulation) -> None:
    """The scheduler counts a pod on a node only when the API server says that it is there."""
    from pybernetes.scheduler.cache import Cache

    assume = Cache.assume

    def assume_and_forget(self: Any, pod: Any, node_name: str) -> Any:
        assumed = assume(self, pod, node_name)
        self.forget(pod.uid)
        return assumed

    Cache.assume = assume_and_forget  # type: ignore[method-assign]
    (node, *_) = await sim.list("nodes", "")
    cpus = int(node["status"]["allocatable"]["cpu"])
    on: dict[str, set[str]] = {}

    def a_node_has_room_for_its_pods(before: Object | None, after: Object | None) -> str | None:
        content = after or before or {}
        if content.get("kind") != "Pod" or not content["spec"].get("nodeName"):
            return None
        there = on.setdefault(content["spec"]["nodeName"], set())
        if after is None or after.get("status", {}).get("phase") == "Failed":
            there.discard(content["metadata"]["uid"])
        else:
            there.add(content["metadata"]["uid"])
        return f"{len(there)} pods that want all of it on a node" if len(there) > 1 else None

    sim.always(a_node_has_room_for_its_pods)
    await sim.create(deployment(2, cpu=str(cpus)))
    await sim.sleep(60)
